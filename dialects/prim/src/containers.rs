//! Operators that construct and unpack lists, tuples and dictionaries.

use frazil_ir::{TypeKind, types};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::value::{DictValue, Key, ListValue, TupleValue, Value};
use indexmap::IndexMap;

pub(crate) const ENTRIES: &[Row] = &[
    ("prim::ListConstruct", Entry::kernel(list_construct).holds_elements()),
    ("prim::ListUnpack", Entry::kernel(unpack).holds_elements()),
    ("prim::TupleConstruct", Entry::kernel(tuple_construct).holds_elements()),
    ("prim::TupleUnpack", Entry::kernel(unpack).holds_elements()),
    ("prim::TupleIndex", Entry::kernel(tuple_index).holds_elements()),
    ("prim::TupleSlice", Entry::kernel(tuple_slice)),
    ("prim::DictConstruct", Entry::kernel(dict_construct)),
    ("prim::EnumName", Entry::kernel(enum_name)),
    ("prim::EnumValue.int", Entry::kernel(enum_value)),
    ("prim::EnumValue.float", Entry::kernel(enum_value)),
    ("prim::EnumValue.str", Entry::kernel(enum_value)),
    ("prim::unchecked_unwrap_optional", Entry::kernel(unchecked_unwrap)),
];

/// Creates a list; the node's type determines its element type.
fn list_construct(call: &Call<'_>) -> Result<Results, OpError> {
    let element = match call.ctx.type_kind(call.output_type(0)) {
        TypeKind::List(e) => e,
        _ => types::ANY,
    };
    one(Value::List(ListValue::new(element, call.args.to_vec())))
}

fn tuple_construct(call: &Call<'_>) -> Result<Results, OpError> {
    // A NamedTuple's type has the fields' names; a plain tuple's type consists of those of its elements.
    let ty = match call.ctx.type_kind(call.output_type(0)) {
        TypeKind::NamedTuple(..) => Some(call.output_type(0)),
        _ => None,
    };
    one(Value::Tuple(TupleValue {
        ty,
        items: call.args.into(),
    }))
}

/// Returns the elements of a list or tuple, whose number must be that of the node's outputs.
fn unpack(call: &Call<'_>) -> Result<Results, OpError> {
    let items = call
        .arg(0)
        .items()
        .ok_or_else(|| OpError::raised("expected a list or a tuple to unpack"))?;
    let wanted = call.output_types.len();
    if items.len() != wanted {
        return Err(OpError::raised(format!(
            "Expected {wanted} elements in a list but found {}",
            items.len()
        )));
    }
    Ok(items.into())
}

fn tuple_index(call: &Call<'_>) -> Result<Results, OpError> {
    let items = call.arg(0).items().ok_or_else(|| OpError::raised("expected a tuple"))?;
    let i = call.int(1)?;
    let i = if i < 0 { i + items.len() as i64 } else { i };
    let item = usize::try_from(i).ok().and_then(|i| items.get(i));
    one(item
        .cloned()
        .ok_or_else(|| OpError::raised("Tuple index out of range"))?)
}

fn tuple_slice(call: &Call<'_>) -> Result<Results, OpError> {
    let items = call.arg(0).items().ok_or_else(|| OpError::raised("expected a tuple"))?;
    let clamp = |i: i64| i.clamp(0, items.len() as i64) as usize;
    let (begin, end) = (clamp(call.attribute_int("beg")?), clamp(call.attribute_int("end")?));
    one(Value::tuple(items.get(begin..end.max(begin)).unwrap_or(&[]).to_vec()))
}

fn dict_construct(call: &Call<'_>) -> Result<Results, OpError> {
    let (key, value) = match call.ctx.type_kind(call.output_type(0)) {
        TypeKind::Dict(k, v) => (k, v),
        _ => (types::ANY, types::ANY),
    };
    let mut entries = IndexMap::new();
    for pair in call.args.chunks_exact(2) {
        entries.insert(Key(pair[0].clone()), pair[1].clone());
    }
    one(Value::Dict(DictValue::new(key, value, entries)))
}

fn enum_name(call: &Call<'_>) -> Result<Results, OpError> {
    match call.arg(0) {
        Value::Enum(e) => one(Value::Str(e.name.clone())),
        _ => Err(OpError::raised("expected a member of an enumeration")),
    }
}

fn enum_value(call: &Call<'_>) -> Result<Results, OpError> {
    match call.arg(0) {
        Value::Enum(e) => one(e.value.clone()),
        _ => Err(OpError::raised("expected a member of an enumeration")),
    }
}

fn unchecked_unwrap(call: &Call<'_>) -> Result<Results, OpError> {
    one(call.arg(0).clone())
}
