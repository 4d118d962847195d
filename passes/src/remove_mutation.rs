//! Removal of unobservable mutation: `remove-mutation`.
//!
//! First [lists](crate::remove_list_mutation), then [tensors](crate::remove_tensor_mutation).

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::remove_list_mutation::RemoveListMutation;
use crate::remove_tensor_mutation::RemoveTensorMutation;
use frazil_ir::Graph;

/// Declaration of the pass `remove-mutation` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "remove-mutation",
    summary: "Replaces writes to lists and tensors that the graph creates by new lists and tensors.",
    before: "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::relu(%x)
  %l : Tensor[] = prim::ListConstruct()
  %a : Tensor[] = aten::append(%l, %y)
  %z : Tensor = aten::neg(%x)
  %b : Tensor = aten::add_(%z, %1, %1)
  return (%l, %z)
",
    after: "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::relu(%x)
  %l : Tensor[] = prim::ListConstruct(%y)
  %z : Tensor = aten::neg(%x)
  %8 : Tensor = aten::add(%z, %1, %1)
  return (%l, %8)
",
    options: &[],
    build: |_| AnyPass::graph(RemoveMutation),
};

/// The pass `remove-mutation`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveMutation;

impl GraphPass<TorchScript> for RemoveMutation {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        RemoveListMutation.run(graph, cx)?;
        RemoveTensorMutation.run(graph, cx)
    }
}
