//! Folding batch norm into linear: `fold-frozen-linear-bn`.
//!
//! Works like [`fold_frozen_conv_bn`](crate::fold_frozen_conv_bn), for `aten::linear`.
//!
//! **Sound when**, besides those conditions, the linear's result is known to have two dimensions. A batch norm normalises along dimension 1, which must be the
//! last dimension: that of a linear's features. A result of unknown rank is only folded if the batch norm is the same for all channels (one that was never
//! trained), so that the dimension does not matter.
//!
//! PyTorch checks neither the rank nor other uses nor writes, and returns wrong results in those cases. As in PyTorch, and as after convolutions, an input
//! whose shape the batch norm would have refused is accepted.

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::rank::rank;
use crate::support::{self, fold};
use frazil_ir::Graph;

/// Declaration of the pass `fold-frozen-linear-bn` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "fold-frozen-linear-bn",
    summary: "Folds batch norms in evaluation mode into the weights of the two-dimensional linears before them.",
    before: "%l = aten::linear(%x, %self.fc.weight, %self.fc.bias)\n%y = aten::batch_norm(%l, %w, %b, %mean, %var, %false, %m, %eps, %true)",
    after: "%y = aten::linear(%x, %self.fc.weight_fused_bn, %self.fc.bias_fused_bn)",
    options: &[],
    build: |_| AnyPass::graph(FoldFrozenLinearBatchNorm),
};

/// The pass `fold-frozen-linear-bn`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct FoldFrozenLinearBatchNorm;

impl GraphPass<TorchScript> for FoldFrozenLinearBatchNorm {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let catalogue = cx.operators().catalogue();
        fold::each(
            graph,
            cx,
            "batch norms folded",
            &["aten::batch_norm"],
            |graph, node, db| {
                let producer = fold::sole_producer(graph, node, db)?;
                let layer = fold::Layer::linear(graph, producer, db)?;
                let bn = fold::BatchNorm::constant(graph, node, &layer, db)?;
                let input = graph.operand(node, 0)?;
                if !bn.is_uniform() && rank(graph, input, db, catalogue) != Some(2) {
                    return None;
                }
                layer.rescale(graph, &bn.scale, &bn.shift, "_fused_bn")?;
                fold::bypass(graph, node);
                Some(())
            },
        );
        Ok(())
    }
}
