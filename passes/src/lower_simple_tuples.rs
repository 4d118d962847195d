//! Forwarding of tuple elements: `lower-simple-tuples`.
//!
//! Unpacking, indexing and slicing a tuple that a `prim::TupleConstruct` builds is replaced by its elements. Unused nodes are removed.
//!
//! **Sound** since tuples are immutable. An index that is not constant, or out of bounds, is kept.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::rewrite::{Replacement, built_by, clean_up, element_index, int, replace};
use frazil_ir::{Builder, Graph, NodeId, ValueId, symbols};

/// Declaration of the pass `lower-simple-tuples` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "lower-simple-tuples",
    summary: "Replaces reads of elements of tuples by the values that the tuples were built from.",
    before: "graph(%x : Tensor, %y : Tensor):
  %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
  %a : Tensor, %b : Tensor = prim::TupleUnpack(%t)
  return (%b)
",
    after: "graph(%x : Tensor, %y : Tensor):
  return (%y)
",
    options: &[],
    build: |_| AnyPass::graph(LowerSimpleTuples),
};

const STATISTIC: &str = "tuple operations lowered";

/// The pass `lower-simple-tuples`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct LowerSimpleTuples;

impl GraphPass<TorchScript> for LowerSimpleTuples {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let before = cx.counted(STATISTIC);
        for node in graph.all_nodes() {
            take_apart(graph, node, cx);
        }
        clean_up(graph, cx, STATISTIC, before)
    }
}

/// Replaces `node` if it reads elements of a tuple that is built in the graph. Returns true if it was removed.
pub(crate) fn take_apart(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) -> bool {
    let Some((values, is_slice)) = elements(graph, node) else {
        return false;
    };
    if !cx.rewrite(STATISTIC) {
        return false;
    }
    let values = match (is_slice, graph.output(node)) {
        (true, Some(output)) => {
            let ty = graph.ty(output);
            vec![Builder::before(graph, node).op(symbols::PRIM_TUPLE_CONSTRUCT, &values, ty)]
        }
        _ => values,
    };
    replace(graph, node, Replacement::Values(values));
    true
}

/// Returns the elements that `node` reads from a tuple that the graph constructs, and whether the result is a tuple of these elements.
pub fn elements(graph: &Graph, node: NodeId) -> Option<(Vec<ValueId>, bool)> {
    let kind = graph.kind(node);
    if !matches!(
        kind,
        symbols::PRIM_TUPLE_UNPACK | symbols::PRIM_TUPLE_INDEX | symbols::PRIM_TUPLE_SLICE
    ) {
        return None;
    }
    let construct = built_by(graph, graph.operand(node, 0)?, symbols::PRIM_TUPLE_CONSTRUCT)?;
    let items: Vec<ValueId> = graph.operands(construct).collect();
    match kind {
        symbols::PRIM_TUPLE_UNPACK => (items.len() == graph.node_outputs(node).len()).then_some((items, false)),
        symbols::PRIM_TUPLE_INDEX => {
            let index = element_index(int(graph, graph.operand(node, 1)?)?, items.len())?;
            Some((vec![items[index]], false))
        }
        _ => {
            let bound = |name: &str| {
                let symbol = graph.ctx().find_symbol(name)?;
                let value = graph.attribute(node, symbol)?.as_constant()?.as_int()?;
                usize::try_from(value).ok()
            };
            let (begin, end) = (bound("beg")?, bound("end")?);
            Some((items.get(begin..end)?.to_vec(), true))
        }
    }
}
