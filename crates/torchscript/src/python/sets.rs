//! Sets in constructors. Their iteration order is known only to Python, so no result may depend on it.

use std::cell::RefCell;
use std::rc::Rc;

use ruff_python_ast::{CmpOp, Operator};

use super::arguments::Arguments;
use super::compare::is_among;
use super::value::Py;

/// Maximum number of elements of a set, because lookup is linear.
const MAX_ELEMENTS: usize = 4096;

/// Methods of sets that constructors may call.
pub(super) const NAMES: &[&str] = &[
    "add",
    "clear",
    "copy",
    "difference",
    "difference_update",
    "discard",
    "intersection",
    "isdisjoint",
    "issubset",
    "issuperset",
    "remove",
    "symmetric_difference",
    "union",
    "update",
];

/// Returns a set with the elements `items`; `None` if two elements cannot be compared.
pub(super) fn set_of(items: Vec<Py>, is_frozen: bool) -> Option<Py> {
    let mut found: Vec<Py> = Vec::new();
    for item in items {
        add(&mut found, item)?;
    }
    Some(Py::Set(Rc::new(RefCell::new(found)), is_frozen))
}

fn add(items: &mut Vec<Py>, item: Py) -> Option<()> {
    is_hashable(&item).then_some(())?;
    if !is_among(items, &item)? {
        (items.len() < MAX_ELEMENTS).then_some(())?;
        items.push(item);
    }
    Some(())
}

fn is_hashable(item: &Py) -> bool {
    match item {
        Py::None | Py::Bool(_) | Py::Int(_) | Py::Float(_) | Py::Str(_) | Py::Path(_) | Py::Member(..) => true,
        Py::Tuple(items) => items.iter().all(is_hashable),
        _ => false,
    }
}

/// Returns the elements of `value`, for uses that do not depend on their order.
pub(super) fn elements(value: &Py) -> Option<Vec<Py>> {
    match value {
        Py::Set(items, _) => Some(items.borrow().clone()),
        other => other.items(),
    }
}

/// Returns the elements of `items` that are among `others` (if `wanted`), or those that are not.
fn chosen(items: &[Py], others: &[Py], wanted: bool) -> Option<Vec<Py>> {
    let mut out = Vec::new();
    for item in items {
        if is_among(others, item)? == wanted {
            out.push(item.clone());
        }
    }
    Some(out)
}

fn combined(op: Operator, a: &[Py], b: &[Py]) -> Option<Vec<Py>> {
    Some(match op {
        Operator::BitOr => [a, b].concat(),
        Operator::BitAnd => chosen(a, b, true)?,
        Operator::Sub => chosen(a, b, false)?,
        Operator::BitXor => [chosen(a, b, false)?, chosen(b, a, false)?].concat(),
        _ => return None,
    })
}

/// Evaluates the operator `a op b` on two sets.
pub(super) fn operator(op: Operator, a: &Py, b: &Py) -> Option<Py> {
    let (Py::Set(x, is_frozen), Py::Set(y, _)) = (a, b) else {
        return None;
    };
    let items = combined(op, &x.borrow(), &y.borrow())?;
    set_of(items, *is_frozen)
}

/// Evaluates the comparison `a op b` of two sets.
pub(super) fn compared(op: CmpOp, a: &[Py], b: &[Py]) -> Option<bool> {
    let within = |a: &[Py], b: &[Py]| Some(chosen(a, b, false)?.is_empty());
    Some(match op {
        CmpOp::Eq => a.len() == b.len() && within(a, b)?,
        CmpOp::NotEq => !(a.len() == b.len() && within(a, b)?),
        CmpOp::LtE => within(a, b)?,
        CmpOp::GtE => within(b, a)?,
        CmpOp::Lt => a.len() < b.len() && within(a, b)?,
        CmpOp::Gt => a.len() > b.len() && within(b, a)?,
        _ => return None,
    })
}

/// Calls a method of a set.
pub(super) fn method(items: &Rc<RefCell<Vec<Py>>>, is_frozen: bool, name: &str, arguments: &Arguments) -> Option<Py> {
    let mut all = Vec::new();
    for other in arguments.positional() {
        match name {
            "add" | "discard" | "remove" => all.push(other.clone()),
            _ => all.extend(elements(other)?),
        }
    }
    let now = items.borrow().clone();
    let one = arguments.count() == 1;
    let changed = match name {
        "copy" => return set_of(now, is_frozen),
        "union" => return set_of([now, all].concat(), is_frozen),
        "difference" => return set_of(chosen(&now, &all, false)?, is_frozen),
        "intersection" if one => return set_of(chosen(&now, &all, true)?, is_frozen),
        "symmetric_difference" if one => return set_of(combined(Operator::BitXor, &now, &all)?, is_frozen),
        "isdisjoint" if one => return Some(Py::Bool(chosen(&now, &all, true)?.is_empty())),
        "issubset" if one => return compared(CmpOp::LtE, &now, &all).map(Py::Bool),
        "issuperset" if one => return Some(Py::Bool(chosen(&all, &now, false)?.is_empty())),
        _ if is_frozen => return None,
        "clear" => Vec::new(),
        "add" if one => [now, all].concat(),
        "update" => [now, all].concat(),
        "difference_update" => chosen(&now, &all, false)?,
        "discard" if one => chosen(&now, &all, false)?,
        "remove" if one && is_among(&now, all.first()?)? => chosen(&now, &all, false)?,
        _ => return None,
    };
    if let Some(Py::Set(new, _)) = set_of(changed, false) {
        *items.borrow_mut() = new.take();
        return Some(Py::None);
    }
    None
}
