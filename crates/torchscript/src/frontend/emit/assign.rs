//! Assignments.

use frazil_ir::{Constant, TypeId, TypeKind, ValueId, types};
use ruff_python_ast::{Expr, Operator, StmtAugAssign};
use ruff_text_size::Ranged;

use super::Emitter;
use super::matching::Arguments;
use super::sugared::Sugared;
use crate::frontend::Result;

impl<'f> Emitter<'_, '_, 'f> {
    /// `target = value`
    pub(super) fn assign_to(&mut self, target: &'f Expr, value: Sugared<'f>, declared: Option<TypeId>) -> Result<()> {
        match target {
            Expr::Name(name) => {
                let value = match value {
                    Sugared::Tuple(items)
                        if items
                            .iter()
                            .all(|item| matches!(item, Sugared::Value(_) | Sugared::Tuple(_))) =>
                    {
                        Sugared::Value(self.value(Sugared::Tuple(items), target)?)
                    }
                    other => other,
                };
                self.assign(&name.id, value, declared, target)
            }
            Expr::Tuple(tuple) => self.assign_parts(&tuple.elts, value, target),
            Expr::List(list) => self.assign_parts(&list.elts, value, target),
            Expr::Attribute(attribute) => {
                let object = self.expr(&attribute.value, None)?;
                let value = self.value(value, target)?;
                self.set_attribute(object, &attribute.attr, value, target)
            }
            Expr::Subscript(subscript) => {
                let container = self.expr(&subscript.value, None)?;
                let value = self.value(value, target)?;
                self.set_item(container, &subscript.slice, value, target)
            }
            other => self.error("assignment", "this cannot be assigned to", other),
        }
    }

