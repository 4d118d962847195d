//! Truth, equality, identity and order of Python values. `None` means that only Python can decide.

use std::cmp::Ordering;
use std::rc::Rc;

use frazil_ir::Constant;
use num_complex::Complex64;
use ruff_python_ast::CmpOp;

use super::known::is_function_path;
use super::maker::MAX_DEPTH;
use super::value::{Py, dtype_of};
use crate::library;

/// Maximum number of visited values. Containers with shared elements can have exponentially many.
const MAX_VISITED: usize = 1 << 20;

impl Py {
    /// Returns whether the value counts as true; `None` if only Python can decide.
    /// [`Maker::truth`](super::maker::Maker::truth) supports modules, too.
    pub(super) fn truth(&self) -> Option<bool> {
        Some(match self {
            Py::None => false,
            Py::Bool(b) => *b,
            Py::Int(i) => *i != 0,
            Py::Float(f) => *f != 0.0,
            Py::Complex(number) => *number != Complex64::ZERO,
            Py::Named(named) => !named.items.is_empty(),
            Py::Str(s) => !s.is_empty(),
            Py::List(items) => !items.borrow().is_empty(),
            Py::Tuple(items) | Py::Size(items) => !items.is_empty(),
            Py::Dict(items) => !items.borrow().is_empty(),
            Py::Set(items, _) => !items.borrow().is_empty(),
            Py::Tensor(tensor) | Py::Parameter(tensor) => match tensor.values().as_slice() {
                [_] if tensor.dtype().is_complex() => return None,
                [x] => *x != 0.0,
                _ => return None,
            },
            Py::Path(path) => return is_function_path(path).then_some(true),
            // Members of `IntEnum` are numbers.
            Py::Member(_, member) => match &**member {
                Constant::Enum(member) if matches!(member.value, Constant::Str(_)) => true,
                Constant::Enum(member) if matches!(member.value, Constant::Int(0) | Constant::Bool(false)) => {
                    return None;
                }
                Constant::Enum(_) => true,
                _ => return None,
            },
            Py::Opaque("function") => true,
            Py::Object(_) | Py::Instance(_) | Py::Opaque(_) | Py::Unknown(_) => return None,
            Py::NamedClass(_)
            | Py::Limits(_)
            | Py::Device(_)
            | Py::Class(_)
            | Py::Function(_)
            | Py::Traced(_)
            | Py::Method(..)
            | Py::Super(..)
            | Py::Typed(..)
            | Py::Iterator(_)
            | Py::Handle(..)
            | Py::Keys(_) => true,
        })
    }

    /// Returns whether two values are equal; `None` if they are too large to be compared.
    pub(super) fn equals(&self, other: &Py) -> Option<bool> {
        self.equals_at(other, 0, &mut MAX_VISITED.clone())
    }

    /// Returns whether both values are the same dictionary key: equal, or the same object.
    pub(super) fn is_key(&self, other: &Py) -> bool {
        self.identical(other) == Some(true) || self.equals(other) == Some(true)
    }

    /// Returns whether the value is small enough for all contained values to be visited. Shared values count at each
    /// place.
    pub(super) fn is_small(&self) -> bool {
        fn visit(value: &Py, depth: usize, left: &mut usize) -> bool {
            if depth > MAX_DEPTH || *left == 0 {
                return false;
            }
            *left -= 1;
            match value {
                Py::List(items) => items.borrow().iter().all(|item| visit(item, depth + 1, left)),
                Py::Tuple(items) => items.iter().all(|item| visit(item, depth + 1, left)),
                Py::Dict(items) => {
                    let items = items.borrow();
                    items
                        .iter()
                        .all(|(k, v)| visit(k, depth + 1, left) && visit(v, depth + 1, left))
                }
                _ => true,
            }
        }
        visit(self, 0, &mut MAX_VISITED.clone())
    }

