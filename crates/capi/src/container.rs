//! Access to the items of containers, in order: lists, tuples and dictionaries.

use crate::memory::{get, give, place, put};
use crate::value::{common_type, values};
use crate::{FrazilError, FrazilSession, FrazilValue, error::guarded};
use frazil::Value;
use frazil::ir::types;
use frazil::runtime::value::{DictValue, Key};
use std::mem::MaybeUninit;

fn no_container() -> FrazilError {
    FrazilError::argument("the value is no list, tuple or dictionary")
}

fn no_item(index: usize, count: usize) -> FrazilError {
    FrazilError::argument(&format!("there is no item {index}: there are {count}"))
}

/// Returns the dictionary in a value.
fn dict(value: Option<&FrazilValue>) -> Result<&DictValue, FrazilError> {
    match &get(value, "the value")?.0 {
        Value::Dict(dict) => Ok(dict),
        _ => Err(FrazilError::argument("the value is no dictionary")),
    }
}

fn count(value: &Value) -> Result<usize, FrazilError> {
    match value {
        Value::List(list) => Ok(list.len()),
        Value::Tuple(tuple) => Ok(tuple.items.len()),
        Value::Dict(dict) => Ok(dict.with(|entries| entries.len())),
        _ => Err(no_container()),
    }
}

fn entry(dict: &DictValue, index: usize) -> Option<(Value, Value)> {
    dict.with(|entries| {
        entries
            .get_index(index)
            .map(|(key, value)| (key.0.clone(), value.clone()))
    })
}

/// Returns the number of items that a list, tuple or dictionary has.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_count(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<FrazilError>> {
    guarded(|| put(out, count(&get(value, "the value")?.0)?))
}

/// Returns item number `index` of a list, tuple or dictionary.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_item(
    value: Option<&FrazilValue>,
    index: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let value = &get(value, "the value")?.0;
        let item = match value {
            Value::List(list) => list.with(|items| items.get(index).cloned()),
            Value::Tuple(tuple) => tuple.items.get(index).cloned(),
            Value::Dict(dict) => entry(dict, index).map(|(key, item)| Value::tuple(vec![key, item])),
            _ => return Err(no_container()),
        };
        let item = match item {
            Some(item) => item,
            None => return Err(no_item(index, count(value)?)),
        };
        give(out, || Ok(FrazilValue(item)))
    })
}

/// Returns a dictionary with these keys and values, in this order. Keys have one type: strings, integers, floats, complex numbers, bools or
/// tensors. Values have one type too, and some may be `None`. Without entries the dictionary is one from strings to tensors. Of equal keys the last
/// value counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_dict(
    session: Option<&FrazilSession>,
    keys: *const Option<&FrazilValue>,
    items: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ctx = get(session, "the session")?.ctx();
        // SAFETY: the caller follows the rules.
        let (keys, items) = unsafe { (values(keys, len)?, values(items, len)?) };
        let is_key = |key: &Value| key.as_scalar().is_some() || matches!(key, Value::Str(_) | Value::Tensor(_));
        if !keys.iter().all(is_key) {
            return Err(FrazilError::argument(
                "a key is a string, an integer, a float, a complex number, a bool or a tensor",
            ));
        }
        let key = common_type(ctx, &keys, types::STR, "the keys of a dictionary")?;
        let item = common_type(ctx, &items, types::TENSOR, "the values of a dictionary")?;
        let entries = keys.into_iter().map(Key).zip(items).collect();
        give(out, || Ok(FrazilValue(Value::Dict(DictValue::new(key, item, entries)))))
    })
}

/// Returns the key and value of entry number `index` of a dictionary, in the order in which they were added. Either place may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_entry(
    value: Option<&FrazilValue>,
    index: usize,
    out_key: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
    out_value: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let dict = dict(value)?;
        let Some((key, item)) = entry(dict, index) else {
            return Err(no_item(index, dict.with(|entries| entries.len())));
        };
        if let Some(out) = out_key {
            out.write(Some(Box::new(FrazilValue(key))));
        }
        if let Some(out) = out_value {
            out.write(Some(Box::new(FrazilValue(item))));
        }
        Ok(())
    })
}

/// Returns the value of a dictionary at a key. A missing key is an error of kind `FRAZIL_ERROR_KIND_ARGUMENT`; `frazil_value_has` checks for it.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_get(
    value: Option<&FrazilValue>,
    key: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let (dict, key) = (dict(value)?, Key(get(key, "the key")?.0.clone()));
        let found = dict.with(|entries| entries.get(&key).cloned());
        let found = found.ok_or_else(|| FrazilError::argument(&format!("there is no key {:?}", key.0)))?;
        give(out, || Ok(FrazilValue(found)))
    })
}

/// Returns whether a dictionary has a key.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_has(
    value: Option<&FrazilValue>,
    key: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let (dict, key) = (dict(value)?, Key(get(key, "the key")?.0.clone()));
        place(out)?.write(dict.with(|entries| entries.contains_key(&key)));
        Ok(())
    })
}
