//! Operators on lists: indexing, slicing, growing, searching and sorting.

use super::arithmetic::order;
use super::slices::slice_indices;
use frazil_ir::{DType, TypeId, TypeKind, types};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::format::{general, str_of};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::value::sorting::sorted_by;
use frazil_runtime::value::{ListValue, Value};
use frazil_runtime::{Scalar, Tensor, memory};
use num_complex::Complex64;
use std::cmp::Ordering;

/// Entries of operators on lists, with elements of any type (tensors included), and on ranges. A row with an overload name (`aten::pop.t`) covers only the
/// list overload of an operator.
pub(super) const ENTRIES: &[Row] = &[
    ("aten::len", Entry::on_values(len).holds_elements().total_on_values()),
    ("aten::append", Entry::on_values(append).holds_elements()),
    ("aten::extend", Entry::on_values(extend)),
    ("aten::insert", Entry::on_values(insert)),
    (
        "aten::reverse",
        Entry::on_values(|c| {
            c.list(0)?.change(|l| l.reverse());
            Ok(Results::new())
        }),
    ),
    ("aten::index", Entry::on_values(index)),
    ("aten::select", Entry::on_values(get)),
    ("aten::slice", Entry::on_values(slice)),
    ("aten::list", Entry::on_values(list)),
    ("aten::sum", Entry::on_values(sum)),
    (
        "aten::any",
        Entry::on_values(|c| one(c.list(0)?.items().iter().any(truth))),
    ),
    (
        "prim::rangelist",
        Entry::on_values(|c| {
            let n = c.int(0)?.max(0);
            memory::check_items(n, size_of::<Value>())?;
            one(Value::ints(0..n))
        }),
    ),
    (
        "aten::_size_if_not_equal",
        Entry::on_values(|c| {
            one(if c.ints(0)? == c.ints(1)? {
                Value::None
            } else {
                Value::ints(c.ints(0)?)
            })
        }),
    ),
    ("aten::count", Entry::on_values(count)),
    (
        "aten::all",
        Entry::on_values(|c| one(c.list(0)?.items().iter().all(truth))),
    ),
    ("aten::sort", Entry::on_values(|c| sort(c, true))),
    ("aten::sorted", Entry::on_values(|c| sort(c, false))),
    (
        "aten::add_",
        Entry::on_values(|c| {
            let more = c.list(1)?.items();
            c.list(0)?.change(|l| l.extend(more));
            one(c.arg(0).clone())
        }),
    ),
    (
        "aten::mul_",
        Entry::on_values(|c| {
            let n = c.int(1)?;
            let repeated = repeated(&c.list(0)?.items(), n)?;
            c.list(0)?.change(|l| *l = repeated);
            one(c.arg(0).clone())
        }),
    ),
    ("aten::remove", Entry::on_values(remove)),
    ("aten::__range_length", Entry::on_values(range_length)),
    (
        "aten::__derive_index",
        Entry::on_values(|c| one(c.int(0)?.wrapping_mul(c.int(2)?).wrapping_add(c.int(1)?))),
    ),
    ("aten::Size", Entry::on_values(|c| one(c.arg(0).clone()))),
    ("prim::tolist", Entry::kernel(to_list)),
    ("aten::__getitem__.t", Entry::kernel(get)),
    ("aten::_set_item.t", Entry::kernel(set)),
    ("aten::pop.t", Entry::kernel(pop)),
    ("aten::copy.t", Entry::kernel(copy)),
    ("aten::clear.t", Entry::kernel(clear)),
    ("aten::Delete.t", Entry::kernel(delete)),
    ("aten::__contains__.int_list", Entry::kernel(contains)),
    ("aten::__contains__.float_list", Entry::kernel(contains)),
    ("aten::__contains__.str_list", Entry::kernel(contains)),
    ("aten::remove.Tensor", Entry::kernel(remove)),
    ("aten::index.list_Tensor", Entry::kernel(index)),
    ("aten::eq.Tensor_list", Entry::kernel(|c| one(tensors_equal(c)?))),
    ("aten::ne.Tensor_list", Entry::kernel(|c| one(!tensors_equal(c)?))),
    ("aten::sort.Tensor", Entry::kernel(|c| sort(c, true))),
    ("aten::sorted.Tensor", Entry::kernel(|c| sort(c, false))),
    ("aten::count.Tensor", Entry::kernel(count)),
];

