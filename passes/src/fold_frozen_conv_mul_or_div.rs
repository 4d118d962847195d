//! Folding multiplications into convolution: `fold-frozen-conv-mul-or-div`.
//!
//! `conv(x, w, b) · c` is `conv(x, w·c, b·c)` for each channel, and likewise with true division.
//!
//! **Sound when** the conditions of [`fold_frozen_conv_add_or_sub`](crate::fold_frozen_conv_add_or_sub) hold. Division with a rounding mode is not folded.

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::{self, fold};
use frazil_ir::Graph;

/// Declaration of the pass `fold-frozen-conv-mul-or-div` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "fold-frozen-conv-mul-or-div",
    summary: "Folds multiplications and divisions by per-channel constants into the weights of the convolution before them.",
    before: "%c = aten::conv2d(%x, %w, %b, %s, %p, %d, %g)\n%y = aten::mul(%c, %constant)",
    after: "%y = aten::conv2d(%x, %w_fused_mul_or_div, %b_fused_mul_or_div, %s, %p, %d, %g)",
    options: &[],
    build: |_| AnyPass::graph(FoldFrozenConvMulOrDiv),
};

/// The pass `fold-frozen-conv-mul-or-div`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct FoldFrozenConvMulOrDiv;

impl GraphPass<TorchScript> for FoldFrozenConvMulOrDiv {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let catalogue = cx.operators().catalogue();
        fold::each(
            graph,
            cx,
            "multiplications folded",
            &["aten::mul", "aten::div"],
            |graph, node, db| {
                if graph.operand_count(node) != 2 {
                    return None;
                }
                let producer = fold::sole_producer(graph, node, db)?;
                let layer = fold::Layer::convolution(graph, producer, db)?;
                let other = fold::per_channel(graph, node, &layer, db, catalogue)?;
                let divides = graph.kind_name(node) == "aten::div";
                let scale: Vec<f64> = other
                    .values
                    .iter()
                    .map(|v| if divides { 1.0 / v } else { *v })
                    .collect();
                layer.rescale(graph, &scale, &vec![0.0; scale.len()], "_fused_mul_or_div")?;
                fold::bypass_keeping_rank(graph, node, &layer, &other);
                Some(())
            },
        );
        Ok(())
    }
}
