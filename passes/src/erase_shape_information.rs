//! Removal of shapes from types: `erase-shape-information`.
//!
//! Every tensor type, also within lists, tuples, dictionaries and optionals, becomes plain `Tensor`. Bodies of forks are included.
//!
//! **Sound**: types become less precise, and nothing else changes.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::retype::{all_values, map_tensors, retype};
use frazil_ir::{Graph, TensorType};

/// Declaration of the pass `erase-shape-information` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "erase-shape-information",
    summary: "Replaces all tensor types by `Tensor`.",
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

/// The pass `erase-shape-information`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct EraseShapeInformation;

/// Replaces the types of all tensors except constants by `Tensor`, including bodies of forks, because shapes from a trace or profile may not hold for every
/// call. Types of constants always hold and are kept.
pub(crate) fn erase_shapes_of_variables(graph: &mut Graph) -> Result<(), PassError> {
    support::for_each_subgraph(graph, erase_shapes_of_variables)?;
    let ctx = graph.ctx().clone();
    for value in all_values(graph) {
        let plain = map_tensors(&ctx, graph.ty(value), &|_| TensorType::ANY);
        if graph.constant(value).is_none() && graph.ty(value) != plain {
            graph.set_type(value, plain);
        }
    }
    Ok(())
}

impl GraphPass<TorchScript> for EraseShapeInformation {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        retype(graph, cx, |ctx, ty| map_tensors(ctx, ty, &|_| TensorType::ANY));
        Ok(())
    }
}
