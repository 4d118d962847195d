//! Gradient flags of the values in a trace, which are part of their types as in PyTorch.

use super::{Result, Tracing};
use frazil_ir::{AttributeKind, Constant, TensorType, TypeId, TypeKind, ValueId, symbols};
use frazil_runtime::Value;

impl Tracing<'_> {
    /// Registers the parameters that require gradients.
    pub(super) fn find_parameters(&mut self) -> Result<()> {
        let module = self.module;
        for (id, object) in module.objects() {
            let Some(class) = module.unit.class(object.class) else {
                continue;
            };
            for (slot, (attribute, constant)) in class.attributes.values().zip(&object.slots).enumerate() {
                let requires = matches!(constant, Constant::Tensor(tensor) if tensor.requires_grad);
                if attribute.kind != AttributeKind::Parameter || !requires {
                    continue;
                }
                if let Some(Value::Tensor(cell)) = self.object(id)?.slot(slot) {
                    self.parameters.insert(cell.address());
                }
            }
        }
        Ok(())
    }

    /// Returns whether the results of a node of kind `kind` with these operands require gradients, if the results' dtypes allow it.
    pub(super) fn propagates(&self, kind: &str, operands: &[ValueId]) -> bool {
        let entry = self.registry.entry(kind);
        let never = entry.is_some_and(|entry| entry.traits().without_gradients);
        !never && operands.iter().any(|&operand| self.requires_gradient(operand))
    }

    fn requires_gradient(&self, value: ValueId) -> bool {
        if self.gradients.contains(&value) {
            return true;
        }
        let is_container = |&node: &_| {
            matches!(
                self.graph.kind(node),
                symbols::PRIM_LIST_CONSTRUCT | symbols::PRIM_TUPLE_CONSTRUCT
            )
        };
        let node = self.graph.defining_node(value).filter(is_container);
        node.is_some_and(|node| self.graph.operands(node).any(|item| self.requires_gradient(item)))
    }

    /// Returns the type of a tensor with the gradient flag, if its dtype can have gradients.
    pub(super) fn with_gradient(&self, ty: TypeId) -> Option<TypeId> {
        let TypeKind::Tensor(tensor) = self.ctx.type_kind(ty) else {
            return None;
        };
        let can = tensor
            .dtype
            .is_some_and(|dtype| dtype.is_floating_point() || dtype.is_complex());
        can.then(|| {
            self.ctx.type_of_kind(TypeKind::Tensor(TensorType {
                requires_grad: Some(true),
                ..tensor
            }))
        })
    }

    /// Sets the gradient flag in the types of values that require gradients, if their dtypes can.
    pub(super) fn mark_gradients(&mut self, values: &[ValueId]) {
        for &value in values {
            match self.with_gradient(self.graph.ty(value)) {
                Some(ty) => {
                    self.graph.set_type(value, ty);
                    self.gradients.insert(value);
                }
                // The elements of a list or tuple are handled when it is unpacked.
                None if !self.ctx.is_tensor(self.graph.ty(value)) => {
                    self.gradients.insert(value);
                }
                None => {}
            }
        }
    }
}
