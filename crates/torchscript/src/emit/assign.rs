//! Compilation of assignments.

use frazil_ir::{TypeId, TypeKind, ValueId};
use ruff_python_ast::{Expr, ExprSubscript, Operator, StmtAugAssign};
use ruff_text_size::Ranged;

use super::Emitter;
use super::matching::Arguments;
use super::sugared::Sugared;
use crate::error::Result;

impl<'f> Emitter<'_, 'f> {
    /// Emits `target = value`.
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
                    _ => {
                        let message = format!("{} cannot be used as a tuple", self.shown(self.ty(whole)));
                        return self.error("assignment", message, node);
                    }
                }
            }
        };
        if targets.iter().filter(|target| target.is_starred_expr()).count() > 1 {
            return self.error("assignment", "multiple starred expressions in assignment", node);
        }
        let star = targets.iter().position(|target| target.is_starred_expr());
        let fits = if star.is_some() {
            parts.len() + 1 >= targets.len()
        } else {
            parts.len() == targets.len()
        };
        if !fits {
            let (need, found) = (targets.len(), parts.len());
            let message = if found < need {
                format!("need {need} values to unpack but found only {found}")
            } else {
                format!("too many values to unpack: need {need} but found {found}")
            };
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

    /// Emits `del target`.
    pub(super) fn delete(&mut self, target: &'f Expr) -> Result<()> {
        match target {
            Expr::Name(name) => {
                let mut found = false;
                for frame in &mut self.frames {
                    found |= frame.variables.remove(name.id.as_str()).is_some();
                }
                if found {
                    return Ok(());
                }
                self.error("undefined", format!("undefined value {}", name.id), target)
            }
            Expr::Subscript(subscript) if subscript.slice.is_slice_expr() => {
                let message = "del statements only support deletion at a single index, slicing is not supported (see https://github.com/pytorch/pytorch/issues/31430)";
                self.error("statement", message, target)
            }
            Expr::Subscript(subscript) => {
                let container = self.expr(&subscript.value, None)?;
                let index = self.expr(&subscript.slice, None)?;
                self.builtin("aten::Delete", Arguments::of(&[container, index]), target)
                    .map(drop)
            }
            _ => self.error(
                "statement",
                "del statements are only supported for deleting indices and variables",
                target,
            ),
        }
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
        self.check_item(container, index, node)?;
        let index = self.expr(index, None)?;
        self.builtin("aten::_set_item", Arguments::of(&[container, index, value]), node)
            .map(drop)
    }

    /// Checks that elements of `container` can be assigned.
    fn check_item(&self, container: ValueId, index: &Expr, node: &impl Ranged) -> Result<()> {
        match self.kind_of(container) {
            TypeKind::List(_) | TypeKind::Dict(..) | TypeKind::Class(_) | TypeKind::Interface(_) => {}
            _ => {
                let message = format!(
                    "{} does not support subscripted assignment",
                    self.shown(self.ty(container))
                );
                return self.error("assignment", message, node);
            }
        }
        if index.is_slice_expr() {
            let message = "Sliced expression not yet supported for subscripted assignment. File a bug if you want this";
            return self.error("assignment", message, node);
        }
        Ok(())
    }

    /// Emits `x[i, j] = value`: a copy into the selected view, or `index_put_` if tensors are among the indices.
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
                let (dtype_name, device_name) = (self.names.ctx().symbol("dtype"), self.names.ctx().symbol("device"));
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
        match self.index_list(&indices, node) {
            Some(indices) => self.builtin("aten::index_put_", Arguments::of(&[view, indices, value]), node),
            None => self.builtin("aten::copy_", Arguments::of(&[view, value]), node),
        }
        .map(drop)
    }

    pub(super) fn augmented(&mut self, assign: &'f StmtAugAssign) -> Result<()> {
        let target = &*assign.target;
        if assign.op == Operator::FloorDiv && self.file.rules.is_written() {
            return self.error(
                "assignment",
                "unsupported kind of augmented assignment: FloorDiv",
                assign,
            );
        }
        if let Expr::Subscript(subscript) = target {
            return self.augmented_item(subscript, assign);
        }
        let left = self.expr(target, None)?;
        let right = self.expr(&assign.value, None)?;
        let value = self.augment(assign, left, right)?;
        self.assign_to(target, Sugared::Value(value), None)
    }

    /// Returns the in-place operator for an augmented assignment, if values of the type of `left` have one.
    fn in_place(&self, op: Operator, left: ValueId) -> Option<&'static str> {
        Some(match (op, self.kind_of(left)) {
            (Operator::Add, TypeKind::Tensor(_) | TypeKind::List(_)) => "aten::add_",
            (Operator::Sub, TypeKind::Tensor(_)) => "aten::sub_",
            (Operator::Mult, TypeKind::Tensor(_) | TypeKind::List(_)) => "aten::mul_",
            (Operator::Div, TypeKind::Tensor(_)) => "aten::div_",
            (Operator::Mod, TypeKind::Tensor(_)) => "aten::fmod_",
            (Operator::BitAnd, TypeKind::Tensor(_)) => "aten::bitwise_and",
            (Operator::BitOr, TypeKind::Tensor(_)) => "aten::bitwise_or",
            (Operator::BitXor, TypeKind::Tensor(_)) => "aten::bitwise_xor",
            _ => return None,
        })
    }

    /// Returns the new value of `left` after an augmented assignment, in place if its type has such an operator.
    fn augment(&mut self, assign: &'f StmtAugAssign, left: ValueId, right: ValueId) -> Result<ValueId> {
        match self.in_place(assign.op, left) {
            Some(operator) => self.builtin(operator, Arguments::of(&[left, right]), assign),
            None => self.binary(assign.op, left, right, assign),
        }
    }

    /// Emits `x[i] += value`.
    fn augmented_item(&mut self, target: &'f ExprSubscript, assign: &'f StmtAugAssign) -> Result<()> {
        let container = self.expr(&target.value, None)?;
        if let TypeKind::Tensor(_) = self.kind_of(container) {
            return self.augmented_view(container, &target.slice, assign);
        }
        self.check_item(container, &target.slice, assign)?;
        let index = self.expr(&target.slice, None)?;
        let left = self.builtin("aten::__getitem__", Arguments::of(&[container, index]), assign)?;
        let right = self.expr(&assign.value, None)?;
        let value = self.augment(assign, left, right)?;
        self.builtin("aten::_set_item", Arguments::of(&[container, index, value]), assign)
            .map(drop)
    }

    /// Emits `x[i] += value` of a tensor: in place on the view, or with a write-back if tensors are among the indices.
    fn augmented_view(&mut self, tensor: ValueId, index: &'f Expr, assign: &'f StmtAugAssign) -> Result<()> {
        let (view, indices) = self.tensor_view(tensor, index, assign)?;
        let indices = self.index_list(&indices, assign);
        let right = self.expr(&assign.value, None)?;
        let element = match indices {
            Some(indices) => self.builtin("aten::index", Arguments::of(&[view, indices]), assign)?,
            None => view,
        };
        let value = self.augment(assign, element, right)?;
        let (operator, operands) = match indices {
            Some(indices) => ("aten::index_put_", vec![view, indices, value]),
            None => return Ok(()),
        };
        self.builtin(operator, Arguments::of(&operands), assign).map(drop)
    }
}
