//! The frozen-graph optimisations: `optimize-frozen-graph`.
//!
//! Removes inactive dropouts. Then, if rounding may change, folds batch norms, additions and multiplications into convolutions, and batch norms into linears,
//! until nothing more folds; and merges linears with one input. Each is a pass of its own with its own conditions. Dead code is removed last.
//!
//! PyTorch merges linears first, on CUDA only; a batch norm after one of them is then not folded.

use crate::concat_frozen_linear::ConcatFrozenLinear;
use crate::dce::DeadCodeElimination;
use crate::fold_frozen_conv_add_or_sub::FoldFrozenConvAddOrSub;
use crate::fold_frozen_conv_bn::FoldFrozenConvBatchNorm;
use crate::fold_frozen_conv_mul_or_div::FoldFrozenConvMulOrDiv;
use crate::fold_frozen_linear_bn::FoldFrozenLinearBatchNorm;
use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::remove_dropout::RemoveDropout;
use frazil_ir::Graph;

/// Declaration of the pass `optimize-frozen-graph` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "optimize-frozen-graph",
    summary: "Removes dropouts, and folds operators after convolutions and linears into their weights.",
    before: "%c = aten::conv2d(%x, %w, %b, %s, %p, %d, %g)\n%n = aten::batch_norm(%c, ...)\n%y = aten::dropout(%n, %half, %false)",
    after: "%y = aten::conv2d(%x, %w_fused_bn, %b_fused_bn, %s, %p, %d, %g)",
    options: &[OptionInfo {
        name: "optimize-numerics",
        kind: OptionKind::Bool,
        default: "true",
        doc: "Run the foldings, which change rounding.",
    }],
    build: |options| {
        AnyPass::graph(OptimizeFrozenGraph {
            optimize_numerics: options.bool("optimize-numerics"),
        })
    },
};

/// The pass `optimize-frozen-graph`. See the [module documentation](self).
#[derive(Clone, Copy, Debug)]
pub struct OptimizeFrozenGraph {
    /// Runs the foldings of batch norms and arithmetic into weights, which change the rounding of results.
    pub optimize_numerics: bool,
}

impl GraphPass<TorchScript> for OptimizeFrozenGraph {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        cx.run_part(&RemoveDropout, graph)?;
        if self.optimize_numerics {
            // Every folding removes a node, so this terminates.
            loop {
                let revision = graph.revision();
                cx.run_part(&FoldFrozenConvBatchNorm, graph)?;
                cx.run_part(&FoldFrozenConvAddOrSub, graph)?;
                cx.run_part(&FoldFrozenConvMulOrDiv, graph)?;
                cx.run_part(&FoldFrozenLinearBatchNorm, graph)?;
                if graph.revision() == revision {
                    break;
                }
            }
            // Last: a batch norm can only be folded into a linear of its own.
            cx.run_part(&ConcatFrozenLinear, graph)?;
        }
        cx.run_part(&DeadCodeElimination::default(), graph)
    }
}
