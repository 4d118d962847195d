//! Folding batch norm into convolution: `fold-frozen-conv-bn`.
//!
//! `batch_norm(conv(x, w, b), γ, β, μ, σ²)` in evaluation mode is `conv(x, w', b')` with `w' = w·s`, `b' = (b - μ)·s + β`, `s = γ / √(σ² + ε)`
//! for each output channel.
//!
//! **Sound when**
//! - `training` is the constant false, and running statistics exist;
//! - the statistics, γ, β, the weight and the bias are constants that are not written, of the weight's dtype (or f32 with a half-precision weight);
//! - the convolution's result is used by the batch norm alone, except for queries of its shape;
//! - both are in one block, in which the result is not written in between.
//!
//! The dtype stays the weight's. New weights are computed in f64 and rounded once.
//!
//! **Assumed:** the input has a batch dimension. A batch norm over an un-batched convolution would normalise rows instead of channels, which
//! PyTorch accepts only if there are as many of both.
//!
//! PyTorch computes in the weight's own dtype, and does not fold into grouped transposed convolutions.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::{self, fold};
use frazil_ir::Graph;

/// Declaration of the pass `fold-frozen-conv-bn` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "fold-frozen-conv-bn",
    summary: "Folds batch norms in evaluation mode into the weights of the convolutions before them.",
    before: "%c = aten::conv2d(%x, %self.conv.weight, %none, %s, %p, %d, %g)\n%y = aten::batch_norm(%c, %w, %b, %mean, %var, %false, %m, %eps, %true)",
    after: "%y = aten::conv2d(%x, %self.conv.weight_fused_bn, %self.conv.bias_fused_bn, %s, %p, %d, %g)",
    options: &[],
    build: |_| AnyPass::graph(FoldFrozenConvBatchNorm),
};

/// The pass `fold-frozen-conv-bn`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct FoldFrozenConvBatchNorm;

impl GraphPass<TorchScript> for FoldFrozenConvBatchNorm {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        fold::each(
            graph,
            cx,
            "batch norms folded",
            &["aten::batch_norm"],
            |graph, node, db| {
                let producer = fold::sole_producer(graph, node, db)?;
                let layer = fold::Layer::convolution(graph, producer, db)?;
                let bn = fold::BatchNorm::constant(graph, node, &layer, db)?;
                layer.rescale(graph, &bn.scale, &bn.shift, "_fused_bn")?;
                fold::bypass(graph, node);
                Some(())
            },
        );
        Ok(())
    }
}
