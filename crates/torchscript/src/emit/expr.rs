//! Compilation of expressions: names, literals, and dispatch over the kinds of expressions.

use std::sync::Arc;

use frazil_ir::{Constant, TypeId, TypeKind, ValueId, types};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

use super::attribute::sugared_global;
use super::call::NO_STATIC_LENGTH;
use super::matching::{Arguments, unwrap_optional};
use super::sugared::{Iterable, Sugared};
use super::{Emitter, builtins};
use crate::error::Result;
use crate::source::{complex_sum, number, string_value};

/// Estimated memory per expression in the graph, in bytes: a node, its value and operands, with their uses.
const NODE_BYTES: usize = 256;

/// Maximum number of parts of a tuple type, including nested parts, because the type has to be printed.
const MAX_TYPE_PARTS: u64 = 1 << 16;

impl<'f> Emitter<'_, 'f> {
    /// Emits an expression that must be a value. `hint` is the expected type, for literals without elements.
    pub(super) fn expr(&mut self, expr: &'f Expr, hint: Option<TypeId>) -> Result<ValueId> {
        let sugared = self.sugared(expr, hint)?;
        self.value(sugared, expr)
    }

    /// Converts a sugared value to a value of the graph, or reports that it is none.
    pub(super) fn value(&mut self, sugared: Sugared<'f>, node: &impl Ranged) -> Result<ValueId> {
        match sugared {
            Sugared::Value(value) => Ok(value),
            Sugared::Tuple(items) => {
                let items: Result<Vec<ValueId>> = items.into_iter().map(|item| self.value(item, node)).collect();
                let items = items?;
                self.locate(node);
                let tuple = self.builder().tuple(&items);
                if types::written_size(self.names.ctx(), self.graph.ty(tuple)) > MAX_TYPE_PARTS {
                    let message = format!("the type of this tuple has more than {MAX_TYPE_PARTS} parts");
                    return self.error("type", message, node);
                }
                Ok(tuple)
            }
            Sugared::Function(id) => {
                let name = self.names.unit().function(id).name;
                let ty = self.names.ctx().type_of_kind(TypeKind::Function(name));
                self.locate(node);
                Ok(self.builder().constant_typed(Constant::Function(name), ty))
            }
            Sugared::Iterable(iterable) => match *iterable {
                // `list(range(n))` and a range that is passed on.
                Iterable::Range {
                    start: None,
                    end,
                    step: None,
                } => self.builtin(
                    "prim::rangelist",
                    Arguments {
                        positional: vec![end],
                        ..Arguments::default()
                    },
                    node,
                ),
                Iterable::Sequence(value) => Ok(value),
                Iterable::Range { .. } => self.error("value", "range cannot be used as a value", node),
                Iterable::Zip(_) | Iterable::Static(_) => self.error("value", "this can only be iterated over", node),
            },
            Sugared::Path(name) => self.error("undefined", format!("undefined value {name}"), node),
            Sugared::Type(ty) => {
                let message = format!("the type `{}` is no value", self.shown(ty));
                self.error("value", message, node)
            }
            other => {
                let what = match other {
                    Sugared::Method(..) => "a method",
                    Sugared::Builtin(..) | Sugared::Special(_) => "a builtin function",
                    _ => "a nested function",
                };
                self.error("value", format!("{what} is no value; it can only be called"), node)
            }
        }
    }

    pub(super) fn sugared(&mut self, expr: &'f Expr, hint: Option<TypeId>) -> Result<Sugared<'f>> {
        frazil_limits::charge(NODE_BYTES)?;
        self.deeper(expr, |this| this.sugared_inner(expr, hint))
    }

    pub(super) fn sugared_inner(&mut self, expr: &'f Expr, hint: Option<TypeId>) -> Result<Sugared<'f>> {
        let value = match expr {
            Expr::Name(name) => return self.name(&name.id, expr),
            Expr::Attribute(attribute) => {
                let base = self.sugared(&attribute.value, None)?;
                return self.attribute(base, &attribute.attr, expr);
            }
            Expr::Call(call) => return self.call(call, hint),
            Expr::Subscript(subscript) => return self.subscript(subscript, hint),
            Expr::Tuple(tuple) => {
                let hints = match hint.map(|ty| self.names.ctx().type_kind(unwrap_optional(self.names.ctx(), ty))) {
                    Some(TypeKind::Tuple(items)) => self.names.ctx().types(items).to_vec(),
                    _ => Vec::new(),
                };
                let mut items = Vec::with_capacity(tuple.elts.len());
                for (index, item) in tuple.elts.iter().enumerate() {
                    let part = self.sugared(item, hints.get(index).copied())?;
                    // A tuple within this one is built in its turn, before the parts behind it are evaluated.
                    items.push(match part {
                        Sugared::Tuple(parts) if parts.iter().all(|part| matches!(part, Sugared::Value(_))) => {
                            Sugared::Value(self.value(Sugared::Tuple(parts), item)?)
                        }
                        part => part,
                    });
                }
                return Ok(Sugared::Tuple(items));
            }
            Expr::NumberLiteral(literal) => {
                self.locate(expr);
                match number(&literal.value) {
                    Some(constant) => self.literal(constant),
                    None => {
                        let message = "Integral constant out of range (must fit in a signed 64 bit integer)";
                        return self.error("literal", message, expr);
                    }
                }
            }
            Expr::BooleanLiteral(literal) => {
                self.locate(expr);
                self.constant(Constant::Bool(literal.value))
            }
            Expr::NoneLiteral(_) => {
                self.locate(expr);
                self.none()
            }
            Expr::StringLiteral(literal) => {
                self.locate(expr);
                self.constant(Constant::str(string_value(literal.value.to_str())))
            }
            Expr::List(list) => self.list(&list.elts, hint, expr)?,
            Expr::Dict(dict) => self.dict(dict, hint)?,
            Expr::UnaryOp(op) => self.unary(op.op, &op.operand, expr)?,
            Expr::BinOp(op) => {
                if let Some(value) = complex_sum(expr) {
                    self.locate(expr);
                    return Ok(Sugared::Value(self.constant(Constant::Complex(value))));
                }
                let left = self.expr(&op.left, None)?;
                let right = self.expr(&op.right, None)?;
                self.binary(op.op, left, right, expr)?
            }
            Expr::BoolOp(_) => self.condition(expr)?.value,
            // A comparison of tensors is a tensor; it becomes a bool only as a condition.
            Expr::Compare(compare) => self.comparison(compare)?.value,
            Expr::If(ternary) => {
                let condition = self.condition(&ternary.test)?;
                if let Some(known) = condition.known {
                    return self.sugared(if known { &ternary.body } else { &ternary.orelse }, hint);
                }
                self.select(
                    condition,
                    |t| t.expr(&ternary.body, hint),
                    |t| t.expr(&ternary.orelse, hint),
                    expr,
                )?
            }
            Expr::ListComp(comprehension) => self.comprehension(comprehension, hint)?,
            Expr::FString(string) => self.formatted(string)?,
            Expr::Generator(generator) => self.generated(generator)?,
            Expr::DictComp(comprehension) => self.dict_comprehension(comprehension, hint)?,
            Expr::BytesLiteral(_) => return self.error("expression", "Unknown Constant expression type", expr),
            Expr::EllipsisLiteral(_) => return self.error("expression", "Cannot emit expr for: (dots)", expr),
            other => {
                let message = format!("{} aren't supported", unsupported(other));
                return self.error("expression", message, other);
            }
        };
        Ok(Sugared::Value(value))
    }

    pub(super) fn name(&mut self, name: &str, node: &impl Ranged) -> Result<Sugared<'f>> {
        if let Some(variable) = self.lookup(name) {
            return Ok(variable.value.clone());
        }
        if let Some(message) = self.why_unjoined(name) {
            let message = message.clone();
            return self.error("type", message, node);
        }
        if let Some(special) = self.special_form(name) {
            return Ok(Sugared::Special(special));
        }
        match name {
            "inf" | "nan" | "infj" | "nanj" => {
                self.locate(node);
                let value = if name.starts_with("inf") {
                    f64::INFINITY
                } else {
                    f64::NAN
                };
                let constant = match name.ends_with('j') {
                    true => Constant::Complex(num_complex::Complex64::new(0.0, value)),
                    false => Constant::Float(value),
                };
                return Ok(Sugared::Value(self.constant(constant)));
            }
            "torch" | "ops" | "math" | "__torch__" | "CONSTANTS" => return Ok(Sugared::Path(name.to_owned())),
            _ => {}
        }
        if self.file.rules.is_source()
            && builtins::comes_first(name)
            && let Some(operator) = builtins::operator(name)
        {
            return Ok(Sugared::Builtin(self.names.ctx().symbol(&operator), None));
        }
        if let Some(global) = self.names.global_of(self.file, name)? {
            return Ok(sugared_global(global));
        }
        if let Some(path) = self.file.imported(name).map(str::to_owned) {
            return self.path(path, node);
        }
        if self.names.definitions().traces.is_tracing
            && let Some(constant) = self.names.definitions().python_constant(self.file, name)
        {
            self.locate(node);
            return Ok(Sugared::Value(self.constant(constant)));
        }
        if let Some(class) = self.names.definitions().python_value(self.file, name)? {
            let message = format!(
                "python value of type '{class}' cannot be used as a value. Perhaps it is a closed over global variable? If so, please consider passing it in as an argument or use a local variable instead."
            );
            return self.error("undefined", message, node);
        }
        if let Some(operator) = builtins::operator(name) {
            return Ok(Sugared::Builtin(self.names.ctx().symbol(&operator), None));
        }
        match builtins::python_only(name) {
            Some(function) => self.python_only(function, node),
            None => self.error("undefined", format!("undefined value {name}"), node),
        }
    }

    pub(super) fn python_only<T>(&self, function: &str, node: &impl Ranged) -> Result<T> {
        let message =
            format!("Python builtin <built-in function {function}> is currently not supported in Torchscript");
        self.error("unknown-function", message, node)
    }

    pub(super) fn list(&mut self, items: &'f [Expr], hint: Option<TypeId>, node: &impl Ranged) -> Result<ValueId> {
        let ctx = Arc::clone(self.names.ctx());
        let wanted = match hint.map(|ty| ctx.type_kind(unwrap_optional(&ctx, ty))) {
            Some(TypeKind::List(element)) => Some(element),
            _ => None,
        };
        self.check_hint("List", hint, node)?;
        // The declared type says nothing about elements of elements in PyTorch. The code of archives annotates those.
        let is_written = self.file.rules.is_written();
        let inner = wanted.filter(|_| !is_written);
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            if item.is_starred_expr() {
                return self.error("expression", NO_STATIC_LENGTH, item);
            }
            values.push(self.expr(item, inner)?);
        }
        let element = match wanted {
            Some(wanted) => {
                if !is_written {
                    for (value, item) in values.iter_mut().zip(items) {
                        *value = self.convert(*value, wanted, item);
                    }
                }
                self.check_elements(&values, wanted, node)?;
                wanted
            }
            None => self.joined(&values),
        };
        self.locate(node);
        let list = self.builder().list(element, &values);
        if values.is_empty() && wanted.is_none() {
            self.empty_lists.insert(list);
        }
        Ok(list)
    }

    /// Checks that the annotation of a container literal has the type constructor `wanted`.
    pub(super) fn check_hint(&self, wanted: &str, hint: Option<TypeId>, node: &impl Ranged) -> Result<()> {
        let Some(hint) = hint.filter(|_| self.file.rules.is_written()) else {
            return Ok(());
        };
        let fits = match self.names.ctx().type_kind(unwrap_optional(self.names.ctx(), hint)) {
            TypeKind::List(_) => wanted == "List",
            TypeKind::Dict(..) => wanted == "Dict",
            TypeKind::Union(_) | TypeKind::Any | TypeKind::Var(_) => true,
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let message = format!("Expected an annotation of type {wanted} but got {}", self.shown(hint));
        self.error("type", message, node)
    }

    /// Checks that the elements of a list literal have the annotated type.
    pub(super) fn check_elements(&mut self, values: &[ValueId], wanted: TypeId, node: &impl Ranged) -> Result<()> {
        if values
            .iter()
            .all(|&value| self.names.definitions().is_subtype(self.ty(value), wanted))
        {
            return Ok(());
        }
        let joined = self.joined(values);
        let message = format!(
            "List type annotation `List[{}]` did not match the types of the given list elements, which were unified to {}",
            self.shown(wanted),
            self.shown(joined)
        );
        self.error("type", message, node)
    }

    /// Returns the common type of `values`; `Tensor` if there are none.
    pub(super) fn joined(&mut self, values: &[ValueId]) -> TypeId {
        let mut joined: Option<TypeId> = None;
        for &value in values {
            let ty = self.unshaped(self.ty(value));
            joined = Some(match joined {
                None => ty,
                // What has no common type is a union, as PyTorch warns.
                Some(before) => self
                    .join(before, ty)
                    .unwrap_or_else(|| self.names.definitions().union_of(&[before, ty])),
            });
        }
        joined.unwrap_or(types::TENSOR)
    }

    pub(super) fn dict(&mut self, dict: &'f ruff_python_ast::ExprDict, hint: Option<TypeId>) -> Result<ValueId> {
        let ctx = Arc::clone(self.names.ctx());
        let wanted = match hint.map(|ty| ctx.type_kind(unwrap_optional(&ctx, ty))) {
            Some(TypeKind::Dict(key, value)) => Some((key, value)),
            _ => None,
        };
        self.check_hint("Dict", hint, dict)?;
        let is_written = self.file.rules.is_written();
        let inner = wanted.filter(|_| !is_written);
        let mut operands = Vec::with_capacity(dict.items.len() * 2);
        for item in &dict.items {
            let Some(key) = &item.key else {
                return self.error(
                    "expression",
                    "Dict expansion (e.g. `{**dict}`) is not supported",
                    &item.value,
                );
            };
            let key = self.expr(key, inner.map(|(key, _)| key))?;
            let mut value = self.expr(&item.value, inner.map(|(_, value)| value))?;
            if let Some((_, wanted)) = inner {
                value = self.convert(value, wanted, &item.value);
            }
            operands.extend([key, value]);
        }
        let (key, value) = match wanted {
            Some(wanted) => {
                self.check_entries(&operands, wanted, dict)?;
                wanted
            }
            None if operands.is_empty() => (types::STR, types::TENSOR),
            None => {
                let keys: Vec<ValueId> = operands.iter().copied().step_by(2).collect();
                let values: Vec<ValueId> = operands.iter().copied().skip(1).step_by(2).collect();
                let first = keys.first().map_or(types::STR, |&key| self.unshaped(self.ty(key)));
                for &key in &keys {
                    if self.unshaped(self.ty(key)) != first {
                        let message = format!(
                            "Dict keys must contain only a single type. Expected: {} but found {} instead",
                            self.shown(first),
                            self.shown(self.ty(key))
                        );
                        return self.error("type", message, dict);
                    }
                }
                (first, self.joined(&values))
            }
        };
        self.locate(dict);
        Ok(self.op("prim::DictConstruct", &operands, ctx.dict_of(key, value)))
    }

    /// Checks that the alternating keys and values of a dictionary literal have the annotated types.
    fn check_entries(&mut self, entries: &[ValueId], wanted: (TypeId, TypeId), node: &impl Ranged) -> Result<()> {
        let annotated = self.shown(self.names.ctx().dict_of(wanted.0, wanted.1));
        for (at, wanted) in [wanted.0, wanted.1].into_iter().enumerate() {
            let part: Vec<ValueId> = entries.iter().copied().skip(at).step_by(2).collect();
            if part
                .iter()
                .all(|&value| self.names.definitions().is_subtype(self.ty(value), wanted))
            {
                continue;
            }
            let joined = self.joined(&part);
            let found = self.shown(joined);
            let message = match at {
                0 => format!(
                    "Type annotation was inferred to be {annotated}but the type of keys given by the dict literal is {found}"
                ),
                _ => format!(
                    "Type annotation was inferred to be `{annotated}`, but the type of values given by the dict literal is {found}"
                ),
            };
            return self.error("type", message, node);
        }
        Ok(())
    }

    pub(super) fn formatted(&mut self, string: &'f ruff_python_ast::ExprFString) -> Result<ValueId> {
        let mut format = String::new();
        let mut operands = Vec::new();
        for element in string.value.elements() {
            match element {
                ruff_python_ast::InterpolatedStringElement::Literal(text) => {
                    format.push_str(&text.value);
                }
                ruff_python_ast::InterpolatedStringElement::Interpolation(part) => {
                    if part.format_spec.is_some() || part.debug_text.is_some() {
                        return self.error("expression", "Don't support formatting in JoinedStr", part);
                    }
                    if part.conversion != ruff_python_ast::ConversionFlag::None {
                        return self.error("expression", "Don't support conversion in JoinedStr", part);
                    }
                    format.push_str("{}");
                    operands.push(self.expr(&part.expression, None)?);
                }
            }
        }
        self.locate(string);
        let text = self.constant(Constant::str(format));
        operands.insert(0, text);
        self.builtin(
            "aten::format",
            Arguments {
                positional: operands,
                ..Arguments::default()
            },
            string,
        )
    }
}

/// Returns PyTorch's name of an expression that TorchScript does not support.
fn unsupported(expr: &Expr) -> &'static str {
    match expr {
        Expr::Lambda(_) => "Lambda",
        Expr::Yield(_) => "Yield",
        Expr::YieldFrom(_) => "YieldFrom",
        Expr::Await(_) => "Await",
        Expr::Named(_) => "NamedExpr",
        Expr::Set(_) => "Set",
        Expr::SetComp(_) => "SetComp",
        Expr::TString(_) => "TemplateStr",
        Expr::Slice(_) => "Slice",
        Expr::Starred(_) => "Starred",
        _ => "such expressions",
    }
}
