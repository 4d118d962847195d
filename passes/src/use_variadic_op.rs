//! Variadic operators in place of operators on lists: `use-variadic-op`.
//!
//! `aten::cat` and `aten::stack` of a list that is built in the graph become `prim::VarConcat` and `prim::VarStack` of its elements. With
//! `remove-list-mutation=true`, [writes to new lists are folded](crate::remove_list_mutation) first, repeatedly until nothing changes.
//!
//! **Sound when** the list is not written between its construction and its use. PyTorch's names of the variants, `use-variadic-cat`,
//! `use-variadic-stack`, and those with the prefix `remove-list-mutation-and-`, are passes of their own.

use crate::AliasDb;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::remove_list_mutation::RemoveListMutation;
use crate::support;
use crate::support::rewrite::built_list;
use frazil_ir::{Builder, Graph, NodeId, ValueId};

const BEFORE: &str = "graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %z : Tensor = aten::cat(%l, %0)
  return (%z)
";
const BEFORE_STACK: &str = "graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %z : Tensor = aten::stack(%l, %0)
  return (%z)
";
const AFTER_STACK: &str = "graph(%x : Tensor, %y : Tensor):
  %2 : int = prim::Constant[value=0]()
  %z : Tensor = prim::VarStack(%x, %y, %2)
  return (%z)
";
const AFTER: &str = "graph(%x : Tensor, %y : Tensor):
  %2 : int = prim::Constant[value=0]()
  %z : Tensor = prim::VarConcat(%x, %y, %2)
  return (%z)
";

/// Declaration of the pass `use-variadic-op` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "use-variadic-op",
    summary: "Replaces operators on a list by variadic operators on its elements.",
    before: BEFORE,
    after: AFTER,
    options: &[
        OptionInfo {
            name: "ops",
            kind: OptionKind::List,
            default: "cat,stack",
            doc: "The operators: cat, stack.",
        },
        OptionInfo {
            name: "remove-list-mutation",
            kind: OptionKind::Bool,
            default: "false",
            doc: "Run remove-list-mutation first.",
        },
    ],
    build: |options| {
        AnyPass::graph(UseVariadicOp {
            cat: options.list("ops").iter().any(|o| o == "cat"),
            stack: options.list("ops").iter().any(|o| o == "stack"),
            remove_list_mutation: options.bool("remove-list-mutation"),
        })
    },
};

macro_rules! named {
    ($id:ident, $name:literal, $summary:literal, $cat:literal, $stack:literal, $remove:literal) => {
        #[doc = concat!("How the pass is named that does this as `", $name, "`.")]
        pub static $id: PassInfo = PassInfo {
            name: $name,
            summary: $summary,
            before: if $cat { BEFORE } else { BEFORE_STACK },
            after: if $cat { AFTER } else { AFTER_STACK },
            options: &[],
            build: |_| {
                AnyPass::graph(UseVariadicOp {
                    cat: $cat,
                    stack: $stack,
                    remove_list_mutation: $remove,
                })
            },
        };
    };
}

named!(
    CAT,
    "use-variadic-cat",
    "Same as use-variadic-op{ops=cat}.",
    true,
    false,
    false
);
named!(
    STACK,
    "use-variadic-stack",
    "Same as use-variadic-op{ops=stack}.",
    false,
    true,
    false
);
named!(
    REMOVE_AND_CAT,
    "remove-list-mutation-and-use-variadic-cat",
    "Same as use-variadic-op{ops=cat remove-list-mutation}.",
    true,
    false,
    true
);
named!(
    REMOVE_AND_STACK,
    "remove-list-mutation-and-use-variadic-stack",
    "Same as use-variadic-op{ops=stack remove-list-mutation}.",
    false,
    true,
    true
);

/// The pass `use-variadic-op`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct UseVariadicOp {
    /// Replaces `aten::cat` by its variadic form.
    pub cat: bool,
    /// Replaces `aten::stack` by its variadic form.
    pub stack: bool,
    /// Runs `remove-list-mutation` first, which folds writes to new lists into their construction.
    pub remove_list_mutation: bool,
}

impl GraphPass<TorchScript> for UseVariadicOp {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        loop {
            let revision = graph.revision();
            if self.remove_list_mutation {
                cx.run(&RemoveListMutation, graph)?;
            }
            self.replace(graph, cx);
            if graph.revision() == revision || !self.remove_list_mutation {
                return Ok(());
            }
        }
    }
}

impl UseVariadicOp {
    fn replace(&self, graph: &mut Graph, cx: &mut PassContext<'_>) {
        let kinds = [
            (self.cat, "aten::cat", "prim::VarConcat"),
            (self.stack, "aten::stack", "prim::VarStack"),
        ];
        let variadic = |g: &Graph, n: NodeId| {
            let of = kinds
                .iter()
                .find(|(wanted, kind, _)| *wanted && *kind == g.kind_name(n));
            of.map(|(_, _, variadic)| *variadic)
        };
        let nodes: Vec<NodeId> = graph
            .all_nodes()
            .into_iter()
            .filter(|n| variadic(graph, *n).is_some())
            .collect();
        if nodes.is_empty() {
            return;
        }
        let db = cx.alias_db(graph);
        for node in nodes {
            let Some(kind) = variadic(graph, node) else { continue };
            let Some(list) = usable_list(graph, node, &db).filter(|_| cx.rewrite("lists passed by element")) else {
                continue;
            };
            put(graph, node, list, kind);
        }
    }
}

/// Returns the node that builds the list operand of `node`, if the list has not been written.
fn usable_list(graph: &Graph, node: NodeId, db: &AliasDb) -> Option<NodeId> {
    let (list, output) = (graph.operand(node, 0)?, graph.output(node)?);
    let construct = built_list(graph, list).filter(|n| graph.operand_count(*n) > 0)?;
    let same_block = graph.parent(construct) == graph.parent(node);
    let unwritten = !db.has_writers(list) || (same_block && unwritten_between(graph, construct, node, list, db));
    (graph.operand_count(node) == 2 && graph.ctx().is_tensor(graph.ty(output)) && unwritten).then_some(construct)
}

/// Returns true if no node between `from` and `to` modifies the list `list` itself.
fn unwritten_between(graph: &Graph, from: NodeId, to: NodeId, list: ValueId, db: &AliasDb) -> bool {
    let mut cursor = graph.next(from);
    while let Some(n) = cursor.filter(|n| *n != to) {
        if db.writes_to_itself(n, list) {
            return false;
        }
        cursor = graph.next(n);
    }
    cursor == Some(to)
}

fn put(graph: &mut Graph, node: NodeId, list: NodeId, kind: &str) {
    let (Some(output), Some(dim)) = (graph.output(node), graph.operand(node, 1)) else {
        return;
    };
    let (kind, ty) = (graph.ctx().symbol(kind), graph.ty(output));
    let operands: Vec<ValueId> = graph.operands(list).chain([dim]).collect();
    let new = Builder::before(graph, node).op(kind, &operands, ty);
    if let Some(name) = graph.value_name(output) {
        graph.set_value_name(new, name);
    }
    graph.replace_all_uses_with(output, new);
    graph.erase(node);
    graph.erase(list);
}
