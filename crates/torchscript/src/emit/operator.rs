//! Compilation of operators and conditions, and the types of variables that conditions imply.

use std::sync::Arc;

use frazil_ir::{AttributeValue, BlockId, Constant, TypeId, TypeKind, ValueId, symbols, types};
use ruff_python_ast::{BoolOp, CmpOp, Expr, ExprBoolOp, ExprCall, ExprCompare, Operator, UnaryOp};
use ruff_text_size::Ranged;

use super::matching::Arguments;
use super::sugared::Special;
use super::{Condition, Emitter};
use crate::error::Result;
use crate::names::{Annotations, Constants};
use crate::source::dotted;

impl<'f> Emitter<'_, 'f> {
    pub(super) fn unary(&mut self, op: UnaryOp, operand: &'f Expr, node: &'f Expr) -> Result<ValueId> {
        if op == UnaryOp::USub && operand.is_number_literal_expr() {
            let constant = self.names.constant_expr(self.file, node, None)?;
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
            Operator::FloorDiv if matches!(self.kind_of(left), TypeKind::Tensor(_)) => "aten::floor_divide",
            Operator::FloorDiv => "aten::floordiv",
        };
        if let (Operator::Add, TypeKind::Tuple(_), TypeKind::Tuple(_)) = (op, self.kind_of(left), self.kind_of(right)) {
            self.locate(node);
            let mut items = self.builder().unpack_tuple(left);
            items.extend(self.builder().unpack_tuple(right));
            return Ok(self.builder().tuple(&items));
        }
        self.builtin(operator, Arguments::of(&[left, right]), node)
    }

    /// Emits an expression as a bool, together with the types of variables that its truth implies.
    pub(super) fn condition(&mut self, expr: &'f Expr) -> Result<Condition> {
        self.deeper(expr, |this| this.condition_inner(expr))
    }

    pub(super) fn condition_inner(&mut self, expr: &'f Expr) -> Result<Condition> {
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
                if let Some((special, call)) = self.special_call(expr) {
                    match special {
                        Special::Isinstance => return self.isinstance(call),
                        Special::Hasattr | Special::Known(_) => {
                            let known = match special {
                                Special::Known(known) => known,
                                _ => self.hasattr(call)?,
                            };
                            self.locate(expr);
                            let value = self.constant(Constant::Bool(known));
                            return Ok(Condition {
                                known: Some(known),
                                ..Condition::plain(value)
                            });
                        }
                        _ => {}
                    }
                }
                let value = self.expr(expr, None)?;
                let value = self.truth(value, expr)?;
                // Literals and constants of modules decide what is compiled; what a variable holds does not.
                let decides = self.file.rules.is_written() && !expr.is_name_expr();
                let known = self.graph.constant(value).filter(|_| decides);
                Ok(Condition {
                    known: known.and_then(|constant| constant.as_bool()),
                    ..Condition::plain(value)
                })
            }
        }
    }

    /// Returns the special form with its call, if `expr` calls one.
    fn special_call(&self, expr: &'f Expr) -> Option<(Special, &'f ExprCall)> {
        let Expr::Call(call) = expr else { return None };
        let name = dotted(&call.func)?;
        let head = name.split('.').next().unwrap_or_default();
        if self.lookup(head).is_some() {
            return None;
        }
        Some((self.special_form(&self.file.expand(&name))?, call))
    }

    /// Emits a conversion of `value` to bool, as `bool(...)` does.
    pub(super) fn truth(&mut self, value: ValueId, node: &impl Ranged) -> Result<ValueId> {
        if self.ty(value) == types::BOOL {
            return Ok(value);
        }
        if matches!(
            self.kind_of(value),
            TypeKind::Str | TypeKind::List(_) | TypeKind::Dict(..)
        ) {
            let length = self.builtin("aten::len", Arguments::of(&[value]), node)?;
            let zero = self.literal(Constant::Int(0));
            return self.builtin("aten::gt", Arguments::of(&[length, zero]), node);
        }
        if matches!(
            self.kind_of(value),
            TypeKind::Optional(_) | TypeKind::None | TypeKind::Union(_)
        ) {
            let message = format!("Could not cast value of type {} to bool", self.shown(self.ty(value)));
            return self.error("type", message, node);
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

    pub(super) fn short_circuit(&mut self, op: &'f ExprBoolOp, from: usize) -> Result<Condition> {
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
        let (when_true, when_false) = if is_or {
            (
                either(&first_true, &second.when_true),
                both(first_false, second.when_false),
            )
        } else {
            (
                both(first_true, second.when_true),
                either(&first_false, &second.when_false),
            )
        };
        Ok(Condition {
            value,
            when_true,
            when_false,
            known: None,
        })
    }

    /// Emits a `prim::If` with one result, for the ternary operator, `and` and `or`.
    pub(super) fn select(
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
                "if-expression's true branch has type {} but false branch has type {}",
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

    pub(super) fn comparison(&mut self, compare: &'f ExprCompare) -> Result<Condition> {
        self.comparison_from(compare, &compare.left, 0)
    }

    /// Emits the rest of a chain of comparisons from index `at` on, whose left side is `left_expr`: `a < b < c` is `a < b and b < c`.
    fn comparison_from(&mut self, compare: &'f ExprCompare, left_expr: &'f Expr, at: usize) -> Result<Condition> {
        let (Some(op), Some(right_expr)) = (compare.ops.get(at), compare.comparators.get(at)) else {
            return self.error("expression", "an operand is missing", compare);
        };
        let first = self.compare(compare, *op, left_expr, right_expr)?;
        if at + 1 >= compare.ops.len() {
            return Ok(first);
        }
        let first_value = self.truth(first.value, compare)?;
        let first = Condition {
            value: first_value,
            ..first
        };
        let value = self.select(
            first,
            |this| {
                let rest = this.comparison_from(compare, right_expr, at + 1)?;
                this.truth(rest.value, compare)
            },
            |this| Ok(this.constant(Constant::Bool(false))),
            compare,
        )?;
        Ok(Condition::plain(value))
    }

    fn compare(
        &mut self,
        compare: &'f ExprCompare,
        op: CmpOp,
        left_expr: &'f Expr,
        right_expr: &'f Expr,
    ) -> Result<Condition> {
        let left = self.expr(left_expr, None)?;
        let right = self.expr(right_expr, None)?;
        let plain = Condition::plain;
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
            CmpOp::In | CmpOp::NotIn if self.ty(left) == types::STR && self.ty(right) == types::STR => {
                let inside = self.substring(right, left, compare)?;
                return Ok(plain(match op {
                    CmpOp::In => inside,
                    _ => self.op("aten::__not__", &[inside], types::BOOL),
                }));
            }
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
            CmpOp::Is | CmpOp::IsNot => {
                return self.identity(compare, op == CmpOp::Is, [left, right], [left_expr, right_expr]);
            }
        };
        Ok(plain(self.builtin(operator, arguments(left, right), compare)?))
    }

    /// Emits the test whether `text` contains `part`, as PyTorch does: `text.find(part, 0, len(text)) != -1`.
    fn substring(&mut self, text: ValueId, part: ValueId, node: &impl Ranged) -> Result<ValueId> {
        let call = |positional: Vec<ValueId>| Arguments {
            positional,
            ..Arguments::default()
        };
        let (start, missing) = (self.constant(Constant::Int(0)), self.constant(Constant::Int(-1)));
        let end = self.builtin("aten::len", call(vec![text]), node)?;
        let at = self.builtin("aten::find", call(vec![text, part, start, end]), node)?;
        self.builtin("aten::ne", call(vec![at, missing]), node)
    }

    /// Emits `x is None`: a constant if the type of `x` decides it, otherwise a condition that narrows `x`.
    pub(super) fn identity(
        &mut self,
        compare: &'f ExprCompare,
        is: bool,
        [left, right]: [ValueId; 2],
        [left_expr, right_expr]: [&'f Expr; 2],
    ) -> Result<Condition> {
        let operator = if is { "aten::__is__" } else { "aten::__isnot__" };
        let arguments = Arguments {
            positional: vec![left, right],
            ..Arguments::default()
        };
        let (left_type, right_type) = (self.ty(left), self.ty(right));
        let may_be_none = |this: &Self, ty: TypeId| match this.names.ctx().type_kind(ty) {
            TypeKind::None => Some(true),
            TypeKind::Optional(_) | TypeKind::Union(_) | TypeKind::Any => None,
            _ => Some(false),
        };
        let (none, other, name) = if right_type == types::NONE {
            (right_type, left_type, left_expr)
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
        let inner = match self.names.ctx().type_kind(other) {
            TypeKind::Optional(inner) => Some(inner),
            TypeKind::Union(members) => {
                let others: Vec<TypeId> = self
                    .names
                    .ctx()
                    .types(members)
                    .iter()
                    .copied()
                    .filter(|&ty| ty != types::NONE)
                    .collect();
                Some(self.names.definitions().union_of(&others))
            }
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

    /// Emits `isinstance(x, T)`: a constant if the type of `x` decides it.
    pub(super) fn isinstance(&mut self, call: &'f ExprCall) -> Result<Condition> {
        let [object, classes] = &*call.arguments.args else {
            return self.error("call", "`isinstance` takes a value and a type", call);
        };
        let value = self.expr(object, None)?;
        let mut wanted = Vec::new();
        match classes {
            Expr::Tuple(tuple) => {
                for class in &tuple.elts {
                    wanted.push(self.names.annotation_or_bare(self.file, class)?);
                }
            }
            class => wanted.push(self.names.annotation_or_bare(self.file, class)?),
        }
        let ctx = Arc::clone(self.names.ctx());
        let found = self.ty(value);
        let is = |this: &Self, ty: TypeId| {
            wanted.iter().any(|&wanted| {
                this.names.definitions().is_subtype(ty, wanted)
                    || matches!(
                        (ctx.type_kind(wanted), ctx.type_kind(ty)),
                        (TypeKind::AnyTuple, TypeKind::NamedTuple(..)) | (TypeKind::AnyList, TypeKind::List(_))
                    )
            })
        };
        // What the value may be at run time.
        let alternatives: Vec<TypeId> = match ctx.type_kind(found) {
            TypeKind::Optional(inner) => vec![inner, types::NONE],
            TypeKind::Union(members) => ctx.types(members).to_vec(),
            TypeKind::Any => Vec::new(),
            TypeKind::Number => vec![types::INT, types::FLOAT, types::COMPLEX],
            _ => vec![found],
        };
        self.locate(call);
        let matching: Vec<TypeId> = alternatives.iter().copied().filter(|&ty| is(self, ty)).collect();
        let known = match (alternatives.len(), matching.len()) {
            (0, _) => None,
            (all, some) if all == some => Some(true),
            (_, 0) => Some(false),
            _ => None,
        };
        let result = match known {
            Some(known) => self.constant(Constant::Bool(known)),
            None => {
                let node = self.node("prim::isinstance", &[value], &[]);
                let types = AttributeValue::Types(wanted.clone());
                self.graph.set_attribute(node, symbols::ATTR_TYPES, types);
                self.graph.add_output(node, types::BOOL)
            }
        };
        let narrow = |types: Vec<TypeId>| match (object, types.as_slice()) {
            (Expr::Name(name), [_, ..]) => vec![(name.id.to_string(), self.names.definitions().union_of(&types))],
            _ => Vec::new(),
        };
        let when_true = if alternatives.is_empty() {
            narrow(wanted)
        } else {
            narrow(matching.clone())
        };
        let others = match alternatives.is_empty() {
            true => vec![types::ANY],
            false => alternatives
                .iter()
                .copied()
                .filter(|ty| !matching.contains(ty))
                .collect(),
        };
        let when_false = narrow(others);
        Ok(Condition {
            value: result,
            when_true,
            when_false,
            known,
        })
    }
}

/// Returns the type refinements that hold if two conditions are both true. A variable with contradictory refinements gets none.
fn both(mut a: Vec<(String, TypeId)>, b: Vec<(String, TypeId)>) -> Vec<(String, TypeId)> {
    for (name, ty) in b {
        match a.iter().position(|(known, _)| *known == name) {
            None => a.push((name, ty)),
            Some(at) if a[at].1 != ty => {
                a.remove(at);
            }
            Some(_) => {}
        }
    }
    a
}

/// Returns the type refinements that hold if at least one of two conditions is true.
fn either(a: &[(String, TypeId)], b: &[(String, TypeId)]) -> Vec<(String, TypeId)> {
    a.iter().filter(|narrowed| b.contains(narrowed)).cloned().collect()
}
