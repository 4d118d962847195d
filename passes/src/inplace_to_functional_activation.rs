//! Functional activations: `inplace-to-functional-activation`.
//!
//! Works like [`remove-tensor-mutation`](crate::remove_tensor_mutation), for activations alone, so that passes that writes prevent can process them.

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::remove_tensor_mutation::remove_where;
use frazil_ir::{Graph, NodeId};

/// Declaration of the pass `inplace-to-functional-activation` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "inplace-to-functional-activation",
    summary: "Makes in-place activations functional if the written tensor cannot be observed.",
    before: "graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  %z : Tensor = aten::relu_(%y)
  return (%y)
",
    after: "graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  %4 : Tensor = aten::relu(%y)
  return (%4)
",
    options: &[],
    build: |_| AnyPass::graph(InplaceToFunctionalActivation),
};

/// The pass `inplace-to-functional-activation`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct InplaceToFunctionalActivation;

impl GraphPass<TorchScript> for InplaceToFunctionalActivation {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let catalogue = cx.operators().catalogue();
        let is_activation = |g: &Graph, n: NodeId| {
            g.kind_name(n).ends_with('_') && catalogue.properties(g.kind(n)).activation.is_some()
        };
        remove_where(graph, cx, &is_activation)
    }
}
