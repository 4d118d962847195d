//! Folding additions into convolution: `fold-frozen-conv-add-or-sub`.
//!
//! `conv(x, w, b) + α·c` is `conv(x, w, b + α·c)`, and likewise with `-`, if `c` is a number or a tensor with one value per channel.
//!
//! **Sound when**
//! - `c` and `α` are constants that are not written;
//! - `c` has size 1 in every dimension except the channels;
//! - `c` does not change the result's dtype;
//! - the conditions of [`support::fold`] hold.
//!
//! A `c` with a batch dimension adds this dimension to a result without one. If the rank of the convolution's input is unknown, a run-time test handles this
//! case.
//!
//! PyTorch does not compare ranks, and does not add the new dimension to an un-batched result.

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::{self, fold};
use frazil_ir::Graph;

/// Declaration of the pass `fold-frozen-conv-add-or-sub` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "fold-frozen-conv-add-or-sub",
    summary: "Folds additions and subtractions of per-channel constants into the bias of the convolution before them.",
    before: "%c = aten::conv2d(%x, %w, %b, %s, %p, %d, %g)\n%y = aten::add(%c, %constant, %one)",
    after: "%y = aten::conv2d(%x, %w, %b_fused_add_or_sub, %s, %p, %d, %g)",
    options: &[],
    build: |_| AnyPass::graph(FoldFrozenConvAddOrSub),
};

/// The pass `fold-frozen-conv-add-or-sub`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct FoldFrozenConvAddOrSub;

impl GraphPass<TorchScript> for FoldFrozenConvAddOrSub {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let catalogue = cx.operators().catalogue();
        fold::each(
            graph,
            cx,
            "additions folded",
            &["aten::add", "aten::sub"],
            |graph, node, db| {
                let producer = fold::sole_producer(graph, node, db)?;
                let layer = fold::Layer::convolution(graph, producer, db)?;
                let other = fold::per_channel(graph, node, &layer, db, catalogue)?;
                let alpha = match graph.operand(node, 2) {
                    Some(v) => graph.constant(v)?.as_float()?,
                    None => 1.0,
                };
                let sign = if graph.kind_name(node) == "aten::sub" {
                    -alpha
                } else {
                    alpha
                };
                let shift: Vec<f64> = other.values.iter().map(|v| sign * v).collect();
                layer.rescale(graph, &vec![1.0; shift.len()], &shift, "_fused_add_or_sub")?;
                fold::bypass_keeping_rank(graph, node, &layer, &other);
                Some(())
            },
        );
        Ok(())
    }
}
