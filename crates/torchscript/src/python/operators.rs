//! Evaluation of operators, comparisons and subscripts.

use ruff_python_ast::Operator;
use ruff_text_size::Ranged;

use super::maker::{MAX_LENGTH, Maker};
use super::tensor::HostTensor;
use super::value::Py;
use crate::error::Result;
use crate::source::SourceFile;

impl Maker<'_> {
    pub(super) fn binary(
        &mut self,
        file: &SourceFile,
        op: Operator,
        left: &Py,
        right: &Py,
        node: &impl Ranged,
    ) -> Result<Py> {
        if matches!(left, Py::Size(_) | Py::Named(_)) || matches!(right, Py::Size(_) | Py::Named(_)) {
            let result = self.binary(file, op, &left.plain(), &right.plain(), node)?;
            return Ok(match (op, left, result) {
                (Operator::Add, Py::Size(_), Py::Tuple(items)) => Py::Size(items),
                (_, _, result) => result,
            });
        }
        if let (Operator::Add, Py::List(_) | Py::Tuple(_) | Py::Str(_)) = (op, left) {
            let unit = if matches!(left, Py::Str(_)) {
                1
            } else {
                size_of::<Py>() as u64
            };
            let length = left.weight().saturating_add(right.weight());
            self.charge_bytes(file, length.saturating_mul(unit), node)?;
        }
        let value = match (op, left, right) {
            (Operator::Add, Py::Str(a), Py::Str(b)) => Some(Py::str(format!("{a}{b}"))),
            (Operator::Add, Py::List(a), Py::List(b)) => {
                Some(Py::list(a.borrow().iter().chain(b.borrow().iter()).cloned().collect()))
            }
            (Operator::Add, Py::Tuple(a), Py::Tuple(b)) => Some(Py::tuple(a.iter().chain(b.iter()).cloned().collect())),
            (Operator::Mult, Py::List(_) | Py::Tuple(_), Py::Int(n)) => {
                let items = left.items().unwrap_or_default();
                let length = n.max(&0).checked_mul(items.len() as i64);
                length.filter(|&length| length <= MAX_LENGTH).map(|_| {
                    let repeated = (0..*n).flat_map(|_| items.iter().cloned()).collect();
                    match left {
                        Py::List(_) => Py::list(repeated),
                        _ => Py::tuple(repeated),
                    }
                })
            }
            (Operator::Mult, Py::Int(_), Py::List(_) | Py::Tuple(_) | Py::Str(_)) => {
                return self.binary(file, op, right, left, node);
            }
            (Operator::Mult, Py::Str(text), Py::Int(n)) => {
                let length = n.max(&0).checked_mul(text.len() as i64);
                length
                    .filter(|&length| length <= MAX_LENGTH)
                    .map(|_| Py::str(text.repeat(usize::try_from(*n).unwrap_or(0))))
            }
            (Operator::Mod, Py::Str(text), values) => super::text::percent(text, values).map(Py::str),
            (_, Py::Tensor(_) | Py::Parameter(_), _) | (_, _, Py::Tensor(_) | Py::Parameter(_)) => {
                super::elements::arithmetic(op, left, right).map(Py::Tensor)
            }
            (_, Py::Set(..), Py::Set(..)) => super::sets::operator(op, left, right),
            (_, Py::Complex(_), _) | (_, _, Py::Complex(_)) => super::complex::number_operator(op, left, right),
            (Operator::BitAnd, Py::Bool(a), Py::Bool(b)) => Some(Py::Bool(a & b)),
            (Operator::BitOr, Py::Bool(a), Py::Bool(b)) => Some(Py::Bool(a | b)),
            (Operator::BitXor, Py::Bool(a), Py::Bool(b)) => Some(Py::Bool(a ^ b)),
            _ => match (left.as_int(), right.as_int(), left.as_f64(), right.as_f64()) {
                (Some(a), Some(b), ..)
                    if op != Operator::Div
                        && !(op == Operator::Pow && b < 0)
                        && !(b == 0 && matches!(op, Operator::FloorDiv | Operator::Mod)) =>
                {
                    int_operator(op, a, b).map(Py::Int)
                }
                (_, _, Some(_), Some(b))
                    if b == 0.0 && matches!(op, Operator::Div | Operator::Mod | Operator::FloorDiv) =>
                {
                    return self.fail(file, "division by zero", node);
                }
                // Integers that a double does not have would be rounded before the operation.
                (Some(a), Some(b), ..) if a.unsigned_abs().max(b.unsigned_abs()) > 1 << 53 => None,
                (_, _, Some(a), Some(b)) => {
                    let value = float_operator(op).map(|f| f(a, b));
                    // Python raises, or computes complex numbers, where these give no number.
                    let is_lost = |x: f64| op == Operator::Pow && !x.is_finite() && a.is_finite() && b.is_finite();
                    value.filter(|&x| !is_lost(x)).map(Py::Float)
                }
                _ => None,
            },
        };
        match value {
            Some(value) => Ok(value),
            None => self.beyond(file, "this operator", node),
        }
    }

    pub(super) fn element(&mut self, file: &SourceFile, container: &Py, index: &Py, node: &impl Ranged) -> Result<Py> {
        if let Py::Dict(items) = container {
            let found = items
                .borrow()
                .iter()
                .find(|(key, _)| key.is_key(index))
                .map(|(_, value)| value.clone());
            return match found {
                Some(value) => Ok(value),
                None => self.fail(file, format!("KeyError: {}", index.repr().unwrap_or_default()), node),
            };
        }
        if let Py::Object(object) = container {
            return self.child(file, object, index, node);
        }
        let Some(at) = index.as_int() else {
            return self.beyond(file, "this subscript", node);
        };
        let pick = |items: &[Py]| {
            let at = if at < 0 { at + items.len() as i64 } else { at };
            usize::try_from(at).ok().and_then(|at| items.get(at)).cloned()
        };
        let found = match container {
            Py::List(items) => pick(&items.borrow()),
            Py::Tuple(items) | Py::Size(items) => pick(items),
            Py::Named(named) => pick(&named.items),
            Py::Str(_) => container.items().and_then(|items| pick(&items)),
            Py::Keys(items) => pick(&**items),
            _ => return self.beyond(file, "this subscript", node),
        };
        match found {
            Some(item) => Ok(item),
            None => self.fail(file, "index out of range", node),
        }
    }

    pub(super) fn slice(
        &mut self,
        file: &SourceFile,
        container: &Py,
        bounds: [Option<i64>; 3],
        node: &impl Ranged,
    ) -> Result<Py> {
        if let Py::Object(object) = container {
            return self.children_between(file, object, bounds, node);
        }
        let (Py::List(_) | Py::Tuple(_) | Py::Size(_) | Py::Named(_) | Py::Str(_), Some(items)) =
            (container, container.items())
        else {
            return self.beyond(file, "this slice", node);
        };
        let Some(picked) = sliced(&items, bounds) else {
            return self.fail(file, "slice step cannot be zero", node);
        };
        Ok(match container {
            Py::Tuple(_) | Py::Named(_) => Py::tuple(picked),
            Py::Size(_) => Py::Size(picked.into()),
            Py::Str(_) => Py::str(picked.iter().filter_map(Py::text).collect::<String>()),
            _ => Py::list(picked),
        })
    }
}

