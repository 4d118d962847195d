//! Constant propagation: `constant-propagation`.
//!
//! A node whose operands are constants is evaluated and replaced by its results. A branch on a constant is replaced by the taken side, and a loop that does not
//! run by its initial values. Outputs of branches that are one value on both sides, and values that a loop carries unchanged, are replaced by that value.
//!
//! **Sound when**
//! - the operator has no effect and draws no random numbers;
//! - its operands and results, and their contents, are not written;
//! - a mutable result (a tensor, a list) does not leave the graph, because every call must return a new one.
//!
//! A node whose evaluation fails is kept, and fails at run time.
//!
//! **Not done.** Results larger than `max-bytes` do not become constants.
//!
//! **One exception** with `like-pytorch`, the default in pipelines but not in freezing: a list or dictionary of numbers, bools or strings is folded although it
//! leaves the graph. PyTorch also folds tensors that leave it, and its caller may then modify the constant itself.

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support::constants::{insert_constant, is_immutable, typed};
use crate::support::effects::{self, Effect};
use crate::support::rewrite::clean_up;
use crate::{AliasDb, support};
use frazil_ir::schema::Resolution;
use frazil_ir::types::is_subtype;
use frazil_ir::{BlockId, Constant, Graph, NodeId, TupleConstant, TypeKind, ValueId, symbols};
use std::sync::Arc;

/// Declaration of the pass `constant-propagation` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "constant-propagation",
    summary: "Evaluates nodes whose operands are constants.",
    before: "graph(%x : Tensor):
  %two : int = prim::Constant[value=2]()
  %four : int = aten::add(%two, %two)
  %l : int[] = prim::ListConstruct(%two, %four)
  %y : Tensor = aten::view(%x, %l)
  return (%y)
",
    after: "graph(%x : Tensor):
  %5 : int[] = prim::Constant[value=[2, 4]]()
  %y : Tensor = aten::view(%x, %5)
  return (%y)
",
    options: &[
        OptionInfo {
            name: "max-bytes",
            kind: OptionKind::Int,
            default: "67108864",
            doc: "Size in bytes above which a result is not folded.",
        },
        OptionInfo {
            name: "immutable-only",
            kind: OptionKind::Bool,
            default: "false",
            doc: "Evaluate only nodes whose operands and results have no identity: numbers, bools, strings and tuples of them.",
        },
        OptionInfo {
            name: "like-pytorch",
            kind: OptionKind::Bool,
            default: "true",
            doc: "Fold lists and dictionaries of numbers and strings even if the graph returns them.",
        },
    ],
    build: |options| {
        AnyPass::graph(ConstantPropagation {
            max_bytes: usize::try_from(options.int("max-bytes")).unwrap_or(0),
            immutable_only: options.bool("immutable-only"),
            like_pytorch: options.bool("like-pytorch"),
        })
    },
};

/// The declaration of the pass `constant-propagation-immutable-types`, a variant that only evaluates nodes with immutable results.
pub static IMMUTABLE: PassInfo = PassInfo {
    name: "constant-propagation-immutable-types",
    summary: "Same as constant-propagation{immutable-only}.",
    before: "graph(%x : Tensor):
  %two : int = prim::Constant[value=2]()
  %four : int = aten::add(%two, %two)
  %y : Tensor = aten::mul(%x, %four)
  return (%y)
",
    after: "graph(%x : Tensor):
  %4 : int = prim::Constant[value=4]()
  %y : Tensor = aten::mul(%x, %4)
  return (%y)
",
    options: &[],
    build: |_| {
        AnyPass::graph(ConstantPropagation {
            immutable_only: true,
            ..ConstantPropagation::default()
        })
    },
};

const STATISTIC: &str = "nodes folded";

/// The pass `constant-propagation`. See the [module documentation](self).
#[derive(Clone, Debug)]
pub struct ConstantPropagation {
    /// Maximum size in bytes of the result of an evaluated node.
    pub max_bytes: usize,
    /// Evaluates only nodes whose operands and results are immutable, as PyTorch does for every graph that it compiles.
    pub immutable_only: bool,
    /// Also folds lists and dictionaries of numbers and strings that the graph returns or passes on, as PyTorch does.
    pub like_pytorch: bool,
}

impl Default for ConstantPropagation {
    fn default() -> Self {
        ConstantPropagation {
            max_bytes: 64 << 20,
            immutable_only: false,
            like_pytorch: false,
        }
    }
}

