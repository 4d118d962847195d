//! Expressions and assignments.

use std::sync::Arc;

use frazil_ir::{BlockId, Constant, TypeId, TypeKind, ValueId, types};
use ruff_python_ast::{
    BoolOp, CmpOp, Expr, ExprBoolOp, ExprCompare, ExprListComp, ExprSubscript, Operator, StmtAssert, StmtAugAssign,
    StmtRaise, UnaryOp,
};
use ruff_text_size::Ranged;

use super::Result;
use super::annotation::dotted;
use super::builtins;
use super::emit::{Condition, Emitter, name_attribute, target_names};
use super::matching::{Arguments, unwrap_optional};
use super::program::{Global, number, string_value};
use super::sugared::{Iterable, Sugared};

impl<'f> Emitter<'_, '_, 'f> {
    /// Emits an expression that must be a value. `hint` is the type that it should have, for literals without elements.
    pub(super) fn expr(&mut self, expr: &'f Expr, hint: Option<TypeId>) -> Result<ValueId> {
        let sugared = self.sugared(expr, hint)?;
        self.value(sugared, expr)
    }

    /// The value that a sugared thing is.
    pub(super) fn value(&mut self, sugared: Sugared<'f>, node: &impl Ranged) -> Result<ValueId> {
        match sugared {
            Sugared::Value(value) => Ok(value),
            Sugared::Tuple(items) => {
                let items: Result<Vec<ValueId>> = items.into_iter().map(|item| self.value(item, node)).collect();
                let items = items?;
                self.locate(node);
                Ok(self.builder().tuple(&items))
            }
            Sugared::Function(id) => {
                let name = self.program.unit.function(id).name;
                let ty = self.program.ctx.type_of_kind(TypeKind::Function(name));
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
                _ => self.error("value", "this can only be iterated over", node),
            },
            Sugared::Path(name) => self.error("undefined", format!("undefined name `{name}`"), node),
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
        self.deeper(expr, |this| this.sugared_inner(expr, hint))
    }

    fn sugared_inner(&mut self, expr: &'f Expr, hint: Option<TypeId>) -> Result<Sugared<'f>> {
        let value = match expr {
            Expr::Name(name) => return self.name(&name.id, expr),
            Expr::Attribute(attribute) => {
                let base = self.sugared(&attribute.value, None)?;
                return self.attribute(base, &attribute.attr, expr);
            }
            Expr::Call(call) => return self.call(call, hint),
            Expr::Subscript(subscript) => return self.subscript(subscript),
            Expr::Tuple(tuple) => {
                let hints = match hint.map(|ty| self.program.ctx.type_kind(unwrap_optional(&self.program.ctx, ty))) {
                    Some(TypeKind::Tuple(items)) => self.program.ctx.types(items).to_vec(),
                    _ => Vec::new(),
                };
                let mut items = Vec::with_capacity(tuple.elts.len());
                for (index, item) in tuple.elts.iter().enumerate() {
                    items.push(self.sugared(item, hints.get(index).copied())?);
                }
                return Ok(Sugared::Tuple(items));
            }
            Expr::NumberLiteral(literal) => {
                self.locate(expr);
                match number(&literal.value) {
                    Some(constant) => self.literal(constant),
                    None => return self.error("literal", "an integer of more than 64 bits", expr),
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
                let left = self.expr(&op.left, None)?;
                let right = self.expr(&op.right, None)?;
                self.binary(op.op, left, right, expr)?
            }
            Expr::BoolOp(_) => self.condition(expr)?.value,
            // A comparison of tensors is a tensor; only as a condition it becomes a truth value.
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
            other => return self.error("expression", "this expression is not supported in TorchScript", other),
        };
        Ok(Sugared::Value(value))
    }

    fn name(&mut self, name: &str, node: &impl Ranged) -> Result<Sugared<'f>> {
        if let Some(variable) = self.lookup(name) {
            return Ok(variable.value.clone());
        }
        if let Some(message) = self.why_unjoined(name) {
            let message = message.clone();
            return self.error("type", message, node);
        }
        if let Some(special) = builtins::special(name) {
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
        if let Some(global) = self.program.global(name)? {
            return Ok(sugared_global(global));
        }
        if let Some(operator) = builtins::operator(name) {
            return Ok(Sugared::Builtin(self.program.ctx.symbol(&operator), None));
        }
        self.error("undefined", format!("undefined name `{name}`"), node)
    }

    /// `base.name`
    pub(super) fn attribute(&mut self, base: Sugared<'f>, name: &str, node: &impl Ranged) -> Result<Sugared<'f>> {
        match base {
            Sugared::Path(path) => self.path(format!("{path}.{name}"), node),
            Sugared::Type(ty) => {
                let ctx = Arc::clone(&self.program.ctx);
                if let TypeKind::Enum(class) = ctx.type_kind(ty) {
                    let member = self
                        .program
                        .unit
                        .class(class)
                        .and_then(|c| c.constants.get(&ctx.symbol(name)))
                        .cloned();
                    if let Some(member) = member {
                        self.locate(node);
                        return Ok(Sugared::Value(self.constant(member)));
                    }
                }
                match name {
                    "__new__" => Ok(Sugared::New(ty)),
                    _ => {
                        let message = format!("the type `{}` has no member `{name}`", self.shown(ty));
                        self.error("attribute", message, node)
                    }
                }
            }
            base => {
                let object = self.value(base, node)?;
                self.value_attribute(object, name, node)
            }
        }
    }

    fn path(&mut self, path: String, node: &impl Ranged) -> Result<Sugared<'f>> {
        if let Some(constant) = self.program.named_constant(&path)? {
            self.locate(node);
            // Code knows a tensor of the table as just a tensor.
            let ty = self.unshaped(constant.ty(&self.program.ctx));
            return Ok(Sugared::Value(self.builder().constant_typed(constant, ty)));
        }
        if let Some(special) = builtins::special(&path) {
            return Ok(Sugared::Special(special));
        }
        if path.starts_with("__torch__.") {
            if let Some(global) = self.program.global(&path)? {
                return Ok(sugared_global(global));
            }
        } else if let Some(operator) = builtins::operator(&path) {
            let operator = self.program.ctx.symbol(&operator);
            if self.program.catalogue.contains(operator) || path.starts_with("ops.") {
                return Ok(Sugared::Builtin(operator, None));
            }
        }
        if path.starts_with("CONSTANTS.") {
            return self.error("undefined", format!("the archive has no constant `{path}`"), node);
        }
        Ok(Sugared::Path(path))
    }

    /// An attribute or method of a value.
    fn value_attribute(&mut self, object: ValueId, name: &str, node: &impl Ranged) -> Result<Sugared<'f>> {
        let ctx = Arc::clone(&self.program.ctx);
        let symbol = ctx.symbol(name);
        match self.kind_of(object) {
            TypeKind::Class(class) => {
                if let Some(definition) = self.program.unit.class(class) {
                    if let Some(attribute) = definition.attributes.get(&symbol) {
                        let ty = attribute.ty;
                        self.locate(node);
                        return Ok(Sugared::Value(self.builder().get_attr(object, symbol, ty)));
                    }
                    if definition.methods.contains_key(&symbol) {
                        return Ok(Sugared::Method(object, symbol));
                    }
                    if let Some(constant) = definition.constants.get(&symbol).cloned() {
                        self.locate(node);
                        return Ok(Sugared::Value(self.constant(constant)));
                    }
                }
            }
            TypeKind::Interface(interface) => {
                let definition = self.program.unit.class(interface);
                if definition.is_some_and(|definition| definition.signatures.contains_key(&symbol)) {
                    return Ok(Sugared::Method(object, symbol));
                }
            }
            TypeKind::NamedTuple(_, names, elements) => {
                let index = ctx.symbols(names).iter().position(|&field| field == symbol);
                if let Some((index, &ty)) = index.and_then(|index| Some((index, ctx.types(elements).get(index)?))) {
                    self.locate(node);
                    let position = self.constant(Constant::Int(index as i64));
                    return Ok(Sugared::Value(self.op("prim::TupleIndex", &[object, position], ty)));
                }
            }
            TypeKind::Enum(_) if name == "name" => {
                self.locate(node);
                return Ok(Sugared::Value(self.op("prim::EnumName", &[object], types::STR)));
            }
            TypeKind::Enum(class) if name == "value" => {
                let member = self.program.unit.class(class).and_then(|c| c.constants.values().next());
                let ty = match member {
                    Some(Constant::Enum(member)) => member.value.ty(&ctx),
                    _ => types::ANY,
                };
                self.locate(node);
                return Ok(Sugared::Value(self.op("prim::EnumValue", &[object], ty)));
            }
            TypeKind::Tensor(_) => {
                if let Some(operator) = builtins::tensor_attribute(name) {
                    let arguments = Arguments {
                        positional: vec![object],
                        ..Arguments::default()
                    };
                    return self.builtin(operator, arguments, node).map(Sugared::Value);
                }
            }
            TypeKind::Device if name == "type" || name == "index" => {
                let arguments = Arguments {
                    positional: vec![object],
                    ..Arguments::default()
                };
                return self
                    .builtin(&format!("prim::{name}"), arguments, node)
                    .map(Sugared::Value);
            }
            TypeKind::Future(_) if name == "wait" => {
                return Ok(Sugared::Builtin(ctx.symbol("aten::wait"), Some(object)));
            }
            _ => {}
        }
        let operator = ctx.symbol(&format!("aten::{name}"));
        if !matches!(self.kind_of(object), TypeKind::Class(_) | TypeKind::Interface(_))
            && self.program.catalogue.contains(operator)
        {
            return Ok(Sugared::Builtin(operator, Some(object)));
        }
        let message = format!(
            "a `{}` has no attribute or method `{name}`",
            self.shown(self.ty(object))
        );
        self.error("attribute", message, node)
    }

    // --- literals

    fn list(&mut self, items: &'f [Expr], hint: Option<TypeId>, node: &impl Ranged) -> Result<ValueId> {
        let ctx = Arc::clone(&self.program.ctx);
        let wanted = match hint.map(|ty| ctx.type_kind(unwrap_optional(&ctx, ty))) {
            Some(TypeKind::List(element)) => Some(element),
            _ => None,
        };
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(self.expr(item, wanted)?);
        }
        let element = match wanted {
            Some(wanted) => {
                for (value, item) in values.iter_mut().zip(items) {
                    *value = self.convert(*value, wanted, item);
                    if !self.program.is_subtype(self.ty(*value), wanted) {
                        let message = format!(
                            "an element of the list must be `{}`, found `{}`",
                            self.shown(wanted),
                            self.shown(self.ty(*value))
                        );
                        return self.error("type", message, item);
                    }
                }
                wanted
            }
            None => self.joined(&values, node)?,
        };
        self.locate(node);
        let list = self.builder().list(element, &values);
        if values.is_empty() && wanted.is_none() {
            self.empty_lists.insert(list);
        }
        Ok(list)
    }

    /// The common type of values, `Tensor` when there are none.
    fn joined(&mut self, values: &[ValueId], node: &impl Ranged) -> Result<TypeId> {
        let mut joined: Option<TypeId> = None;
        for &value in values {
            let ty = self.unshaped(self.ty(value));
            joined = match joined {
                None => Some(ty),
                Some(before) => match self.join(before, ty) {
                    Some(ty) => Some(ty),
                    None => {
                        let message = format!("elements of types `{}` and `{}`", self.shown(before), self.shown(ty));
                        return self.error("type", message, node);
                    }
                },
            };
        }
        Ok(joined.unwrap_or(types::TENSOR))
    }

    fn dict(&mut self, dict: &'f ruff_python_ast::ExprDict, hint: Option<TypeId>) -> Result<ValueId> {
        let ctx = Arc::clone(&self.program.ctx);
        let wanted = match hint.map(|ty| ctx.type_kind(unwrap_optional(&ctx, ty))) {
            Some(TypeKind::Dict(key, value)) => Some((key, value)),
            _ => None,
        };
        let mut operands = Vec::with_capacity(dict.items.len() * 2);
        for item in &dict.items {
            let Some(key) = &item.key else {
                return self.error("expression", "`**` in a dictionary is not supported", &item.value);
            };
            let key = self.expr(key, wanted.map(|(key, _)| key))?;
            let mut value = self.expr(&item.value, wanted.map(|(_, value)| value))?;
            if let Some((_, wanted)) = wanted {
                value = self.convert(value, wanted, &item.value);
            }
            operands.extend([key, value]);
        }
        let (key, value) = match wanted {
            Some(wanted) => wanted,
            None if operands.is_empty() => (types::STR, types::TENSOR),
            None => {
                let keys: Vec<ValueId> = operands.iter().copied().step_by(2).collect();
                let values: Vec<ValueId> = operands.iter().copied().skip(1).step_by(2).collect();
                (self.joined(&keys, dict)?, self.joined(&values, dict)?)
            }
        };
        self.locate(dict);
        Ok(self.op("prim::DictConstruct", &operands, ctx.dict_of(key, value)))
    }

    fn formatted(&mut self, string: &'f ruff_python_ast::ExprFString) -> Result<ValueId> {
        let mut format = String::new();
        let mut operands = Vec::new();
        for element in string.value.elements() {
            match element {
                ruff_python_ast::InterpolatedStringElement::Literal(text) => {
                    format.push_str(&text.value);
                }
                ruff_python_ast::InterpolatedStringElement::Interpolation(part) => {
                    if part.format_spec.is_some() || part.debug_text.is_some() {
                        return self.error("expression", "format specifications are not supported", part);
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

    // --- operators

    fn unary(&mut self, op: UnaryOp, operand: &'f Expr, node: &'f Expr) -> Result<ValueId> {
        if op == UnaryOp::USub && operand.is_number_literal_expr() {
            let constant = self.program.constant_expr(self.file, node, None)?;
            self.locate(node);
            return Ok(self.literal(constant));
        }
        if op == UnaryOp::Not {
            return self.condition(node).map(|condition| condition.value);
        }
        let value = self.expr(operand, None)?;
        // `-inf`
        if op == UnaryOp::USub
            && let Some(Constant::Float(number)) = self.graph.constant(value)
        {
            self.locate(node);
            return Ok(self.constant(Constant::Float(-number)));
        }
        let operator = match op {
            UnaryOp::USub => "aten::neg",
            UnaryOp::Invert => "aten::bitwise_not",
            UnaryOp::UAdd | UnaryOp::Not => return Ok(value),
        };
        self.builtin(
            operator,
            Arguments {
                positional: vec![value],
                ..Arguments::default()
            },
            node,
        )
    }

    pub(super) fn binary(
        &mut self,
        op: Operator,
        left: ValueId,
        right: ValueId,
        node: &impl Ranged,
    ) -> Result<ValueId> {
        let operator = match op {
            Operator::Add => "aten::add",
            Operator::Sub => "aten::sub",
            Operator::Mult => "aten::mul",
            Operator::MatMult => "aten::matmul",
            Operator::Div => "aten::div",
            Operator::Mod if self.ty(left) == types::STR => "aten::percentFormat",
            Operator::Mod => "aten::remainder",
            Operator::Pow => "aten::pow",
            Operator::LShift => "aten::__lshift__",
            Operator::RShift => "aten::__rshift__",
            Operator::BitOr => "aten::__or__",
            Operator::BitXor => "aten::__xor__",
            Operator::BitAnd => "aten::__and__",
            Operator::FloorDiv => "aten::floordiv",
        };
        let right = match (op, self.kind_of(right)) {
            // `"%s and %s" % (a, b)` takes the elements one by one.
            (Operator::Mod, TypeKind::Tuple(_)) if self.ty(left) == types::STR => self.builder().unpack_tuple(right),
            _ => vec![right],
        };
        let positional = std::iter::once(left).chain(right).collect();
        self.builtin(
            operator,
            Arguments {
                positional,
                ..Arguments::default()
            },
            node,
        )
    }

    // --- conditions

    /// Emits an expression as a truth value, with what it tells about the types of variables.
    pub(super) fn condition(&mut self, expr: &'f Expr) -> Result<Condition> {
        self.deeper(expr, |this| this.condition_inner(expr))
    }

    fn condition_inner(&mut self, expr: &'f Expr) -> Result<Condition> {
        match expr {
            Expr::UnaryOp(op) if op.op == UnaryOp::Not => {
                let inner = self.condition(&op.operand)?;
                self.locate(expr);
                let value = match inner.known {
                    Some(known) => self.constant(Constant::Bool(!known)),
                    None => self.op("aten::__not__", &[inner.value], types::BOOL),
                };
                Ok(Condition {
                    value,
                    when_true: inner.when_false,
                    when_false: inner.when_true,
                    known: inner.known.map(|known| !known),
                })
            }
            Expr::BoolOp(op) => self.short_circuit(op, 0),
            Expr::Compare(compare) => {
                let mut condition = self.comparison(compare)?;
                condition.value = self.truth(condition.value, expr)?;
                Ok(condition)
            }
            _ => {
                if let Expr::Call(call) = expr
                    && let Expr::Name(name) = &*call.func
                    && name.id.as_str() == "isinstance"
                    && self.lookup("isinstance").is_none()
                {
                    return self.isinstance(call);
                }
                let value = self.expr(expr, None)?;
                let value = self.truth(value, expr)?;
                Ok(Condition {
                    value,
                    when_true: Vec::new(),
                    when_false: Vec::new(),
                    known: None,
                })
            }
        }
    }

    /// The truth value of a value, as `bool(...)` has it.
    pub(super) fn truth(&mut self, value: ValueId, node: &impl Ranged) -> Result<ValueId> {
        if self.ty(value) == types::BOOL {
            return Ok(value);
        }
        self.builtin(
            "aten::Bool",
            Arguments {
                positional: vec![value],
                ..Arguments::default()
            },
            node,
        )
    }

    fn short_circuit(&mut self, op: &'f ExprBoolOp, from: usize) -> Result<Condition> {
        let operand = match op.values.get(from) {
            Some(operand) => operand,
            None => return self.error("expression", "an operand is missing", op),
        };
        let first = self.condition(operand)?;
        if from + 1 >= op.values.len() {
            return Ok(first);
        }
        let is_or = op.op == BoolOp::Or;
        if let Some(known) = first.known {
            // What cannot be reached is not emitted.
            return if known == is_or {
                Ok(first)
            } else {
                self.short_circuit(op, from + 1)
            };
        }
        let (first_true, first_false) = (first.when_true.clone(), first.when_false.clone());
        let mut second = None;
        let value = {
            let mut rest = |this: &mut Self| -> Result<ValueId> {
                let condition = this.short_circuit(op, from + 1)?;
                let value = condition.value;
                second = Some(condition);
                Ok(value)
            };
            if is_or {
                self.select(first, |this| Ok(this.constant(Constant::Bool(true))), &mut rest, op)?
            } else {
                self.select(first, &mut rest, |this| Ok(this.constant(Constant::Bool(false))), op)?
            }
        };
        let Some(second) = second else {
            return self.error("expression", "an operand is missing", op);
        };
        let both = |a: Vec<(String, TypeId)>, b: Vec<(String, TypeId)>| a.into_iter().chain(b).collect();
        let (when_true, when_false) = if is_or {
            (Vec::new(), both(first_false, second.when_false))
        } else {
            (both(first_true, second.when_true), Vec::new())
        };
        Ok(Condition {
            value,
            when_true,
            when_false,
            known: None,
        })
    }

    /// A `prim::If` with one result: the ternary operator, `and`, `or`.
    fn select(
        &mut self,
        condition: Condition,
        then: impl FnOnce(&mut Self) -> Result<ValueId>,
        otherwise: impl FnOnce(&mut Self) -> Result<ValueId>,
        node: &impl Ranged,
    ) -> Result<ValueId> {
        let mut results: [Option<(BlockId, ValueId)>; 2] = [None, None];
        let [a, b] = &mut results;
        self.branches(
            condition,
            |this| {
                let value = then(this)?;
                *a = Some((this.block, value));
                Ok(())
            },
            |this| {
                let value = otherwise(this)?;
                *b = Some((this.block, value));
                Ok(())
            },
            node.range(),
        )?;
        let [Some((then_block, a)), Some((else_block, b))] = results else {
            return self.error("expression", "an operand is missing", node);
        };
        let (a_type, b_type) = (self.unshaped(self.ty(a)), self.unshaped(self.ty(b)));
        let Some(ty) = self.join(a_type, b_type) else {
            let message = format!(
                "one side is a `{}`, the other a `{}`",
                self.shown(a_type),
                self.shown(b_type)
            );
            return self.error("type", message, node);
        };
        self.graph.add_result(then_block, a);
        self.graph.add_result(else_block, b);
        match self.graph.owner(then_block) {
            Some(owner) => Ok(self.graph.add_output(owner, ty)),
            None => self.error("expression", "an operand is missing", node),
        }
    }

    fn comparison(&mut self, compare: &'f ExprCompare) -> Result<Condition> {
        let ([op], [right_expr]) = (&*compare.ops, &*compare.comparators) else {
            return self.error(
                "expression",
                "chained comparisons are not supported in TorchScript",
                compare,
            );
        };
        let left = self.expr(&compare.left, None)?;
        let right = self.expr(right_expr, None)?;
        let plain = |value| Condition {
            value,
            when_true: Vec::new(),
            when_false: Vec::new(),
            known: None,
        };
        let arguments = |a, b| Arguments {
            positional: vec![a, b],
            ..Arguments::default()
        };
        let operator = match op {
            CmpOp::Eq => "aten::eq",
            CmpOp::NotEq => "aten::ne",
            CmpOp::Lt => "aten::lt",
            CmpOp::LtE => "aten::le",
            CmpOp::Gt => "aten::gt",
            CmpOp::GtE => "aten::ge",
            CmpOp::In => {
                return Ok(plain(self.builtin(
                    "aten::__contains__",
                    arguments(right, left),
                    compare,
                )?));
            }
            CmpOp::NotIn => {
                let inside = self.builtin("aten::__contains__", arguments(right, left), compare)?;
                return Ok(plain(self.op("aten::__not__", &[inside], types::BOOL)));
            }
            CmpOp::Is | CmpOp::IsNot => return self.identity(compare, *op == CmpOp::Is, left, right, right_expr),
        };
        Ok(plain(self.builtin(operator, arguments(left, right), compare)?))
    }

    /// `x is None`: decided by the type where it can be, and telling about `x` otherwise.
    fn identity(
        &mut self,
        compare: &'f ExprCompare,
        is: bool,
        left: ValueId,
        right: ValueId,
        right_expr: &'f Expr,
    ) -> Result<Condition> {
        let operator = if is { "aten::__is__" } else { "aten::__isnot__" };
        let arguments = Arguments {
            positional: vec![left, right],
            ..Arguments::default()
        };
        let (left_type, right_type) = (self.ty(left), self.ty(right));
        let may_be_none = |this: &Self, ty: TypeId| match this.program.ctx.type_kind(ty) {
            TypeKind::None => Some(true),
            TypeKind::Optional(_) | TypeKind::Union(_) | TypeKind::Any => None,
            _ => Some(false),
        };
        let (none, other, name) = if right_type == types::NONE {
            (right_type, left_type, &*compare.left)
        } else {
            (left_type, right_type, right_expr)
        };
        if none != types::NONE {
            let value = self.builtin(operator, arguments, compare)?;
            return Ok(Condition {
                value,
                when_true: Vec::new(),
                when_false: Vec::new(),
                known: None,
            });
        }
        if let Some(is_none) = may_be_none(self, other) {
            let known = is_none == is;
            self.locate(compare);
            let value = self.constant(Constant::Bool(known));
            return Ok(Condition {
                value,
                when_true: Vec::new(),
                when_false: Vec::new(),
                known: Some(known),
            });
        }
        let value = self.builtin(operator, arguments, compare)?;
        let inner = match self.program.ctx.type_kind(other) {
            TypeKind::Optional(inner) => Some(inner),
            _ => None,
        };
        let narrowed: Vec<(String, TypeId)> = match (name, inner) {
            (Expr::Name(name), Some(inner)) => vec![(name.id.to_string(), inner)],
            _ => Vec::new(),
        };
        let (when_true, when_false) = if is {
            (Vec::new(), narrowed)
        } else {
            (narrowed, Vec::new())
        };
        Ok(Condition {
            value,
            when_true,
            when_false,
            known: None,
        })
    }

    // --- assignment

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

    fn assign_parts(&mut self, targets: &'f [Expr], value: Sugared<'f>, node: &impl Ranged) -> Result<()> {
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

    fn set_attribute(&mut self, object: ValueId, name: &str, value: ValueId, node: &impl Ranged) -> Result<()> {
        let symbol = self.program.ctx.symbol(name);
        let ty = match self.kind_of(object) {
            TypeKind::Class(class) => {
                let given = self.unshaped(self.ty(value));
                self.program.attribute_to_set(class, symbol, given)
            }
            _ => None,
        };
        let Some(ty) = ty else {
            let message = format!("a `{}` has no attribute `{name}`", self.shown(self.ty(object)));
            return self.error("attribute", message, node);
        };
        let value = self.convert(value, ty, node);
        if !self.program.is_subtype(self.ty(value), ty) {
            let message = format!(
                "attribute `{name}` has type `{}` but is assigned a `{}`",
                self.shown(ty),
                self.shown(self.ty(value))
            );
            return self.error("type", message, node);
        }
        self.locate(node);
        let set = self.node("prim::SetAttr", &[object, value], &[]);
        name_attribute(&mut self.graph, set, symbol);
        Ok(())
    }

    fn set_item(&mut self, container: ValueId, index: &'f Expr, value: ValueId, node: &impl Ranged) -> Result<()> {
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
    fn set_tensor_item(&mut self, tensor: ValueId, index: &'f Expr, value: ValueId, node: &impl Ranged) -> Result<()> {
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

    // --- errors of the program

    pub(super) fn raise(&mut self, raise: &'f StmtRaise) -> Result<()> {
        let (message, class) = match raise.exc.as_deref() {
            Some(Expr::Call(call)) => {
                let class = dotted(&call.func).unwrap_or_default();
                let message = match &*call.arguments.args {
                    [] => None,
                    [message, ..] => Some(self.expr(message, None)?),
                };
                (message, class)
            }
            Some(other) => (None, dotted(other).unwrap_or_default()),
            None => (None, String::new()),
        };
        self.locate(raise);
        let message = match message {
            Some(text) if self.ty(text) == types::STR => text,
            Some(other) => self.builtin(
                "aten::str",
                Arguments {
                    positional: vec![other],
                    ..Arguments::default()
                },
                raise,
            )?,
            None => self.constant(Constant::str("")),
        };
        let class = match class.as_str() {
            "" => self.none(),
            name if name.contains('.') => self.constant(Constant::str(name)),
            name => self.constant(Constant::str(format!("builtins.{name}"))),
        };
        self.node("prim::RaiseException", &[message, class], &[]);
        self.mark_raised();
        Ok(())
    }

    pub(super) fn assert(&mut self, assert: &'f StmtAssert) -> Result<()> {
        let condition = self.condition(&assert.test)?;
        let message = assert.msg.as_deref();
        self.branches(
            condition,
            |_| Ok(()),
            |this| {
                let text = match message {
                    Some(message) => this.expr(message, None)?,
                    None => this.constant(Constant::str("")),
                };
                this.locate(assert);
                let prefix = this.constant(Constant::str("AssertionError: "));
                let arguments = Arguments {
                    positional: vec![prefix, text],
                    ..Arguments::default()
                };
                let text = this.builtin("aten::add", arguments, assert)?;
                let class = this.none();
                this.node("prim::RaiseException", &[text, class], &[]);
                this.mark_raised();
                Ok(())
            },
            assert.range(),
        )
    }

    // --- subscripts

    fn subscript(&mut self, subscript: &'f ExprSubscript) -> Result<Sugared<'f>> {
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
    fn tensor_view(
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

    // --- iteration

    /// What a `for` goes through.
    pub(super) fn iterable(&mut self, sugared: Sugared<'f>, node: &impl Ranged) -> Result<Iterable<'f>> {
        match sugared {
            Sugared::Iterable(iterable) => Ok(*iterable),
            other => {
                let value = self.value(other, node)?;
                match self.kind_of(value) {
                    TypeKind::Dict(..) => {
                        let arguments = Arguments {
                            positional: vec![value],
                            ..Arguments::default()
                        };
                        Ok(Iterable::Sequence(self.builtin("aten::keys", arguments, node)?))
                    }
                    _ => Ok(Iterable::Sequence(value)),
                }
            }
        }
    }

    /// How often a loop over it runs.
    pub(super) fn length(&mut self, iterable: &Iterable<'f>, node: &impl Ranged) -> Result<ValueId> {
        match iterable {
            Iterable::Range {
                start: None,
                end,
                step: None,
            } => Ok(*end),
            Iterable::Range { start, end, step } => {
                let start = start.map_or_else(|| self.literal(Constant::Int(0)), |start| start);
                let step = step.map_or_else(|| self.literal(Constant::Int(1)), |step| step);
                let arguments = Arguments {
                    positional: vec![start, *end, step],
                    ..Arguments::default()
                };
                self.builtin("aten::__range_length", arguments, node)
            }
            Iterable::Sequence(value) => self.builtin(
                "aten::len",
                Arguments {
                    positional: vec![*value],
                    ..Arguments::default()
                },
                node,
            ),
            Iterable::Enumerate(inner, _) => {
                let inner = self.iterable(inner.clone(), node)?;
                self.length(&inner, node)
            }
            Iterable::Zip(parts) => {
                let mut lengths = Vec::with_capacity(parts.len());
                for part in parts.clone() {
                    let part = self.iterable(part, node)?;
                    lengths.push(self.length(&part, node)?);
                }
                match *lengths.as_slice() {
                    [one] => Ok(one),
                    _ => {
                        self.locate(node);
                        let list = self.builder().list(types::INT, &lengths);
                        self.builtin(
                            "prim::min",
                            Arguments {
                                positional: vec![list],
                                ..Arguments::default()
                            },
                            node,
                        )
                    }
                }
            }
        }
    }

    /// The element that iteration number `index` takes.
    pub(super) fn element(
        &mut self,
        iterable: &Iterable<'f>,
        index: ValueId,
        node: &impl Ranged,
    ) -> Result<Sugared<'f>> {
        let value = match iterable {
            Iterable::Range {
                start: None,
                step: None,
                ..
            } => index,
            Iterable::Range { start, step, .. } => {
                let start = start.map_or_else(|| self.literal(Constant::Int(0)), |start| start);
                let step = step.map_or_else(|| self.literal(Constant::Int(1)), |step| step);
                let arguments = Arguments {
                    positional: vec![index, start, step],
                    ..Arguments::default()
                };
                self.builtin("aten::__derive_index", arguments, node)?
            }
            Iterable::Sequence(value) if matches!(self.kind_of(*value), TypeKind::Tensor(_)) => {
                let zero = self.literal(Constant::Int(0));
                let arguments = Arguments {
                    positional: vec![*value, zero, index],
                    ..Arguments::default()
                };
                self.builtin("aten::select", arguments, node)?
            }
            Iterable::Sequence(value) => {
                let arguments = Arguments {
                    positional: vec![*value, index],
                    ..Arguments::default()
                };
                self.builtin("aten::__getitem__", arguments, node)?
            }
            Iterable::Enumerate(inner, start) => {
                let inner = self.iterable(inner.clone(), node)?;
                let counted = match start {
                    Some(start) => {
                        let arguments = Arguments {
                            positional: vec![*start, index],
                            ..Arguments::default()
                        };
                        self.builtin("aten::add", arguments, node)?
                    }
                    None => index,
                };
                let element = self.element(&inner, index, node)?;
                return Ok(Sugared::Tuple(vec![Sugared::Value(counted), element]));
            }
            Iterable::Zip(parts) => {
                let mut elements = Vec::with_capacity(parts.len());
                for part in parts.clone() {
                    let part = self.iterable(part, node)?;
                    elements.push(self.element(&part, index, node)?);
                }
                return Ok(Sugared::Tuple(elements));
            }
        };
        Ok(Sugared::Value(value))
    }

    fn comprehension(&mut self, comprehension: &'f ExprListComp, hint: Option<TypeId>) -> Result<ValueId> {
        let [generator] = comprehension.generators.as_slice() else {
            return self.error(
                "expression",
                "only one `for` is supported in a comprehension",
                comprehension,
            );
        };
        let ctx = Arc::clone(&self.program.ctx);
        let hint = match hint.map(|ty| ctx.type_kind(ty)) {
            Some(TypeKind::List(element)) => Some(element),
            _ => None,
        };
        let source = self.sugared(&generator.iter, None)?;
        let iterable = self.iterable(source, &generator.iter)?;
        self.locate(comprehension);
        let list = self.builder().list(hint.unwrap_or(types::TENSOR), &[]);
        let mut element_type = hint;
        // The target is a variable of the comprehension alone; the frame of the loop hides it afterwards.
        let mut hidden = std::collections::BTreeSet::new();
        target_names(&generator.target, &mut hidden);
        self.loop_with(
            Some(&iterable),
            Some(&generator.target),
            None,
            std::collections::BTreeSet::new(),
            false,
            comprehension,
            |this| this.filtered(&generator.ifs, comprehension, list, &mut element_type),
        )?;
        if let Some(element) = element_type {
            self.graph.set_type(list, ctx.list_of(element));
        }
        Ok(list)
    }

    fn filtered(
        &mut self,
        tests: &'f [Expr],
        comprehension: &'f ExprListComp,
        list: ValueId,
        element_type: &mut Option<TypeId>,
    ) -> Result<()> {
        match tests {
            [] => {
                let element = self.expr(&comprehension.elt, *element_type)?;
                let ty = element_type.unwrap_or(self.unshaped(self.ty(element)));
                *element_type = Some(ty);
                self.graph.set_type(list, self.program.ctx.list_of(ty));
                let arguments = Arguments {
                    positional: vec![list, element],
                    ..Arguments::default()
                };
                self.builtin("aten::append", arguments, comprehension).map(drop)
            }
            [test, rest @ ..] => {
                let condition = self.condition(test)?;
                self.branches(
                    condition,
                    |this| this.filtered(rest, comprehension, list, element_type),
                    |_| Ok(()),
                    test.range(),
                )
            }
        }
    }
}

fn sugared_global<'f>(global: Global) -> Sugared<'f> {
    match global {
        Global::Function(id) => Sugared::Function(id),
        Global::Type(ty) => Sugared::Type(ty),
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