    /// Returns whether both values are equal; `None` if only Python can decide, or the values are too large to be compared. `depth` is the current nesting
    /// level, because lists may contain themselves. `left` is the number of values that may still be visited.
    fn equals_at(&self, other: &Py, depth: usize, left: &mut usize) -> Option<bool> {
        *left = left.saturating_sub(1);
        let mut all = |pairs: &mut dyn Iterator<Item = (Py, Py)>| {
            for (a, b) in pairs {
                if a.identical(&b) != Some(true) && !a.equals_at(&b, depth + 1, left)? {
                    return Some(false);
                }
            }
            Some(true)
        };
        match (self, other) {
            _ if depth > MAX_DEPTH => None,
            (Py::Size(_) | Py::Named(_), _) | (_, Py::Size(_) | Py::Named(_)) => {
                self.plain().equals_at(&other.plain(), depth + 1, left)
            }
            (Py::Opaque(_) | Py::Unknown(_) | Py::Method(..) | Py::Super(..), _)
            | (_, Py::Opaque(_) | Py::Unknown(_) | Py::Method(..) | Py::Super(..)) => None,
            (Py::Complex(_), _) | (_, Py::Complex(_)) => match (self.as_complex(), other.as_complex()) {
                (Some(a), Some(b)) => Some(a == b),
                _ => Some(false),
            },
            (Py::Instance(_) | Py::Typed(..), _) | (_, Py::Instance(_) | Py::Typed(..)) => match (self, other) {
                (Py::None, _) | (_, Py::None) => self.identical(other),
                _ => None,
            },
            (Py::None, Py::Tensor(_) | Py::Parameter(_)) | (Py::Tensor(_) | Py::Parameter(_), Py::None) => Some(false),
            (Py::Tensor(_) | Py::Parameter(_), _) | (_, Py::Tensor(_) | Py::Parameter(_)) => None,
            (Py::List(_), Py::List(_)) | (Py::Tuple(_), Py::Tuple(_)) => {
                let (a, b) = (self.items()?, other.items()?);
                if a.len() != b.len() {
                    return Some(false);
                }
                all(&mut a.into_iter().zip(b))
            }
            (Py::Set(a, _), Py::Set(b, _)) => super::sets::compared(CmpOp::Eq, &a.borrow(), &b.borrow()),
            (Py::Dict(a), Py::Dict(b)) => {
                let (a, b) = (a.borrow().clone(), b.borrow().clone());
                if a.len() != b.len() {
                    return Some(false);
                }
                for (key, value) in a {
                    let Some((_, other)) = b.iter().find(|(k, _)| k.is_key(&key)) else {
                        return Some(false);
                    };
                    if !all(&mut std::iter::once((value, other.clone())))? {
                        return Some(false);
                    }
                }
                Some(true)
            }
            (Py::Device(a), Py::Device(b)) => Some(a == b),
            (Py::Member(a, x), Py::Member(b, y)) => Some(a == b && x.same(y)),
            // `IntEnum` and `StrEnum` are numbers and strings.
            (Py::Member(..), Py::Int(_) | Py::Float(_) | Py::Bool(_) | Py::Str(_) | Py::Path(_)) => None,
            (Py::Int(_) | Py::Float(_) | Py::Bool(_) | Py::Str(_) | Py::Path(_), Py::Member(..)) => None,
            (Py::Path(_), _) | (_, Py::Path(_)) => self.identical(other),
            (Py::Str(a), Py::Str(b)) => Some(a == b),
            _ => match (self.as_f64(), other.as_f64()) {
                (Some(_), Some(_)) => Some(number_order(self, other) == Some(Ordering::Equal)),
                (Some(_), None) | (None, Some(_)) => Some(false),
                (None, None) => self.identical(other),
            },
        }
    }

