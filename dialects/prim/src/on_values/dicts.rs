//! Operators on dictionaries, whose entries are in order of insertion.

use frazil_ir::{TypeKind, types};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::format::str_of;
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::value::{DictValue, Key, ListValue, Value};
use indexmap::IndexMap;

/// Overloads on dictionaries whose keys are tensors.
pub(super) const ENTRIES: &[Row] = &[
    ("aten::keys", Entry::on_values(keys)),
    ("aten::values", Entry::on_values(values)),
    ("aten::items", Entry::on_values(items)),
    ("aten::get", Entry::on_values(lookup)),
    ("aten::setdefault", Entry::on_values(set_default)),
    ("aten::update", Entry::on_values(update)),
    ("aten::popitem", Entry::on_values(pop_item)),
    ("aten::dict", Entry::on_values(dict)),
    ("aten::__getitem__", Entry::on_values(get).holds_elements()),
    ("aten::_set_item", Entry::on_values(set)),
    ("aten::__contains__", Entry::on_values(contains)),
    ("aten::Delete", Entry::on_values(delete)),
    ("aten::pop", Entry::on_values(pop)),
    ("aten::clear", Entry::on_values(clear)),
    ("aten::copy", Entry::on_values(copy)),
    ("aten::__getitem__.Dict_Tensor", Entry::kernel(get)),
    ("aten::_set_item.Tensor", Entry::kernel(set)),
    ("aten::__contains__.Tensor", Entry::kernel(contains)),
    ("aten::Delete.Dict_Tensor", Entry::kernel(delete)),
    ("aten::get.Tensor", Entry::kernel(lookup)),
    ("aten::get.default_Tensor", Entry::kernel(lookup)),
    ("aten::setdefault.Tensor", Entry::kernel(set_default)),
    ("aten::pop.Dict_Tensor", Entry::kernel(pop)),
    ("aten::pop.Dict_default_Tensor", Entry::kernel(pop)),
];

fn key_error(call: &Call<'_>) -> OpError {
    OpError::raised(format!("KeyError: {}", str_of(call.ctx, call.arg(1))))
}

fn key(call: &Call<'_>) -> Key {
    Key(call.arg(1).clone())
}

fn get(call: &Call<'_>) -> Result<Results, OpError> {
    one(call
        .dict(0)?
        .with(|d| d.get(&key(call)).cloned())
        .ok_or_else(|| key_error(call))?)
}

fn set(call: &Call<'_>) -> Result<Results, OpError> {
    call.dict(0)?.change(|d| d.insert(key(call), call.arg(2).clone()));
    Ok(Results::new())
}

fn contains(call: &Call<'_>) -> Result<Results, OpError> {
    one(call.dict(0)?.with(|d| d.contains_key(&key(call))))
}

/// Implements `get(key)` and `get(key, default)`.
fn lookup(call: &Call<'_>) -> Result<Results, OpError> {
    one(call
        .dict(0)?
        .with(|d| d.get(&key(call)).cloned())
        .unwrap_or_else(|| call.arg(2).clone()))
}

fn set_default(call: &Call<'_>) -> Result<Results, OpError> {
    one(call
        .dict(0)?
        .change(|d| d.entry(key(call)).or_insert_with(|| call.arg(2).clone()).clone()))
}

fn delete(call: &Call<'_>) -> Result<Results, OpError> {
    call.dict(0)?
        .change(|d| d.shift_remove(&key(call)))
        .ok_or_else(|| key_error(call))?;
    Ok(Results::new())
}

/// Implements `pop(key)` and `pop(key, default)`.
fn pop(call: &Call<'_>) -> Result<Results, OpError> {
    let found = call.dict(0)?.change(|d| d.shift_remove(&key(call)));
    one(found
        .or_else(|| call.args.get(2).cloned())
        .ok_or_else(|| key_error(call))?)
}

/// Implements `popitem`: removes and returns the oldest entry, since PyTorch's dictionaries pop from the front.
fn pop_item(call: &Call<'_>) -> Result<Results, OpError> {
    let (k, v) = call
        .dict(0)?
        .change(|d| d.shift_remove_index(0))
        .ok_or_else(|| OpError::raised("popitem(): dictionary is empty"))?;
    one(Value::tuple(vec![k.0, v]))
}

fn clear(call: &Call<'_>) -> Result<Results, OpError> {
    call.dict(0)?.change(IndexMap::clear);
    Ok(Results::new())
}

fn copy(call: &Call<'_>) -> Result<Results, OpError> {
    let d = call.dict(0)?;
    one(Value::Dict(DictValue::new(d.key, d.value, d.with(IndexMap::clone))))
}

fn update(call: &Call<'_>) -> Result<Results, OpError> {
    let more = call.dict(1)?.with(IndexMap::clone);
    call.dict(0)?.change(|d| d.extend(more));
    Ok(Results::new())
}

fn keys(call: &Call<'_>) -> Result<Results, OpError> {
    let d = call.dict(0)?;
    one(Value::List(ListValue::new(
        d.key,
        d.with(|e| e.keys().map(|k| k.0.clone()).collect()),
    )))
}

fn values(call: &Call<'_>) -> Result<Results, OpError> {
    let d = call.dict(0)?;
    one(Value::List(ListValue::new(
        d.value,
        d.with(|e| e.values().cloned().collect()),
    )))
}

fn items(call: &Call<'_>) -> Result<Results, OpError> {
    let d = call.dict(0)?;
    let pairs = d.with(|e| {
        e.iter()
            .map(|(k, v)| Value::tuple(vec![k.0.clone(), v.clone()]))
            .collect()
    });
    one(Value::List(ListValue::new(call.ctx.tuple_of(&[d.key, d.value]), pairs)))
}

/// Implements `dict`: creates a dictionary that is empty, or from a dictionary or a list of pairs.
fn dict(call: &Call<'_>) -> Result<Results, OpError> {
    let (k, v) = match call.ctx.type_kind(call.output_type(0)) {
        TypeKind::Dict(k, v) => (k, v),
        _ => (types::ANY, types::ANY),
    };
    let entries = match call.arg(0) {
        Value::Dict(d) => d.with(IndexMap::clone),
        Value::List(l) => {
            let mut entries = IndexMap::new();
            for pair in l.items() {
                let pair = pair
                    .items()
                    .filter(|p| p.len() == 2)
                    .ok_or_else(|| OpError::raised("dict() takes pairs"))?;
                entries.insert(Key(pair[0].clone()), pair[1].clone());
            }
            entries
        }
        _ => IndexMap::new(),
    };
    one(Value::Dict(DictValue::new(k, v, entries)))
}