/// Converts a Python index, which may be negative, to a position in a list of `len` elements.
pub(super) fn position(index: i64, len: usize) -> Result<usize, OpError> {
    let wrapped = if index < 0 {
        index.saturating_add(len as i64)
    } else {
        index
    };
    usize::try_from(wrapped)
        .ok()
        .filter(|&i| i < len)
        .ok_or_else(|| OpError::raised("list index out of range"))
}

fn len(call: &Call<'_>) -> Result<Results, OpError> {
    one(match call.arg(0) {
        Value::Str(s) => s.chars().count() as i64,
        Value::Dict(d) => d.with(|e| e.len() as i64),
        Value::Tuple(t) => t.items.len() as i64,
        _ => call.list(0)?.len() as i64,
    })
}

fn get(call: &Call<'_>) -> Result<Results, OpError> {
    let index = call.int(1)?;
    one(call.list(0)?.with(|l| position(index, l.len()).map(|i| l[i].clone()))?)
}

fn set(call: &Call<'_>) -> Result<Results, OpError> {
    let (index, value) = (call.int(1)?, call.arg(2).clone());
    call.list(0)?
        .change(|l| position(index, l.len()).map(|i| l[i] = value))?;
    one(call.arg(0).clone())
}

fn append(call: &Call<'_>) -> Result<Results, OpError> {
    let item = call.arg(1).clone();
    call.list(0)?.change(|l| l.push(item));
    one(call.arg(0).clone())
}

fn extend(call: &Call<'_>) -> Result<Results, OpError> {
    let more = call.list(1)?.items();
    call.list(0)?.change(|l| l.extend(more));
    Ok(Results::new())
}

fn insert(call: &Call<'_>) -> Result<Results, OpError> {
    let (index, item) = (call.int(1)?, call.arg(2).clone());
    call.list(0)?.change(|l| {
        let len = l.len() as i64;
        let at = if index < 0 {
            (index + len).max(0)
        } else {
            index.min(len)
        };
        l.insert(at as usize, item);
    });
    Ok(Results::new())
}

fn pop(call: &Call<'_>) -> Result<Results, OpError> {
    let index = call.int(1)?;
    one(call.list(0)?.change(|l| match l.len() {
        0 => Err(OpError::raised("pop from empty list")),
        len => position(index, len).map(|i| l.remove(i)),
    })?)
}

fn delete(call: &Call<'_>) -> Result<Results, OpError> {
    let index = call.int(1)?;
    call.list(0)?.change(|l| match l.len() {
        0 => Err(OpError::raised("pop index out of range")),
        len => position(index, len).map(|i| l.remove(i)),
    })?;
    Ok(Results::new())
}

fn index(call: &Call<'_>) -> Result<Results, OpError> {
    match find(call)? {
        Some(at) => one(at as i64),
        None => {
            // PyTorch writes it to a C++ stream.
            let shown = match call.arg(1) {
                Value::Bool(b) => i64::from(*b).to_string(),
                Value::Float(f) => general(*f, 6),
                other => str_of(call.ctx, other),
            };
            Err(OpError::raised(format!("'{shown}' is not in list")))
        }
    }
}

fn remove(call: &Call<'_>) -> Result<Results, OpError> {
    let at = find(call)?.ok_or_else(|| OpError::raised("list.remove(x): x not in list"))?;
    call.list(0)?.change(|l| {
        if at < l.len() {
            l.remove(at);
        }
    });
    Ok(Results::new())
}

fn clear(call: &Call<'_>) -> Result<Results, OpError> {
    call.list(0)?.change(Vec::clear);
    Ok(Results::new())
}

fn copy(call: &Call<'_>) -> Result<Results, OpError> {
    let l = call.list(0)?;
    one(Value::List(ListValue::new(l.element, l.items())))
}

fn list(call: &Call<'_>) -> Result<Results, OpError> {
    match call.arg(0) {
        Value::Str(_) => super::strings::characters(call),
        _ => copy(call),
    }
}

fn find(call: &Call<'_>) -> Result<Option<usize>, OpError> {
    Ok(call
        .list(0)?
        .items()
        .iter()
        .position(|v| v.equals(call.arg(1)).unwrap_or(false)))
}

