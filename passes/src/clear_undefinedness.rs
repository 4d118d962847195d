//! Removal of undefinedness from types: `clear-undefinedness`.
//!
//! Tensor types lose the property of being undefined; with `only-undefined=false`, as in PyTorch, all other properties too. Lists of tensors are included;
//! other containers are not.
//!
//! **Sound**: types become less precise, and nothing else changes.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support::retype::{map_tensors, retype};
use frazil_ir::{Graph, TensorType, TypeKind};

/// Declaration of the pass `clear-undefinedness` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "clear-undefinedness",
    summary: "Removes from tensor types whether the tensor is undefined.",
    before: "graph(%x : Float(2, 3), %l : Float(2)[]):
  %y : Float(2, 3) = aten::relu(%x)
  return (%y, %l)
",
    after: "graph(%x : Tensor, %l : Tensor[]):
  %y : Tensor = aten::relu(%x)
  return (%y, %l)
",
    options: &[OptionInfo {
        name: "only-undefined",
        kind: OptionKind::Bool,
        default: "false",
        doc: "Keep sizes, dtypes and devices in the types.",
    }],
    build: |options| {
        AnyPass::graph(ClearUndefinedness {
            only_undefined: options.bool("only-undefined"),
        })
    },
};

/// The pass `clear-undefinedness`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct ClearUndefinedness {
    /// Removes only the property whether tensors are undefined, and keeps the others in the types.
    pub only_undefined: bool,
}

impl GraphPass<TorchScript> for ClearUndefinedness {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let clear = |ty: TensorType| match self.only_undefined {
            true => TensorType { undefined: None, ..ty },
            false => TensorType::ANY,
        };
        retype(graph, cx, |ctx, ty| match ctx.type_kind(ty) {
            TypeKind::Tensor(_) => map_tensors(ctx, ty, &clear),
            TypeKind::List(e) if ctx.is_tensor(e) => map_tensors(ctx, ty, &clear),
            _ => ty,
        });
        Ok(())
    }
}
