//! Types without what is known of tensors: `erase-shape-information`.
//!
//! Every tensor type, also within lists, tuples, dictionaries and optionals, becomes plain `Tensor`. Bodies of forks are done too.
//!
//! **Sound**: less is said, and nothing else changes.

use crate::manager::{AnyPass, GraphPass, PassContext, PassError};
use crate::registry::PassInfo;
use crate::support;
use crate::support::retype::{map_tensors, retype};
use frazil_ir::{Graph, TensorType};

/// How the pass is named.
pub static INFO: PassInfo = PassInfo {
    name: "erase-shape-information",
    summary: "Makes all tensor types plain.",
    before: "graph(%x : Float(2, 3)):
  %l : Float(2, 3)[] = prim::ListConstruct(%x)
  return (%l)
",
    after: "graph(%x : Tensor):
  %l : Tensor[] = prim::ListConstruct(%x)
  return (%l)
",
    options: &[],
    build: |_| AnyPass::graph(EraseShapeInformation),
};

/// See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct EraseShapeInformation;

impl GraphPass for EraseShapeInformation {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        retype(graph, cx, |ctx, ty| map_tensors(ctx, ty, &|_| TensorType::ANY));
        Ok(())
    }
}