impl GraphPass<TorchScript> for ConstantPropagation {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let before = cx.counted(STATISTIC);
        let db = cx.alias_db(graph);
        let mut stack = vec![Step::Nodes(graph.first(graph.root()))];
        while let Some(top) = stack.pop() {
            let node = match top {
                Step::Nodes(Some(node)) => node,
                Step::Nodes(None) => continue,
                Step::Finish(node) => {
                    match graph.kind(node) {
                        symbols::PRIM_IF => join_branches(graph, node, cx),
                        symbols::PRIM_LOOP => drop_invariants(graph, node, cx),
                        _ => {}
                    }
                    continue;
                }
            };
            let next = graph.next(node);
            let gone = match graph.kind(node) {
                symbols::PRIM_CONSTANT => false,
                symbols::PRIM_IF => match splice_branch(graph, node, cx) {
                    Some(first) => {
                        // Inlined nodes are visited in their new place.
                        stack.push(Step::Nodes(first));
                        continue;
                    }
                    None => false,
                },
                symbols::PRIM_LOOP => drop_idle_loop(graph, node, cx),
                _ => self.fold(graph, node, &db, cx),
            };
            stack.push(Step::Nodes(next));
            if gone {
                continue;
            }
            let blocks = graph.node_blocks(node);
            if !blocks.is_empty() {
                stack.push(Step::Finish(node));
                stack.extend(blocks.iter().rev().map(|b| Step::Nodes(graph.first(*b))));
            }
        }
        clean_up(graph, cx, STATISTIC, before)
    }
}

enum Step {
    /// Visits the given node and the nodes after it in its block.
    Nodes(Option<NodeId>),
    /// Handles the given node after its blocks.
    Finish(NodeId),
}

impl ConstantPropagation {
    /// Evaluates `node` if its operands are constants. Returns true if the node was removed.
    fn fold(&self, graph: &mut Graph, node: NodeId, db: &AliasDb, cx: &mut PassContext<'_>) -> bool {
        if !graph.node_blocks(node).is_empty() || graph.node_outputs(node).is_empty() {
            return false;
        }
        let operands: Option<Vec<Constant>> = graph.operands(node).map(|v| graph.constant(v)).collect();
        let Some(operands) = operands else { return false };
        if matches!(
            graph.kind(node),
            symbols::PRIM_UNINITIALIZED | symbols::PRIM_CREATE_OBJECT | symbols::PRIM_GET_ATTR
        ) || operands.iter().any(|c| matches!(c, Constant::Object(_)))
            || effects::effect(graph, node, cx.operators().catalogue()) != Effect::Pure
            || db.node_has_writers(graph, node)
        {
            return false;
        }
        let ctx = graph.ctx();
        let outputs = graph.node_outputs(node);
        if is_hash_of_process(graph, node, &operands) {
            return false;
        }
        if self.immutable_only && !self.is_plain(graph, node, cx) {
            return false;
        }
        let excepted = |v: ValueId| match ctx.type_kind(graph.ty(v)) {
            TypeKind::List(e) => self.like_pytorch && is_immutable(ctx, e),
            TypeKind::Dict(k, e) => self.like_pytorch && is_immutable(ctx, k) && is_immutable(ctx, e),
            _ => false,
        };
        let leaves = |v: &ValueId| !is_immutable(ctx, graph.ty(*v)) && !excepted(*v) && db.escapes_scope(&[*v]);
        if outputs.iter().any(leaves) {
            return false;
        }
        let results = structural(graph, node, &operands)
            .or_else(|| cx.operators().evaluate(graph, node, &operands, self.max_bytes));
        let Some(results) = results.filter(|r| r.len() == graph.node_outputs(node).len()) else {
            return false;
        };
        if !cx.rewrite(STATISTIC) {
            return false;
        }
        for (output, constant) in graph.node_outputs(node).to_vec().into_iter().zip(results) {
            let is_none = self.immutable_only && matches!(constant, Constant::None);
            let new = insert_constant(graph, node, constant, graph.ty(output));
            if is_none {
                // The value keeps its optional type, as in source.
                graph.set_type(new, graph.ty(output));
            }
            graph.replace_all_uses_with(output, new);
        }
        graph.erase(node)
    }
}

