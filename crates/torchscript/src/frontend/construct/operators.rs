//! Operators, comparisons, subscripts.

use ruff_python_ast::{CmpOp, Operator};
use ruff_text_size::Ranged;

use super::tensor::HostTensor;
use super::value::Py;
use super::{MAX_LENGTH, Maker};
use crate::frontend::Result;
use crate::frontend::source::SourceFile;

impl Maker<'_, '_> {
    pub(super) fn binary(
        &mut self,
        file: &SourceFile,
        op: Operator,
        left: &Py,
        right: &Py,
        node: &impl Ranged,
    ) -> Result<Py> {
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
            (_, Py::Tensor(a) | Py::Parameter(a), Py::Tensor(b) | Py::Parameter(b)) => {
                super::elements::arithmetic(op, a, b).map(Py::Tensor)
            }
            (_, Py::Tensor(a) | Py::Parameter(a), b) if b.as_f64().is_some() => {
                let b = b.as_f64().unwrap_or(0.0);
                let dtype = if matches!(right, Py::Float(_)) || op == Operator::Div {
                    float_of(a)
                } else {
                    a.dtype
                };
                float_operator(op)
                    .and_then(|f| a.map(dtype, |x| f(x, b)))
                    .map(Py::Tensor)
            }
            (_, a, Py::Tensor(b) | Py::Parameter(b)) if a.as_f64().is_some() => {
                let a = a.as_f64().unwrap_or(0.0);
                let dtype = if matches!(left, Py::Float(_)) || op == Operator::Div {
                    float_of(b)
                } else {
                    b.dtype
                };
                float_operator(op)
                    .and_then(|f| b.map(dtype, |x| f(a, x)))
                    .map(Py::Tensor)
            }
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
                (_, _, Some(a), Some(b)) => float_operator(op).map(|f| Py::Float(f(a, b))),
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
                .find(|(key, _)| key.equals(index))
                .map(|(_, value)| value.clone());
            return match found {
                Some(value) => Ok(value),
                None => self.fail(file, format!("KeyError: {}", index.text()), node),
            };
        }
        if let (Py::Object(object), Py::Str(name)) = (container, index)
            && let Some(attribute) = object.borrow().attributes.get(&**name)
        {
            return Ok(attribute.value.clone());
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
            Py::Tuple(items) => pick(items),
            other => match other.items() {
                Some(items) => pick(&items),
                None => return self.beyond(file, "this subscript", node),
            },
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
        let Some(items) = container.items() else {
            return self.beyond(file, "this slice", node);
        };
        let (length, step) = (items.len() as i64, bounds[2].unwrap_or(1));
        if step == 0 {
            return self.fail(file, "slice step cannot be zero", node);
        }
        let least = if step < 0 { -1 } else { 0 };
        let clamp = |at: i64| (if at < 0 { at + length } else { at }).clamp(least, length + least);
        let (first, end) = if step > 0 { (0, length) } else { (length - 1, -1) };
        let (mut at, end) = (bounds[0].map_or(first, clamp), bounds[1].map_or(end, clamp));
        let mut picked = Vec::new();
        while (step > 0 && at < end) || (step < 0 && at > end) {
            picked.extend(usize::try_from(at).ok().and_then(|at| items.get(at)).cloned());
            at = at.saturating_add(step);
        }
        Ok(match container {
            Py::Tuple(_) => Py::tuple(picked),
            Py::Str(_) => Py::str(picked.iter().map(Py::text).collect::<String>()),
            _ => Py::list(picked),
        })
    }
}

pub(super) fn float_of(tensor: &HostTensor) -> frazil_ir::DType {
    if tensor.dtype.is_floating_point() {
        tensor.dtype
    } else {
        frazil_ir::DType::Float
    }
}

pub(super) fn compared(op: CmpOp, left: &Py, right: &Py) -> Option<bool> {
    let order = || match (left, right) {
        (Py::Str(a), Py::Str(b)) => Some(a.cmp(b)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    };
    let visits = matches!(op, CmpOp::Eq | CmpOp::NotEq | CmpOp::In | CmpOp::NotIn);
    if visits && !(left.is_small() && right.is_small()) {
        return None;
    }
    Some(match op {
        CmpOp::Eq => left.equals(right),
        CmpOp::NotEq => !left.equals(right),
        CmpOp::Is => left.equals(right) && left.type_name() == right.type_name(),
        CmpOp::IsNot => !(left.equals(right) && left.type_name() == right.type_name()),
        CmpOp::Lt => order()?.is_lt(),
        CmpOp::LtE => order()?.is_le(),
        CmpOp::Gt => order()?.is_gt(),
        CmpOp::GtE => order()?.is_ge(),
        CmpOp::In | CmpOp::NotIn if let (Py::Str(part), Py::Str(text)) = (left, right) => {
            text.contains(&**part) == (op == CmpOp::In)
        }
        CmpOp::In => right.items()?.iter().any(|item| item.equals(left)),
        CmpOp::NotIn => !right.items()?.iter().any(|item| item.equals(left)),
    })
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
        Operator::LShift => a.checked_shl(u32::try_from(b).ok()?),
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
        Operator::FloorDiv => |a: f64, b| (a / b).floor(),
        Operator::Mod => |a: f64, b| a - b * (a / b).floor(),
        Operator::Pow => f64::powf,
        _ => return None,
    })
}
