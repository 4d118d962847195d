//! Methods of Python's lists and dictionaries, which hooks modify and steps read.

use super::objects::{Failure, Object, Outcome};
use frazil::Value;
use frazil::ir::types;
use frazil::runtime::value::{DictValue, Key, ListValue};
use indexmap::IndexMap;

/// Returns a dictionary of strings and tensors.
pub fn dictionary(entries: impl IntoIterator<Item = (String, Value)>) -> DictValue {
    let entries: IndexMap<Key, Value> = entries.into_iter().map(|(k, v)| (Key(Value::str(k)), v)).collect();
    DictValue::new(types::STR, types::TENSOR, entries)
}

/// Returns a list of strings.
pub fn strings(items: &[String]) -> ListValue {
    ListValue::new(types::STR, items.iter().map(Value::str).collect())
}

/// Returns the strings of a list.
pub fn texts(list: &ListValue) -> Vec<String> {
    let texts = list
        .items()
        .into_iter()
        .filter_map(|item| item.as_str().map(str::to_owned));
    texts.collect()
}

fn none() -> Object {
    Object::Value(Value::None)
}

/// Calls `of.name(args)`, if `of` is a list or a dictionary with such a method.
pub fn method(of: &Value, name: &str, args: &[Object]) -> Option<Outcome> {
    match of {
        Value::List(list) => list_method(list, name, args).transpose(),
        Value::Dict(dict) => dict_method(dict, name, args).transpose(),
        _ => None,
    }
}

fn list_method(list: &ListValue, name: &str, args: &[Object]) -> Result<Option<Object>, Failure> {
    match (name, args) {
        ("append", [item]) => {
            let item = item.value()?;
            list.change(|items| items.push(item));
        }
        ("extend", [more]) => {
            let more = more.items().unwrap_or_default();
            let more = more.iter().map(Object::value).collect::<Result<Vec<_>, _>>()?;
            list.change(|items| items.extend(more));
        }
        ("clear", []) => list.change(Vec::clear),
        ("pop", []) => {
            let last = list.change(Vec::pop);
            return Ok(Some(Object::Value(
                last.ok_or_else(|| Failure::new("pop from empty list".into()))?,
            )));
        }
        ("remove", [item]) => {
            let item = Key(item.value()?);
            list.change(|items| {
                if let Some(at) = items.iter().position(|found| Key(found.clone()) == item) {
                    items.remove(at);
                }
            });
        }
        _ => return Ok(None),
    }
    Ok(Some(none()))
}

fn dict_method(dict: &DictValue, name: &str, args: &[Object]) -> Result<Option<Object>, Failure> {
    let all = |pick: fn(&Key, &Value) -> Value| {
        let items: Vec<Object> = dict.with(|entries| entries.iter().map(|(k, v)| Object::Value(pick(k, v))).collect());
        Object::List(items)
    };
    let key = || args.first().map(Object::value).transpose();
    let found = |take: bool| -> Result<Option<Value>, Failure> {
        let Some(key) = key()?.map(Key) else { return Ok(None) };
        Ok(match take {
            true => dict.change(|entries| entries.shift_remove(&key)),
            false => dict.with(|entries| entries.get(&key).cloned()),
        })
    };
    Ok(Some(match (name, args) {
        ("keys", []) => all(|k, _| k.0.clone()),
        ("values", []) => all(|_, v| v.clone()),
        ("items", []) => Object::List(Object::Value(Value::Dict(dict.clone())).items().unwrap_or_default()),
        ("clear", []) => {
            dict.change(IndexMap::clear);
            none()
        }
        ("__getitem__", [_]) => {
            Object::Value(found(false)?.ok_or_else(|| Failure::new(format!("no key {:?}", args[0])))?)
        }
        ("pop", [_]) => Object::Value(found(true)?.ok_or_else(|| Failure::new(format!("{:?}", args[0])))?),
        ("pop", [_, default]) => found(true)?.map_or_else(|| default.clone(), Object::Value),
        ("get", [_]) => Object::Value(found(false)?.unwrap_or(Value::None)),
        ("get", [_, default]) => found(false)?.map_or_else(|| default.clone(), Object::Value),
        ("setdefault", [_, default]) => match found(false)? {
            Some(value) => Object::Value(value),
            None => {
                put(dict, &args[0], default)?;
                default.clone()
            }
        },
        ("__setitem__", [key, value]) => {
            put(dict, key, value)?;
            none()
        }
        ("update", [more]) => {
            for pair in more.items().unwrap_or_default() {
                let pair = pair.items().unwrap_or_default();
                put(dict, &pair[0], &pair[1])?;
            }
            none()
        }
        _ => return Ok(None),
    }))
}

fn put(dict: &DictValue, key: &Object, value: &Object) -> Result<(), Failure> {
    let (key, value) = (Key(key.value()?), value.value()?);
    dict.change(|entries| entries.insert(key, value));
    Ok(())
}
