//! Unrolling loops of constant length: `constant-loop-unrolling`.
//!
//! Works like [`loop-unrolling`](crate::loop_unrolling), but only for loops whose length is a constant, and with bodies of any size.

use crate::loop_unrolling::unroll_all;
use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use frazil_ir::Graph;

/// Declaration of the pass `constant-loop-unrolling` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "constant-loop-unrolling",
    summary: "Unrolls loops of constant length.",
    before: crate::loop_unrolling::INFO.before,
    after: crate::loop_unrolling::INFO.after,
    options: &[],
    build: |_| AnyPass::graph(ConstantLoopUnrolling),
};

/// The pass `constant-loop-unrolling`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstantLoopUnrolling;

impl GraphPass<TorchScript> for ConstantLoopUnrolling {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        unroll_all(graph, cx, |_, _, length| length.is_some())
    }
}
