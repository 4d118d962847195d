//! Removal of profiling information from types: `clear-profiling-information`.
//!
//! The types of tensors become plain `Tensor`; those of lists and other containers do not change. Bodies of forks are not changed, since profiling does not
//! enter them.
//!
//! **Sound**: types become less precise, and nothing else changes.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::retype::retype;
use frazil_ir::{Graph, types};

/// Declaration of the pass `clear-profiling-information` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "clear-profiling-information",
    summary: "Removes shapes from the types of tensors, but not from those of lists of tensors.",
    before: "graph(%x : Float(2, 3), %l : Float(2)[]):
  %y : Float(2, 3) = aten::relu(%x)
  return (%y, %l)
",
    after: "graph(%x : Tensor, %l : Float(2)[]):
  %y : Tensor = aten::relu(%x)
  return (%y, %l)
",
    options: &[],
    build: |_| AnyPass::graph(ClearProfilingInformation),
};

/// The pass `clear-profiling-information`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct ClearProfilingInformation;

impl GraphPass<TorchScript> for ClearProfilingInformation {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        retype(graph, cx, |ctx, ty| if ctx.is_tensor(ty) { types::TENSOR } else { ty });
        Ok(())
    }
}