/// Returns whether a node computes a hash that depends on the process or implementation: any but that of an integer.
fn is_hash_of_process(graph: &Graph, node: NodeId, operands: &[Constant]) -> bool {
    let is_number = |c: &Constant| matches!(c, Constant::Int(_) | Constant::Bool(_) | Constant::None);
    graph.ctx().name(graph.kind(node)) == "aten::hash" && !operands.iter().all(is_number)
}

impl ConstantPropagation {
    /// Returns whether `node` has immutable operands and results only, in the number that its schema specifies.
    fn is_plain(&self, graph: &Graph, node: NodeId, cx: &PassContext<'_>) -> bool {
        let mut values = graph.operands(node).chain(graph.node_outputs(node).iter().copied());
        let is_open = match cx.operators().catalogue().resolve(graph, node) {
            Resolution::Found(schema) => schema.is_vararg && graph.kind(node) != symbols::PRIM_TUPLE_CONSTRUCT,
            Resolution::NoOverload | Resolution::Unknown => false,
        };
        !is_open && values.all(|v| is_immutable(graph.ctx(), graph.ty(v)))
    }
}

/// Evaluates a node that constructs a list or tuple or unpacks a tuple, for which no operator is needed.
fn structural(graph: &Graph, node: NodeId, operands: &[Constant]) -> Option<Vec<Constant>> {
    let ctx = graph.ctx();
    let ty = graph.node_outputs(node).first().map(|v| graph.ty(*v))?;
    match (graph.kind(node), ctx.type_kind(ty)) {
        (symbols::PRIM_LIST_CONSTRUCT, TypeKind::List(element)) => {
            Some(vec![Constant::list(element, operands.to_vec())])
        }
        (symbols::PRIM_TUPLE_CONSTRUCT, TypeKind::Tuple(_) | TypeKind::NamedTuple(..)) => {
            let items = operands.to_vec();
            Some(vec![Constant::Tuple(Arc::new(TupleConstant { ty, items }))])
        }
        (symbols::PRIM_TUPLE_UNPACK | symbols::PRIM_LIST_UNPACK, _) => Some(operands.first()?.items()?.to_vec()),
        (symbols::PRIM_UNCHECKED_CAST, _) => {
            // On a path that is never taken, the value may have another type than the cast states.
            let value = operands.first()?;
            is_subtype(ctx, typed(ctx, value.clone(), ty).1, ty).then(|| vec![value.clone()])
        }
        _ => None,
    }
}

/// Replaces a branch on a constant by the taken side. Returns the next node to visit, or `None` if the condition is not constant.
fn splice_branch(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) -> Option<Option<NodeId>> {
    let condition = graph.constant(graph.operand(node, 0)?)?.as_bool()?;
    let taken = *graph.node_blocks(node).get(usize::from(!condition))?;
    let results: Vec<ValueId> = graph.results(taken).collect();
    let first = graph.first(taken);
    if !cx.rewrite(STATISTIC) {
        return None;
    }
    for (output, result) in graph.node_outputs(node).to_vec().into_iter().zip(results) {
        graph.replace_all_uses_with(output, result);
    }
    graph.splice_before(taken, node);
    let next = graph.next(node);
    graph.erase(node);
    Some(first.or(next))
}

/// Removes a loop that never runs. Returns true if it was removed.
fn drop_idle_loop(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) -> bool {
    let constant = |i: usize| graph.operand(node, i).and_then(|v| graph.constant(v));
    let idle = constant(0).and_then(|c| c.as_int()).is_some_and(|n| n <= 0)
        || constant(1).and_then(|c| c.as_bool()) == Some(false);
    if !idle || !cx.rewrite(STATISTIC) {
        return false;
    }
    let initial: Vec<ValueId> = graph.operands(node).skip(2).collect();
    for (output, value) in graph.node_outputs(node).to_vec().into_iter().zip(initial) {
        graph.replace_all_uses_with(output, value);
    }
    graph.erase(node)
}

/// Replaces outputs of a branch for which both sides have the same value, or equal immutable constants.
fn join_branches(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) {
    let &[then, other] = graph.node_blocks(node) else {
        return;
    };
    for index in (0..graph.node_outputs(node).len()).rev() {
        let (Some(a), Some(b)) = (graph.results(then).nth(index), graph.results(other).nth(index)) else {
            continue;
        };
        let output = graph.node_outputs(node)[index];
        let constant = match (graph.constant(a), graph.constant(b)) {
            _ if a == b => None,
            (Some(x), Some(y)) if x.same(&y) && is_immutable(graph.ctx(), graph.ty(a)) => Some(x),
            _ => continue,
        };
        if !cx.rewrite(STATISTIC) {
            return;
        }
        let value = match constant {
            None => a,
            Some(x) => insert_constant(graph, node, x, graph.ty(a)),
        };
        graph.replace_all_uses_with(output, value);
        remove_output(graph, node, index, &[then, other], 0);
    }
}

