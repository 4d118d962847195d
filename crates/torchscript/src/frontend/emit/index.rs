//! Subscripts: elements, slices, and views of tensors.

use std::sync::Arc;

use frazil_ir::{Constant, TypeKind, ValueId, types};
use ruff_python_ast::{Expr, ExprSubscript, UnaryOp};
use ruff_text_size::Ranged;

use super::Emitter;
use super::matching::Arguments;
use super::sugared::Sugared;
use crate::frontend::Result;
use crate::frontend::program::number;

impl<'f> Emitter<'_, '_, 'f> {
    pub(super) fn subscript(&mut self, subscript: &'f ExprSubscript) -> Result<Sugared<'f>> {
        let base = self.sugared(&subscript.value, None)?;
        if let (Sugared::Tuple(items), Some(index)) = (&base, constant_index(&subscript.slice)) {
            let at = if index < 0 { index + items.len() as i64 } else { index };
            match usize::try_from(at).ok().and_then(|at| items.get(at)) {
                Some(item) => return Ok(item.clone()),
                None => return self.error("index", "the index is out of the tuple's range", subscript),
            }
        }
        let container = self.value(base, &*subscript.value)?;
        let ctx = Arc::clone(&self.program.ctx);
        let value = match (self.kind_of(container), &*subscript.slice) {
            (TypeKind::Tensor(_), index) => {
                let (view, indices) = self.tensor_view(container, index, subscript)?;
                match indices {
                    Some(indices) => {
                        let arguments = Arguments {
                            positional: vec![view, indices],
                            ..Arguments::default()
                        };
                        self.builtin("aten::index", arguments, subscript)?
                    }
                    None => view,
                }
            }
            (TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements), Expr::Slice(slice)) => {
                let elements = ctx.types(elements);
                let bound = |expr: Option<&Expr>, default: i64| match expr {
                    None => Some(default),
                    Some(expr) => constant_index(expr),
                };
                let length = elements.len() as i64;
                let (Some(low), Some(high), None) = (
                    bound(slice.lower.as_deref(), 0),
                    bound(slice.upper.as_deref(), length),
                    &slice.step,
                ) else {
                    return self.error("index", "the bounds of a tuple's slice must be constants", subscript);
                };
                let clamp = |at: i64| (if at < 0 { at + length } else { at }).clamp(0, length) as usize;
                let picked = elements
                    .get(clamp(low)..clamp(high).max(clamp(low)))
                    .unwrap_or_default();
                self.locate(subscript);
                let node = self.node("prim::TupleSlice", &[container], &[ctx.tuple_of(picked)]);
                self.graph
                    .set_attribute(node, ctx.symbol("beg"), Constant::Int(clamp(low) as i64));
                self.graph
                    .set_attribute(node, ctx.symbol("end"), Constant::Int(clamp(high) as i64));
                match self.graph.output(node) {
                    Some(output) => output,
                    None => return self.error("index", "an empty slice", subscript),
                }
            }
            (TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements), index) => {
                let elements = ctx.types(elements);
                let position = self.expr(index, None)?;
                let at = self.graph.constant(position).and_then(|c| c.as_int());
                let length = elements.len() as i64;
                let at = at.map(|at| if at < 0 { at + length } else { at });
                let ty = match at {
                    Some(at) => usize::try_from(at).ok().and_then(|at| elements.get(at)).copied(),
                    None => {
                        // A tuple of equal elements may be indexed by a variable.
                        let mut joined = elements.first().copied();
                        for &ty in elements {
                            joined = joined.and_then(|before| self.join(before, ty));
                        }
                        joined
                    }
                };
                let Some(ty) = ty else {
                    return self.error(
                        "index",
                        "the index is out of the tuple's range, or not constant",
                        subscript,
                    );
                };
                self.locate(subscript);
                self.op("prim::TupleIndex", &[container, position], ty)
            }
            (_, Expr::Slice(slice)) => {
                let mut positional = vec![container];
                for (bound, default) in [
                    (&slice.lower, Constant::None),
                    (&slice.upper, Constant::None),
                    (&slice.step, Constant::Int(1)),
                ] {
                    positional.push(match bound {
                        Some(bound) => self.expr(bound, None)?,
                        None => self.constant(default),
                    });
                }
                self.builtin(
                    "aten::slice",
                    Arguments {
                        positional,
                        ..Arguments::default()
                    },
                    subscript,
                )?
            }
            (TypeKind::Class(_) | TypeKind::Interface(_), index) => {
                let index = self.expr(index, None)?;
                let method = self.attribute(Sugared::Value(container), "__getitem__", subscript)?;
                let arguments = Arguments {
                    positional: vec![index],
                    ..Arguments::default()
                };
                return self.call_sugared(method, arguments, subscript);
            }
            (_, index) => {
                let index = self.expr(index, None)?;
                let arguments = Arguments {
                    positional: vec![container, index],
                    ..Arguments::default()
                };
                self.builtin("aten::__getitem__", arguments, subscript)?
            }
        };
        Ok(Sugared::Value(value))
    }

    /// The view of a tensor that integers, slices, `None` and `...` select, and the list of tensor indices where there are any.
    pub(super) fn tensor_view(
        &mut self,
        tensor: ValueId,
        index: &'f Expr,
        node: &impl Ranged,
    ) -> Result<(ValueId, Option<ValueId>)> {
        let parts: Vec<&'f Expr> = match index {
            Expr::Tuple(tuple) => tuple.elts.iter().collect(),
            one => vec![one],
        };
        let ctx = Arc::clone(&self.program.ctx);
        let mut view = tensor;
        let mut dim = 0i64;
        let mut tensors: Vec<(i64, ValueId)> = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            match part {
                Expr::EllipsisLiteral(_) => {
                    // From here on dimensions count from the end.
                    let rest = parts.get(at + 1..).unwrap_or_default();
                    let taken = rest.iter().filter(|part| !part.is_none_literal_expr()).count();
                    dim = -(taken as i64);
                    if rest.iter().any(|part| part.is_none_literal_expr()) {
                        return self.error("index", "`None` after `...` is not supported", *part);
                    }
                }
                Expr::NoneLiteral(_) => {
                    let at = self.literal(Constant::Int(dim));
                    view = self.builtin(
                        "aten::unsqueeze",
                        Arguments {
                            positional: vec![view, at],
                            ..Arguments::default()
                        },
                        node,
                    )?;
                    dim += 1;
                }
                Expr::Slice(slice) => {
                    let at = self.literal(Constant::Int(dim));
                    let mut positional = vec![view, at];
                    for (bound, default) in [
                        (&slice.lower, Constant::None),
                        (&slice.upper, Constant::None),
                        (&slice.step, Constant::Int(1)),
                    ] {
                        positional.push(match bound {
                            Some(bound) => self.expr(bound, None)?,
                            None => self.constant(default),
                        });
                    }
                    view = self.builtin(
                        "aten::slice",
                        Arguments {
                            positional,
                            ..Arguments::default()
                        },
                        node,
                    )?;
                    dim += 1;
                }
                part => {
                    let index = self.expr(part, None)?;
                    match self.kind_of(index) {
                        TypeKind::Int => {
                            let at = self.literal(Constant::Int(dim));
                            let arguments = Arguments {
                                positional: vec![view, at, index],
                                ..Arguments::default()
                            };
                            view = self.builtin("aten::select", arguments, node)?;
                            if dim < 0 {
                                // One dimension fewer stands behind the ellipsis.
                                dim += 1;
                            }
                        }
                        TypeKind::Tensor(_) => {
                            tensors.push((dim, index));
                            dim += 1;
                        }
                        TypeKind::List(_) => {
                            let arguments = Arguments {
                                positional: vec![index],
                                ..Arguments::default()
                            };
                            let index = self.builtin("aten::tensor", arguments, *part)?;
                            tensors.push((dim, index));
                            dim += 1;
                        }
                        _ => {
                            let message = format!("a tensor cannot be indexed by a `{}`", self.shown(self.ty(index)));
                            return self.error("index", message, *part);
                        }
                    }
                }
            }
        }
        if tensors.is_empty() {
            return Ok((view, None));
        }
        if tensors.iter().any(|(dim, _)| *dim < 0) {
            return self.error("index", "a tensor index after `...` is not supported", node);
        }
        let last = tensors.iter().map(|(dim, _)| *dim).max().unwrap_or(0);
        let mut items = Vec::new();
        for at in 0..=last {
            items.push(match tensors.iter().find(|(dim, _)| *dim == at) {
                Some((_, index)) => *index,
                None => self.none(),
            });
        }
        self.locate(node);
        let element = ctx.optional_of(types::TENSOR);
        Ok((view, Some(self.builder().list(element, &items))))
    }
}

/// The value of an index that is a literal.
fn constant_index(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::NumberLiteral(literal) => number(&literal.value)?.as_int(),
        Expr::UnaryOp(op) if op.op == UnaryOp::USub => constant_index(&op.operand)?.checked_neg(),
        _ => None,
    }
}
