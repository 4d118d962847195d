//! In-place relu after convolution and addition: `fuse-frozen-conv-add-relu`.
//!
//! A relu after a convolution with constant weights, or after an addition to the result of one, becomes in-place, because its operand has no other users.
//! Native code fuses the three anyway. The pass is meant for running the graph operator by operator, with operators that every CPU build of PyTorch has.
//!
//! **Sound when** such a convolution or addition in the same block computes the relu's operand, which has no other use and is not written in between.
//!
//! PyTorch uses `cudnn_convolution_add_relu` instead, on CUDA only.

use crate::AliasDb;
use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::{self, fold};
use frazil_ir::{Graph, NodeId};

/// Declaration of the pass `fuse-frozen-conv-add-relu` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "fuse-frozen-conv-add-relu",
    summary: "Makes a relu after a convolution, or after an addition to one, an in-place relu.",
    before: "%c = aten::conv2d(%x, %w, %b, %s, %p, %d, %g)\n%a = aten::add(%c, %z, %one)\n%y = aten::relu(%a)",
    after: "%c = aten::conv2d(%x, %w, %b, %s, %p, %d, %g)\n%a = aten::add(%c, %z, %one)\n%y = aten::relu_(%a)",
    options: &[],
    build: |_| AnyPass::graph(FuseFrozenConvAddRelu),
};

/// The pass `fuse-frozen-conv-add-relu`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseFrozenConvAddRelu;

impl GraphPass<TorchScript> for FuseFrozenConvAddRelu {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        fold::each(graph, cx, "relus fused", &["aten::relu"], |graph, node, db| {
            let producer = only_for(graph, node, db)?;
            let is_convolution = |n: NodeId| fold::Layer::convolution(graph, n, db).is_some();
            let is_sum = || {
                let summands = graph.operands(producer).take(2);
                graph.kind_name(producer) == "aten::add"
                    && summands.filter_map(|v| graph.defining_node(v)).any(is_convolution)
            };
            if !is_convolution(producer) && !is_sum() {
                return None;
            }
            let in_place = graph.ctx().symbol("aten::relu_");
            graph.set_kind(node, in_place);
            Some(())
        });
        Ok(())
    }
}

/// Returns the node that computes operand 0 of `node`, if `node` is the only user.
fn only_for(graph: &Graph, node: NodeId, db: &AliasDb) -> Option<NodeId> {
    graph.single_use(graph.operand(node, 0)?)?;
    fold::sole_producer(graph, node, db)
}