/// Replaces values that a loop carries and never changes by their initial values.
fn drop_invariants(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) {
    let &[body] = graph.node_blocks(node) else { return };
    for index in (0..graph.node_outputs(node).len()).rev() {
        let (Some(initial), Some(passed_on), Some(&parameter)) = (
            graph.operand(node, index + 2),
            graph.results(body).nth(index + 1),
            graph.parameters(body).get(index + 1),
        ) else {
            continue;
        };
        if passed_on != parameter && passed_on != initial {
            continue;
        }
        if !cx.rewrite(STATISTIC) {
            return;
        }
        let output = graph.node_outputs(node)[index];
        graph.replace_all_uses_with(output, initial);
        graph.replace_all_uses_with(parameter, initial);
        remove_output(graph, node, index, &[body], 1);
        graph.remove_operand(node, index + 2);
        graph.remove_parameter(body, index + 1);
    }
}

fn remove_output(graph: &mut Graph, node: NodeId, index: usize, blocks: &[BlockId], shift: usize) {
    for &block in blocks {
        graph.remove_result(block, index + shift);
    }
    graph.remove_output(node, index);
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::schema::Catalogue;
    use frazil_ir::{Builder, Context, types};

    fn run(g: &mut Graph, c: &Catalogue) {
        ConstantPropagation::default().run(g, &mut PassContext::new(c)).unwrap();
        g.verify(None).unwrap();
    }

    #[test]
    fn branches_on_constants_are_taken_also_when_nested() {
        let ctx = Arc::new(Context::new());
        let catalogue = Catalogue::new(ctx.clone());
        let mut g = Graph::new(ctx.clone());
        let x = g.add_input(types::TENSOR);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let off = b.constant(false);
        let outer = b.node(symbols::PRIM_IF, &[off], &[types::TENSOR]);
        let (then, other) = (b.add_block(outer), b.add_block(outer));
        let wrong = Builder::at_end(&mut b, then).op(ctx.symbol("foo::wrong"), &[x], types::TENSOR);
        b.add_result(then, wrong);
        let mut inner = Builder::at_end(&mut b, other);
        let on = inner.constant(true);
        let nested = inner.node(symbols::PRIM_IF, &[on], &[types::TENSOR]);
        for name in ["foo::right", "foo::wrong"] {
            let block = inner.add_block(nested);
            let v = Builder::at_end(&mut inner, block).op(ctx.symbol(name), &[x], types::TENSOR);
            inner.add_result(block, v);
        }
        let v = inner.output(nested).unwrap();
        b.add_result(other, v);
        let out = b.output(outer).unwrap();
        b.add_result(root, out);
        run(&mut g, &catalogue);
        let kinds: Vec<_> = g.all_nodes().into_iter().map(|n| g.kind_name(n).to_owned()).collect();
        assert_eq!(kinds, ["foo::right"]);
    }

    #[test]
    fn lists_fold_unless_they_are_written_or_leave() {
        let ctx = Arc::new(Context::new());
        let mut catalogue = Catalogue::new(ctx.clone());
        catalogue.add_lines("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)\naten::view(Tensor(a) self, int[] size) -> Tensor(a)");
        let mut g = Graph::new(ctx.clone());
        let x = g.add_input(types::TENSOR);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let one = b.constant(1);
        let ints = ctx.list_of(types::INT);
        let [read, written, returned] = [0; 3].map(|_| b.list(types::INT, &[one, one]));
        let v = b.op(ctx.symbol("aten::view"), &[x, read], types::TENSOR);
        b.op(ctx.symbol("aten::append"), &[written, one], ints);
        b.add_result(root, v);
        b.add_result(root, returned);
        run(&mut g, &catalogue);
        let size = g.operand(g.defining_node(v).unwrap(), 1).unwrap();
        assert_eq!(g.constant(size).and_then(|c| c.as_ints()), Some(vec![1, 1]));
        assert!(g.constant(written).is_none() && g.constant(g.outputs().nth(1).unwrap()).is_none());
    }
}
