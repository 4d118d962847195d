//! Compilation of subscripts: elements, slices, and views of tensors.

use std::sync::Arc;

use frazil_ir::{Constant, DType, TypeId, TypeKind, ValueId, types};
use ruff_python_ast::{Expr, ExprSlice, ExprSubscript, UnaryOp};
use ruff_text_size::Ranged;

use super::Emitter;
use super::matching::Arguments;
use super::sugared::Sugared;
use crate::error::Result;
use crate::source::number;

impl<'f> Emitter<'_, 'f> {
    pub(super) fn subscript(&mut self, subscript: &'f ExprSubscript, hint: Option<TypeId>) -> Result<Sugared<'f>> {
        let base = self.sugared(&subscript.value, None)?;
        if let (Sugared::Tuple(items), Some(index)) = (&base, constant_index(&subscript.slice)) {
            let at = if index < 0 { index + items.len() as i64 } else { index };
            match usize::try_from(at).ok().and_then(|at| items.get(at)) {
                Some(item) => return Ok(item.clone()),
                None => return self.tuple_range(items.len(), index, subscript),
            }
        }
        let container = self.value(base, &*subscript.value)?;
        let is_interface = hint.is_some_and(|ty| matches!(self.names.ctx().type_kind(ty), TypeKind::Interface(_)));
        if let TypeKind::Class(class) = self.kind_of(container)
            && self.names.definitions().container(class).is_some()
            && (!is_interface || subscript.slice.is_slice_expr() || constant_index(&subscript.slice).is_some())
        {
            return self.container_item(container, subscript);
        }
        let ctx = Arc::clone(self.names.ctx());
        let value = match (self.kind_of(container), &*subscript.slice) {
            (TypeKind::Tensor(_), index) => {
                let (view, indices) = self.tensor_view(container, index, subscript)?;
                match self.index_list(&indices, subscript) {
                    Some(indices) => self.builtin("aten::index", Arguments::of(&[view, indices]), subscript)?,
                    None => view,
                }
            }
            (TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements), Expr::Slice(slice)) => {
                let elements = ctx.types(elements).to_vec();
                self.tuple_slice(container, &elements, slice, subscript)?
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
                    return match self.graph.constant(position).and_then(|c| c.as_int()) {
                        Some(at) => self.tuple_range(elements.len(), at, subscript),
                        None => self.error(
                            "index",
                            "Cannot index into a tuple with a non-integer literal because we cannot resolve the output type",
                            subscript,
                        ),
                    };
                };
                self.locate(subscript);
                self.op("prim::TupleIndex", &[container, position], ty)
            }
            (TypeKind::List(_) | TypeKind::Str, Expr::Slice(slice)) => {
                let [lower, upper, step] = self.slice_bounds(slice)?;
                self.builtin(
                    "aten::slice",
                    Arguments::of(&[container, lower, upper, step]),
                    subscript,
                )?
            }
            // A container of modules, indexed by a value: what all of them are, the variable's declaration says.
            (TypeKind::Class(class), index)
                if let Some(item) = hint
                    && self.names.unit().method(class, ctx.symbol("__getitem__")).is_none() =>
            {
                let index = self.expr(index, None)?;
                self.locate(subscript);
                self.op("prim::ModuleContainerIndex", &[container, index], item)
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
            (kind, _) if !matches!(kind, TypeKind::List(_) | TypeKind::Dict(..) | TypeKind::Str) => {
                let message = format!("'{}' object is not subscriptable", self.shown(self.ty(container)));
                return self.error("index", message, subscript);
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

    /// Emits a slice of a tuple, such as `t[1:]`, whose bounds must be constant.
    fn tuple_slice(
        &mut self,
        tuple: ValueId,
        elements: &[TypeId],
        slice: &ExprSlice,
        node: &impl Ranged,
    ) -> Result<ValueId> {
        let bound = |expr: Option<&Expr>| match expr {
            None | Some(Expr::NoneLiteral(_)) => Some(None),
            Some(expr) => constant_index(expr).map(Some),
        };
        let bounds = [&slice.lower, &slice.upper, &slice.step].map(|part| bound(part.as_deref()));
        let [Some(lower), Some(upper), Some(step)] = bounds else {
            return self.error("index", "tuple slice bounds must be integer constants", node);
        };
        let (length, step) = (elements.len() as i64, step.unwrap_or(1));
        if step == 0 {
            return self.error("index", "slice step cannot be zero", node);
        }
        let least = if step < 0 { -1 } else { 0 };
        let clamp = |at: i64| (if at < 0 { at + length } else { at }).clamp(least, length + least);
        let (first, end) = if step > 0 { (0, length) } else { (length - 1, -1) };
        let (mut at, end) = (lower.map_or(first, clamp), upper.map_or(end, clamp));
        let mut picked = Vec::new();
        while (step > 0 && at < end) || (step < 0 && at > end) {
            let Some(&ty) = usize::try_from(at).ok().and_then(|at| elements.get(at)) else {
                break;
            };
            self.locate(node);
            let index = self.literal(Constant::Int(at));
            picked.push(self.op("prim::TupleIndex", &[tuple, index], ty));
            at = at.saturating_add(step);
        }
        self.locate(node);
        Ok(self.builder().tuple(&picked))
    }

    /// Emits the selection of a child of a container of modules by a constant, or of several by a slice.
    fn container_item(&mut self, container: ValueId, subscript: &'f ExprSubscript) -> Result<Sugared<'f>> {
        let names: Vec<String> = match self.kind_of(container) {
            TypeKind::Class(class) => self.names.definitions().container(class).unwrap_or_default().to_vec(),
            _ => Vec::new(),
        };
        let length = names.len() as i64;
        let at = match &*subscript.slice {
            Expr::Slice(slice) => {
                let bound = |part: Option<&Expr>, default: i64| match part {
                    None => Some(default),
                    Some(part) => constant_index(part).map(|at| if at < 0 { at + length } else { at }),
                };
                let bounds = (bound(slice.lower.as_deref(), 0), bound(slice.upper.as_deref(), length));
                let (Some(low), Some(high), None) = (bounds.0, bounds.1, &slice.step) else {
                    return self.error("index", "the bounds of a slice of modules must be constants", subscript);
                };
                let mut picked = Vec::new();
                for name in names
                    .get(low.clamp(0, length) as usize..high.clamp(low.max(0), length) as usize)
                    .unwrap_or_default()
                {
                    picked.push(self.attribute(Sugared::Value(container), name, subscript)?);
                }
                return Ok(Sugared::Tuple(picked));
            }
            Expr::StringLiteral(name) => names.iter().position(|known| known == name.value.to_str()),
            index => match constant_index(index) {
                Some(at) => usize::try_from(if at < 0 { at + length } else { at }).ok(),
                None => {
                    let message = "Expected integer literal for index but got a variable or non-integer. ModuleList/Sequential indexing is only supported with integer literals. For example, 'i = 4; self.layers[i](x)' will fail because i is not a literal. Enumeration is supported, e.g. 'for index, v in enumerate(self): out = v(inp)'";
                    return self.error("index", message, subscript);
                }
            },
        };
        match at.and_then(|at| names.get(at)) {
            Some(name) => self.attribute(Sugared::Value(container), name, subscript),
            None => self.error(
                "index",
                "Index out of range: the container has no such module",
                subscript,
            ),
        }
    }

    pub(super) fn tuple_range<T>(&self, length: usize, index: i64, node: &impl Ranged) -> Result<T> {
        let message = format!("Tuple index out of range. Tuple is length {length} and index is {index}");
        self.error("index", message, node)
    }

    /// Emits the view of a tensor that integers, slices, `None` and `...` select. Also returns the index tensors, each at its dimension. All indices are
    /// evaluated before the view is emitted; bounds of slices are evaluated with it.
    pub(super) fn tensor_view(
        &mut self,
        tensor: ValueId,
        index: &'f Expr,
        node: &impl Ranged,
    ) -> Result<(ValueId, Vec<Option<ValueId>>)> {
        let parts: &'f [Expr] = match index {
            Expr::Tuple(tuple) => &tuple.elts,
            one => std::slice::from_ref(one),
        };
        let head = parts
            .iter()
            .position(|part| part.is_ellipsis_literal_expr())
            .unwrap_or(parts.len());
        let mut steps: Vec<Option<(i64, Step<'f>)>> = vec![None; parts.len()];
        let mut dim = 0;
        for (step, part) in steps.iter_mut().zip(parts).take(head) {
            let found = self.index_step(part)?;
            let at = dim;
            dim += i64::from(!matches!(found, Step::Select(_)));
            *step = Some((at, found));
        }
        // Behind an ellipsis dimensions count from the end.
        let mut dim = -1;
        for (step, part) in steps.iter_mut().zip(parts).skip(head + 1).rev() {
            if part.is_ellipsis_literal_expr() {
                return self.error("index", "An index can only have a single ellipsis ('...')", part);
            }
            let found = self.index_step(part)?;
            let at = dim;
            match found {
                Step::Tensor(_) => {
                    let message = "Ellipses followed by tensor indexing is currently not supported";
                    return self.error("index", message, node);
                }
                Step::Unsqueeze => {}
                Step::Slice(_) | Step::Select(_) => dim -= 1,
            }
            *step = Some((at, found));
        }
        let mut view = tensor;
        let mut tensors = Vec::new();
        for (dim, step) in steps.into_iter().flatten() {
            if let Step::Tensor(index) = step {
                let at = usize::try_from(dim).unwrap_or(0);
                tensors.resize(at + 1, None);
                tensors[at] = Some(index);
                continue;
            }
            self.locate(node);
            let at = self.literal(Constant::Int(dim));
            view = match step {
                Step::Select(index) => self.builtin("aten::select", Arguments::of(&[view, at, index]), node)?,
                Step::Slice(slice) => {
                    let [lower, upper, step] = self.slice_bounds(slice)?;
                    self.builtin("aten::slice", Arguments::of(&[view, at, lower, upper, step]), node)?
                }
                Step::Unsqueeze | Step::Tensor(_) => {
                    self.builtin("aten::unsqueeze", Arguments::of(&[view, at]), node)?
                }
            };
        }
        Ok((view, tensors))
    }

    /// Returns the indexing step for one part of a tensor's index.
    fn index_step(&mut self, part: &'f Expr) -> Result<Step<'f>> {
        if let Expr::Slice(slice) = part {
            return Ok(Step::Slice(slice));
        }
        let index = self.expr(part, None)?;
        Ok(match self.kind_of(index) {
            TypeKind::None => Step::Unsqueeze,
            TypeKind::Int => Step::Select(index),
            TypeKind::Tensor(_) => Step::Tensor(index),
            TypeKind::Optional(inner) if matches!(self.names.ctx().type_kind(inner), TypeKind::Tensor(_)) => {
                Step::Tensor(index)
            }
            // Whatever numbers a list has, they are indices.
            TypeKind::List(_) => {
                self.locate(part);
                let long = self.literal(Constant::Int(DType::Long.code()));
                let arguments = Arguments {
                    object: None,
                    positional: vec![index],
                    keywords: vec![(self.names.ctx().symbol("dtype"), long)],
                };
                Step::Tensor(self.builtin("aten::tensor", arguments, part)?)
            }
            _ => {
                let message = format!(
                    "Unsupported operation: indexing tensor with unsupported index type '{}'. Only ints, slices, lists and tensors are supported",
                    self.shown(self.ty(index))
                );
                return self.error("index", message, part);
            }
        })
    }

    /// Returns the values for start, end and step of a slice.
    fn slice_bounds(&mut self, slice: &'f ExprSlice) -> Result<[ValueId; 3]> {
        let mut bound = |part: Option<&'f Expr>, default: Constant| match part {
            Some(part) => self.expr(part, None),
            None => Ok(self.constant(default)),
        };
        Ok([
            bound(slice.lower.as_deref(), Constant::None)?,
            bound(slice.upper.as_deref(), Constant::None)?,
            bound(slice.step.as_deref(), Constant::Int(1))?,
        ])
    }

    /// Returns the list operand of `aten::index` and related operators; `None` if no element of `tensors` is a tensor.
    pub(super) fn index_list(&mut self, tensors: &[Option<ValueId>], node: &impl Ranged) -> Option<ValueId> {
        if tensors.is_empty() {
            return None;
        }
        self.locate(node);
        let items: Vec<ValueId> = tensors
            .iter()
            .map(|index| index.unwrap_or_else(|| self.none()))
            .collect();
        let element = self.names.ctx().optional_of(types::TENSOR);
        Some(self.builder().list(element, &items))
    }
}

/// The effect of one part of a tensor's index: `x[part, part]`.
#[derive(Clone, Copy)]
enum Step<'f> {
    Select(ValueId),
    Slice(&'f ExprSlice),
    Unsqueeze,
    Tensor(ValueId),
}

/// Returns the value of an index expression, if it is an integer literal.
fn constant_index(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::NumberLiteral(literal) => number(&literal.value)?.as_int(),
        Expr::UnaryOp(op) if op.op == UnaryOp::USub => constant_index(&op.operand)?.checked_neg(),
        _ => None,
    }
}
