//! Folding of lists that are built in the graph: `peephole-list-idioms`.
//!
//! Folds the length of a list that a `prim::ListConstruct` builds, its elements, unpacking, slices with constant bounds, and concatenations of two
//! such lists. With `refine-list-len=true`, also folds the length of other lists where a comparison with a constant determines it: after `if len(x)
//! != 4: raise` it is 4.
//!
//! **Sound when** the lists are not written. Access with an index out of bounds is kept and raises, and so does unpacking a list into another number of values.

use crate::AliasDb;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support;
use crate::support::refine::{Known, Subject, walk};
use crate::support::rewrite::{
    Replacement, built_list, element_index, int, is_list, replace, rewrite_nodes, slice_indices,
};
use frazil_ir::{Constant, Graph, NodeId, ValueId, symbols};
use std::collections::HashMap;

/// Declaration of the pass `peephole-list-idioms` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "peephole-list-idioms",
    summary: "Evaluates lengths, elements and similar operators on lists that are built in the graph.",
    before: "graph(%x : Tensor, %y : Tensor):
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %n : int = aten::len(%l)
  return (%n)
",
    after: "graph(%x : Tensor, %y : Tensor):
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %3 : int = prim::Constant[value=2]()
  return (%3)
",
    options: &[OptionInfo {
        name: "refine-list-len",
        kind: OptionKind::Bool,
        default: "false",
        doc: "Also use comparisons of the length of a list.",
    }],
    build: |options| {
        AnyPass::graph(PeepholeListIdioms {
            refine_list_len: options.bool("refine-list-len"),
        })
    },
};

/// The pass `peephole-list-idioms`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct PeepholeListIdioms {
    /// Also uses lengths of lists that are known from comparisons (`if len(x) == 2`).
    pub refine_list_len: bool,
}

const STATISTIC: &str = "list operations replaced";

impl GraphPass<TorchScript> for PeepholeListIdioms {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let db = cx.alias_db(graph);
        rewrite_nodes(graph, cx, STATISTIC, |g, n| rewrite(g, n, &db));
        if self.refine_list_len {
            let db = cx.alias_db(graph);
            let mut lengths = Lengths {
                asked: lists_asked(graph, &db),
                cx,
            };
            walk(graph, &mut lengths);
        }
        Ok(())
    }
}

fn rewrite(graph: &Graph, node: NodeId, db: &AliasDb) -> Option<Replacement> {
    let list = graph.operand(node, 0).filter(|v| is_list(graph, graph.ty(*v)))?;
    let built = |list: ValueId| built_list(graph, list).filter(|_| !db.has_writers(list));
    let construct = built(list)?;
    let items: Vec<ValueId> = graph.operands(construct).collect();
    let outputs_written = graph.node_outputs(node).iter().any(|v| db.has_writers(*v));
    match graph.kind_name(node) {
        "aten::len" => Some(Replacement::Constant(Constant::Int(items.len() as i64))),
        "aten::__getitem__" => {
            let index = element_index(int(graph, graph.operand(node, 1)?)?, items.len())?;
            Some(Replacement::Value(items[index]))
        }
        "prim::ListUnpack" => (graph.node_outputs(node).len() == items.len()).then_some(Replacement::Values(items)),
        // The analysis does not contain the new list: accesses to one that is written are left to the next run.
        "aten::add" if graph.operand_count(node) == 2 && !outputs_written => {
            let second = built(graph.operand(node, 1)?)?;
            Some(Replacement::List(
                items.into_iter().chain(graph.operands(second)).collect(),
            ))
        }
        "aten::slice" if graph.operand_count(node) == 4 && !outputs_written => {
            let bound = |i: usize| match graph.constant(graph.operand(node, i)?)? {
                Constant::None => Some(None),
                Constant::Int(n) => Some(Some(n)),
                _ => None,
            };
            let step = bound(3)?.unwrap_or(1);
            let indices = slice_indices(items.len(), bound(1)?, bound(2)?, step)?;
            Some(Replacement::List(indices.into_iter().map(|i| items[i]).collect()))
        }
        _ => None,
    }
}

/// Returns the unmodified lists whose length is used more than once. A comparison of the length may determine its value at other uses.
fn lists_asked(graph: &Graph, db: &AliasDb) -> HashMap<ValueId, usize> {
    let mut asked = HashMap::new();
    for node in graph.all_nodes() {
        if let Some(list) = length_of(graph, node).filter(|l| !db.has_writers(*l)) {
            *asked.entry(list).or_default() += 1;
        }
    }
    asked.retain(|_, n| *n > 1);
    asked
}

/// Returns the list whose length `node` computes (`aten::len`).
fn length_of(graph: &Graph, node: NodeId) -> Option<ValueId> {
    let list = graph.operand(node, 0)?;
    (graph.kind_name(node) == "aten::len" && is_list(graph, graph.ty(list))).then_some(list)
}

struct Lengths<'p, 'a> {
    asked: HashMap<ValueId, usize>,
    cx: &'p mut PassContext<'a>,
}

impl Subject for Lengths<'_, '_> {
    fn of(&self, graph: &Graph, value: ValueId) -> Option<ValueId> {
        let list = length_of(graph, graph.defining_node(value)?)?;
        self.asked.contains_key(&list).then_some(list)
    }

    fn visit(&mut self, graph: &mut Graph, node: NodeId, known: &Known) {
        if graph.kind(node) == symbols::PRIM_RETURN {
            return;
        }
        let length = length_of(graph, node).and_then(|list| known.get(list));
        if let Some(n) = length
            && self.cx.rewrite(STATISTIC)
        {
            replace(graph, node, Replacement::Constant(Constant::Int(n)));
        }
    }
}