fn contains(call: &Call<'_>) -> Result<Results, OpError> {
    one(find(call)?.is_some())
}

fn count(call: &Call<'_>) -> Result<Results, OpError> {
    if let (Value::Str(_), Value::Str(_)) = (call.arg(0), call.arg(1)) {
        return super::strings::count(call);
    }
    let items = call.list(0)?.items();
    one(items.iter().filter(|v| v.equals(call.arg(1)).unwrap_or(false)).count() as i64)
}

pub(super) fn concatenate(call: &Call<'_>) -> Result<Results, OpError> {
    let (a, b) = (call.list(0)?, call.list(1)?);
    let mut items = a.items();
    items.extend(b.items());
    one(Value::List(ListValue::new(a.element, items)))
}

fn repeated(items: &[Value], n: i64) -> Result<Vec<Value>, OpError> {
    let total = items.len().saturating_mul(n.max(0) as usize);
    let mut all = memory::with_capacity(total)?;
    all.extend(items.iter().cloned().cycle().take(total));
    Ok(all)
}

pub(super) fn repeat(l: &ListValue, n: i64) -> Result<Results, OpError> {
    one(Value::List(ListValue::new(l.element, repeated(&l.items(), n)?)))
}

fn slice(call: &Call<'_>) -> Result<Results, OpError> {
    let (start, end, step) = (call.opt_int(1)?, call.opt_int(2)?, call.int(3)?);
    let l = call.list(0)?;
    let items = l.items();
    let chosen = slice_indices(start, end, step, items.len())?;
    one(Value::List(ListValue::new(
        l.element,
        chosen.filter_map(|i| items.get(i).cloned()).collect(),
    )))
}

fn truth(v: &Value) -> bool {
    match v {
        Value::Str(s) => !s.is_empty(),
        other => other.as_scalar().is_some_and(Scalar::as_bool),
    }
}

fn sum(call: &Call<'_>) -> Result<Results, OpError> {
    let l = call.list(0)?;
    let numbers: Vec<_> = l.items().iter().filter_map(Value::as_scalar).collect();
    one(match call.ctx.type_kind(l.element) {
        TypeKind::Float => Value::Float(numbers.iter().fold(0.0, |sum, n| sum + n.as_f64())),
        TypeKind::Complex => Value::Complex(numbers.iter().map(|n| n.as_complex()).sum()),
        _ => Value::Int(numbers.iter().map(|n| n.as_i64()).fold(0, i64::wrapping_add)),
    })
}

fn is_nan(v: &Value) -> bool {
    matches!(v, Value::Float(f) if f.is_nan())
}

/// Returns the elements of two tensors, whose comparison has to be one bool.
fn elements(a: &Tensor, b: &Tensor) -> Result<(Value, Value), OpError> {
    match (a.numel(), b.numel()) {
        (1, 1) => Ok((a.item()?.into(), b.item()?.into())),
        (0, _) | (_, 0) => Err(OpError::raised("Boolean value of Tensor with no values is ambiguous")),
        _ => Err(OpError::raised(
            "Boolean value of Tensor with more than one value is ambiguous",
        )),
    }
}