    pub(super) fn assign_parts(&mut self, targets: &'f [Expr], value: Sugared<'f>, node: &impl Ranged) -> Result<()> {
        let parts: Vec<Sugared<'f>> = match value {
            Sugared::Tuple(parts) => parts,
            other => {
                let whole = self.value(other, node)?;
                self.locate(node);
                match self.kind_of(whole) {
                    TypeKind::Tuple(_) | TypeKind::NamedTuple(..) => self
                        .builder()
                        .unpack_tuple(whole)
                        .into_iter()
                        .map(Sugared::Value)
                        .collect(),
                    TypeKind::List(element) => {
                        let unpack = self.node("prim::ListUnpack", &[whole], &vec![element; targets.len()]);
                        self.graph
                            .node_outputs(unpack)
                            .iter()
                            .map(|&part| Sugared::Value(part))
                            .collect()
                    }
                    TypeKind::Tensor(_) => {
                        let zero = self.literal(Constant::Int(0));
                        let arguments = Arguments {
                            positional: vec![whole, zero],
                            ..Arguments::default()
                        };
                        let list = self.builtin("aten::unbind", arguments, node)?;
                        let unpack = self.node("prim::ListUnpack", &[list], &vec![types::TENSOR; targets.len()]);
                        self.graph
                            .node_outputs(unpack)
                            .iter()
                            .map(|&part| Sugared::Value(part))
                            .collect()
                    }
                    _ => {
                        let message = format!("a `{}` cannot be taken apart", self.shown(self.ty(whole)));
                        return self.error("assignment", message, node);
                    }
                }
            }
        };
        let star = targets.iter().position(|target| target.is_starred_expr());
        let fits = if star.is_some() {
            parts.len() + 1 >= targets.len()
        } else {
            parts.len() == targets.len()
        };
        if !fits {
            let message = format!("{} values for {} names", parts.len(), targets.len());
            return self.error("assignment", message, node);
        }
        let starred = parts.len() + 1 - targets.len().min(parts.len() + 1);
        let mut parts = parts.into_iter();
        for target in targets {
            match target {
                Expr::Starred(star) => {
                    let rest: Vec<Sugared<'f>> = parts.by_ref().take(starred).collect();
                    self.assign_to(&star.value, Sugared::Tuple(rest), None)?;
                }
                target => {
                    if let Some(part) = parts.next() {
                        self.assign_to(target, part, None)?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn set_item(
        &mut self,
        container: ValueId,
        index: &'f Expr,
        value: ValueId,
        node: &impl Ranged,
    ) -> Result<()> {
        if let TypeKind::Tensor(_) = self.kind_of(container) {
            return self.set_tensor_item(container, index, value, node);
        }
        let index = self.expr(index, None)?;
        let arguments = Arguments {
            positional: vec![container, index, value],
            ..Arguments::default()
        };
        self.builtin("aten::_set_item", arguments, node).map(drop)
    }

    /// `x[i, j] = value`: a copy into the selected view, or `index_put_` where tensors select.
    pub(super) fn set_tensor_item(
        &mut self,
        tensor: ValueId,
        index: &'f Expr,
        value: ValueId,
        node: &impl Ranged,
    ) -> Result<()> {
        let (view, indices) = self.tensor_view(tensor, index, node)?;
        let value = match self.kind_of(value) {
            TypeKind::Tensor(_) => value,
            _ => {
                let of = |this: &mut Self, operator| {
                    this.builtin(
                        operator,
                        Arguments {
                            positional: vec![view],
                            ..Arguments::default()
                        },
                        node,
                    )
                };
                let (dtype, device) = (of(self, "prim::dtype")?, of(self, "prim::device")?);
                let (dtype_name, device_name) = (self.program.ctx.symbol("dtype"), self.program.ctx.symbol("device"));
                let keywords = vec![(dtype_name, dtype), (device_name, device)];
                self.builtin(
                    "aten::tensor",
                    Arguments {
                        object: None,
                        positional: vec![value],
                        keywords,
                    },
                    node,
                )?
            }
        };
        let arguments = match indices {
            Some(indices) => Arguments {
                positional: vec![view, indices, value],
                ..Arguments::default()
            },
            None => Arguments {
                positional: vec![view, value],
                ..Arguments::default()
            },
        };
        let operator = if indices.is_some() {
            "aten::index_put_"
        } else {
            "aten::copy_"
        };
        self.builtin(operator, arguments, node).map(drop)
    }

    pub(super) fn augmented(&mut self, assign: &'f StmtAugAssign) -> Result<()> {
        let target = &*assign.target;
        let left = self.expr(target, None)?;
        let right = self.expr(&assign.value, None)?;
        let in_place = match (assign.op, self.kind_of(left)) {
            (Operator::Add, TypeKind::Tensor(_) | TypeKind::List(_)) => Some("aten::add_"),
            (Operator::Sub, TypeKind::Tensor(_)) => Some("aten::sub_"),
            (Operator::Mult, TypeKind::Tensor(_) | TypeKind::List(_)) => Some("aten::mul_"),
            (Operator::Div, TypeKind::Tensor(_)) => Some("aten::div_"),
            (Operator::Mod, TypeKind::Tensor(_)) => Some("aten::fmod_"),
            (Operator::BitAnd, TypeKind::Tensor(_)) => Some("aten::bitwise_and"),
            (Operator::BitOr, TypeKind::Tensor(_)) => Some("aten::bitwise_or"),
            (Operator::BitXor, TypeKind::Tensor(_)) => Some("aten::bitwise_xor"),
            _ => None,
        };
        let value = match in_place {
            Some(operator) => {
                let arguments = Arguments {
                    positional: vec![left, right],
                    ..Arguments::default()
                };
                self.builtin(operator, arguments, assign)?
            }
            None => self.binary(assign.op, left, right, assign)?,
        };
        match target {
            Expr::Subscript(subscript) if in_place.is_some() && matches!(self.kind_of(left), TypeKind::Tensor(_)) => {
                // The element of a list of tensors was changed in place, and so was the view of a tensor.
                let _ = subscript;
                Ok(())
            }
            _ => self.assign_to(target, Sugared::Value(value), None),
        }
    }
}