    /// Returns `a is b`; `None` for equal numbers and strings, whose identity only Python can decide.
    pub(super) fn identical(&self, other: &Py) -> Option<bool> {
        Some(match (self, other) {
            (Py::Size(a), Py::Size(b)) => return Rc::ptr_eq(a, b).then_some(true),
            (Py::None, Py::None) => true,
            (Py::Bool(a), Py::Bool(b)) => a == b,
            (Py::Int(a), Py::Int(b)) if a == b => return (-5..=256).contains(a).then_some(true),
            (Py::Int(_), Py::Int(_)) => false,
            (Py::Str(a), Py::Str(b)) if a == b => return Rc::ptr_eq(a, b).then_some(true),
            (Py::Str(_), Py::Str(_)) => false,
            (Py::Float(a), Py::Float(b)) => return (a != b).then_some(false),
            (Py::Tuple(a), Py::Tuple(b)) if a.len() == b.len() => {
                return (Rc::ptr_eq(a, b) || a.is_empty()).then_some(true);
            }
            (Py::List(a), Py::List(b)) => Rc::ptr_eq(a, b),
            (Py::Dict(a), Py::Dict(b)) => Rc::ptr_eq(a, b),
            (Py::Set(a, _), Py::Set(b, _)) => Rc::ptr_eq(a, b),
            (Py::Iterator(a), Py::Iterator(b)) => Rc::ptr_eq(a, b),
            (Py::Tensor(a) | Py::Parameter(a), Py::Tensor(b) | Py::Parameter(b)) => a.is(b),
            (Py::Object(a), Py::Object(b)) | (Py::Instance(a), Py::Instance(b)) => Rc::ptr_eq(a, b),
            (Py::Named(a), Py::Named(b)) => return Rc::ptr_eq(a, b).then_some(true),
            (Py::NamedClass(a), Py::NamedClass(b)) => Rc::ptr_eq(a, b),
            (Py::Complex(a), Py::Complex(b)) => return (a != b).then_some(false),
            (Py::Opaque(_), Py::None) | (Py::None, Py::Opaque(_)) => false,
            (Py::Class(a), Py::Class(b)) => a.is(b),
            (Py::Function(a), Py::Function(b)) => a.is(b),
            (Py::Member(a, x), Py::Member(b, y)) => a == b && x.same(y),
            (Py::Path(a), Py::Path(b)) if a == b => return is_function_path(a).then_some(true),
            (Py::Path(a), Py::Path(b)) => match (dtype_of(self), dtype_of(other)) {
                (Some(a), Some(b)) => a == b,
                // Two paths with the same last name may denote the same function.
                _ => {
                    let ends = |path: &str| path.rsplit('.').next().map(str::to_owned);
                    // A function that PyTorch defines in Python differs from a C++ function with the same last name.
                    let is_python = |path: &str| library::is_functional(path);
                    let differ = ends(a) != ends(b) || is_python(a) != is_python(b);
                    return (differ && is_function_path(a) && is_function_path(b)).then_some(false);
                }
            },
            // An unknown path may denote any value. The path of a function denotes none of the other variants but these four.
            (Py::Path(path), other) | (other, Py::Path(path)) => {
                let may_be = matches!(other, Py::Class(_) | Py::Function(_) | Py::Opaque(_) | Py::Method(..));
                return (is_function_path(path) && !may_be).then_some(false);
            }
            (Py::Device(_), Py::Device(_)) => return None,
            (Py::Opaque(_) | Py::Method(..), Py::Opaque(_) | Py::Method(..)) => return None,
            (Py::Opaque(_) | Py::Unknown(_), _) | (_, Py::Opaque(_) | Py::Unknown(_)) => return None,
            _ => false,
        })
    }
}