pub(super) fn float_of(tensor: &HostTensor) -> frazil_ir::DType {
    if tensor.dtype().is_floating_point() {
        tensor.dtype()
    } else {
        frazil_ir::DType::Float
    }
}

/// Returns the items that a slice selects; `None` for a step of zero.
pub(super) fn sliced<T: Clone>(items: &[T], bounds: [Option<i64>; 3]) -> Option<Vec<T>> {
    let (length, step) = (items.len() as i64, bounds[2].unwrap_or(1));
    if step == 0 {
        return None;
    }
    let least = if step < 0 { -1 } else { 0 };
    let clamp = |at: i64| (if at < 0 { at.saturating_add(length) } else { at }).clamp(least, length + least);
    let (first, end) = if step > 0 { (0, length) } else { (length - 1, -1) };
    let (mut at, end) = (bounds[0].map_or(first, clamp), bounds[1].map_or(end, clamp));
    let mut picked = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        picked.extend(usize::try_from(at).ok().and_then(|at| items.get(at)).cloned());
        at = at.saturating_add(step);
    }
    Some(picked)
}

fn int_operator(op: Operator, a: i64, b: i64) -> Option<i64> {
    match op {
        Operator::Add => a.checked_add(b),
        Operator::Sub => a.checked_sub(b),
        Operator::Mult => a.checked_mul(b),
        Operator::FloorDiv if b != 0 => {
            let quotient = a.checked_div(b)?;
            Some(if a % b != 0 && (a < 0) != (b < 0) {
                quotient - 1
            } else {
                quotient
            })
        }
        Operator::Mod if b != 0 => {
            let rest = a.checked_rem(b)?;
            Some(if rest != 0 && (rest < 0) != (b < 0) {
                rest + b
            } else {
                rest
            })
        }
        Operator::Pow => a.checked_pow(u32::try_from(b).ok()?),
        Operator::BitAnd => Some(a & b),
        Operator::BitOr => Some(a | b),
        Operator::BitXor => Some(a ^ b),
        Operator::LShift => a.checked_mul(1i64.checked_shl(u32::try_from(b).ok().filter(|&b| b < 63)?)?),
        Operator::RShift => a.checked_shr(u32::try_from(b).ok()?),
        _ => None,
    }
}

pub(super) fn float_operator(op: Operator) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        Operator::Add => |a, b| a + b,
        Operator::Sub => |a, b| a - b,
        Operator::Mult => |a, b| a * b,
        Operator::Div => |a, b| a / b,
        Operator::FloorDiv => |a, b| divided(a, b).0,
        Operator::Mod => |a, b| divided(a, b).1,
        Operator::Pow => f64::powf,
        _ => return None,
    })
}

/// Returns the results of `a // b` and `a % b` for floats, as in Python.
fn divided(a: f64, b: f64) -> (f64, f64) {
    if b == 0.0 {
        return (a / b, f64::NAN);
    }
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest == 0.0 {
        rest = 0.0f64.copysign(b);
    } else if (b < 0.0) != (rest < 0.0) {
        rest += b;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0.0f64.copysign(a / b), rest);
    }
    let floor = quotient.floor();
    (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, rest)
}