/// Implements `==` of two lists of tensors: up to the first difference, the comparison of each pair has to be one bool.
fn tensors_equal(call: &Call<'_>) -> Result<bool, OpError> {
    let (a, b) = (call.list(0)?.items(), call.list(1)?.items());
    if a.len() != b.len() {
        return Ok(false);
    }
    for pair in a.iter().zip(&b) {
        let (Value::Tensor(x), Value::Tensor(y)) = pair else {
            return Err(OpError::raised("expected lists of tensors"));
        };
        let (x, y) = elements(&x.get(), &y.get())?;
        if x.equals(&y) != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns Python's `a < b` of two items of a list, where a NaN comes after all numbers. Tuples and lists are compared item by item.
fn less(a: &Value, b: &Value) -> Result<bool, OpError> {
    if let (Some(x), Some(y)) = (a.items(), b.items()) {
        for (x, y) in x.iter().zip(&y) {
            if less(x, y)? {
                return Ok(true);
            }
            if less(y, x)? {
                return Ok(false);
            }
        }
        return Ok(x.len() < y.len());
    }
    match (a, b) {
        (Value::Tensor(a), Value::Tensor(b)) => {
            let (a, b) = elements(&a.get(), &b.get())?;
            Ok(order(&a, &b) == Some(Ordering::Less))
        }
        // Where there are methods to call, the interpreter sorts.
        (Value::Object(_), _) => Err(OpError::Unsupported("sorting by a method of a class".into())),
        _ => match order(a, b) {
            Some(ordering) => Ok(ordering == Ordering::Less),
            None if a.as_scalar().is_some() && b.as_scalar().is_some() => Ok(!is_nan(a) && is_nan(b)),
            None => Err(OpError::raised("Only values of same type can be compared")),
        },
    }
}

/// Implements `sort` (in place) and `sorted` (a new list). Both sorts are stable.
fn sort(call: &Call<'_>, in_place: bool) -> Result<Results, OpError> {
    let reverse = call.args.len() > 1 && call.flag(1)?;
    let l = call.list(0)?;
    let mut items = l.items();
    match call.ctx.type_kind(l.element) {
        TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Str => items.sort_by(|a, b| {
            let ordering = order(a, b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)));
            if reverse { ordering.reverse() } else { ordering }
        }),
        _ => items = sorted_by(items, |a, b| if reverse { less(b, a) } else { less(a, b) })?,
    }
    if in_place {
        l.change(|all| *all = items);
        return Ok(Results::new());
    }
    one(Value::List(ListValue::new(l.element, items)))
}

fn range_length(call: &Call<'_>) -> Result<Results, OpError> {
    let (low, high, step) = (call.int(0)?, call.int(1)?, call.int(2)?);
    if step == 0 {
        return Err(OpError::raised("range() arg 3 must not be zero"));
    }
    let (low, high, step) = (i128::from(low), i128::from(high), i128::from(step));
    let distance = if step > 0 { high - low } else { low - high };
    let count = if distance <= 0 {
        0
    } else {
        (distance - 1) / step.abs() + 1
    };
    one(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Implements `x.tolist()`: nested lists with as many levels as the tensor has dimensions, or a number. The operands after the tensor are the
/// depth that the program was compiled for, and a code of the element type.
fn to_list(call: &Call<'_>) -> Result<Results, OpError> {
    let tensor = call.tensor(0)?;
    let dtype = tensor.dtype();
    let (element, fits, name) = match call.int(2)? {
        0 => (types::INT, dtype == DType::Long, "Long"),
        1 => (types::FLOAT, dtype.is_floating_point(), "Double"),
        2 => (types::BOOL, dtype == DType::Bool, "Bool"),
        _ => (types::COMPLEX, dtype.is_complex(), "ComplexDouble"),
    };
    if call.int(1)? != tensor.dim() as i64 {
        return Err(OpError::raised(
            "Output annotation list dimension and runtime tensor dimension must match for tolist()",
        ));
    }
    if !fits {
        return Err(OpError::raised(format!(
            "Output annotation element type and runtime tensor element type must match for tolist(): {name} vs {}",
            dtype.type_name()
        )));
    }
    // Memory is needed for its elements as numbers, as values, and as values of the lists.
    memory::check_items(tensor.numel(), 2 * size_of::<Complex64>() + 2 * size_of::<Value>())?;
    let elements: Vec<Value> = match element {
        types::INT => tensor.to_i64_vec().into_iter().map(Value::Int).collect(),
        types::FLOAT => tensor.to_f64_vec().into_iter().map(Value::Float).collect(),
        types::BOOL => tensor.to_i64_vec().into_iter().map(|b| Value::Bool(b != 0)).collect(),
        _ => tensor
            .to_dtype(DType::ComplexDouble)?
            .to_vec::<Complex64>()
            .into_iter()
            .map(Value::Complex)
            .collect(),
    };
    let mut elements = elements.into_iter();
    one(nested(call, tensor.sizes(), element, &mut elements))
}

/// Builds nested lists with the sizes `sizes` from the next elements.
fn nested(call: &Call<'_>, sizes: &[i64], element: TypeId, elements: &mut std::vec::IntoIter<Value>) -> Value {
    let Some((&length, rest)) = sizes.split_first() else {
        return elements.next().unwrap_or_default();
    };
    let inner = rest.iter().fold(element, |ty, _| call.ctx.list_of(ty));
    let items = (0..length).map(|_| nested(call, rest, element, elements)).collect();
    Value::List(ListValue::new(inner, items))
}