/// Returns the exact order of two real numbers.
fn number_order(a: &Py, b: &Py) -> Option<Ordering> {
    match (a.as_int(), b.as_int()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => int_order(a, b.as_f64()?),
        (None, Some(b)) => int_order(b, a.as_f64()?).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn int_order(a: i64, b: f64) -> Option<Ordering> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if b.is_nan() {
        return None;
    }
    if b >= LIMIT {
        return Some(Ordering::Less);
    }
    if b < -LIMIT {
        return Some(Ordering::Greater);
    }
    let whole = b.trunc();
    Some(a.cmp(&(whole as i64)).then(0.0f64.total_cmp(&(b - whole + 0.0))))
}

/// Returns the order of two numbers or strings, or of lists or tuples of these.
pub(super) fn order(a: &Py, b: &Py) -> Option<Ordering> {
    fn visit(a: &Py, b: &Py, depth: usize) -> Option<Ordering> {
        match (a, b) {
            _ if depth > 64 => None,
            (Py::Size(_) | Py::Named(_), _) | (_, Py::Size(_) | Py::Named(_)) => {
                visit(&a.plain(), &b.plain(), depth + 1)
            }
            (Py::Str(a), Py::Str(b)) => Some(a.cmp(b)),
            (Py::List(_), Py::List(_)) | (Py::Tuple(_), Py::Tuple(_)) => {
                let (a, b) = (a.items()?, b.items()?);
                for (a, b) in a.iter().zip(&b) {
                    if !(a.identical(b) == Some(true) || a.equals(b)?) {
                        return visit(a, b, depth + 1);
                    }
                }
                Some(a.len().cmp(&b.len()))
            }
            _ => number_order(a, b),
        }
    }
    visit(a, b, 0)
}

/// Returns whether `item` is one of `items`.
pub(super) fn is_among(items: &[Py], item: &Py) -> Option<bool> {
    let mut known = true;
    for other in items {
        if other.identical(item) == Some(true) {
            return Some(true);
        }
        match other.equals(item) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => known = false,
        }
    }
    known.then_some(false)
}

/// Returns the result of the comparison `op` of two values other than tensors. `in` is supported for lists, tuples, dictionaries and strings.
pub(super) fn compared(op: CmpOp, left: &Py, right: &Py) -> Option<bool> {
    let visits = matches!(op, CmpOp::Eq | CmpOp::NotEq | CmpOp::In | CmpOp::NotIn);
    if visits && !(left.is_small() && right.is_small()) {
        return None;
    }
    let is_nan = |value: &Py| matches!(value, Py::Float(f) if f.is_nan());
    let ordered = |wanted: fn(Ordering) -> bool| match (left.as_f64(), right.as_f64()) {
        (Some(_), Some(_)) if is_nan(left) || is_nan(right) => Some(false),
        _ => order(left, right).map(wanted),
    };
    let is_in = || match (left, right) {
        (Py::Str(part), Py::Str(text)) => Some(text.contains(&**part)),
        (_, Py::Str(_)) => None,
        (_, Py::Set(items, _)) => is_among(&items.borrow(), left),
        (_, Py::Dict(items)) => Some(items.borrow().iter().any(|(key, _)| key.is_key(left))),
        (_, Py::List(_) | Py::Tuple(_) | Py::Size(_) | Py::Named(_) | Py::Iterator(_)) => {
            is_among(&right.items()?, left)
        }
        _ => None,
    };
    if let (Py::Set(a, _), Py::Set(b, _)) = (left, right)
        && !matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn)
    {
        return super::sets::compared(op, &a.borrow(), &b.borrow());
    }
    match op {
        CmpOp::Eq => left.equals(right),
        CmpOp::NotEq => left.equals(right).map(|is| !is),
        CmpOp::Is => left.identical(right),
        CmpOp::IsNot => left.identical(right).map(|is| !is),
        CmpOp::Lt => ordered(Ordering::is_lt),
        CmpOp::LtE => ordered(Ordering::is_le),
        CmpOp::Gt => ordered(Ordering::is_gt),
        CmpOp::GtE => ordered(Ordering::is_ge),
        CmpOp::In => is_in(),
        CmpOp::NotIn => is_in().map(|is| !is),
    }
}
