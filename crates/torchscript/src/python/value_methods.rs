//! Evaluation of calls to methods of lists, dictionaries and strings.

use std::sync::Arc;

use ruff_python_ast::ExprCall;

use super::arguments::Arguments;
use super::maker::Maker;
use super::text::format_fields;
use super::value::{Py, insert};
use crate::error::Result;
use crate::source::SourceFile;

const LIST: &[&str] = &[
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "reverse",
];
const TUPLE: &[&str] = &["count", "index"];
const DICT: &[&str] = &["copy", "get", "items", "keys", "pop", "setdefault", "update", "values"];
const STR: &[&str] = &[
    "endswith",
    "format",
    "isdigit",
    "join",
    "lower",
    "replace",
    "rsplit",
    "split",
    "startswith",
    "strip",
    "upper",
];

/// Returns whether constructors may call the method `name` of a list, tuple, dictionary or string.
pub(super) fn is_known(value: &Py, name: &str) -> bool {
    match value {
        Py::List(_) => LIST.contains(&name),
        Py::Tuple(_) => TUPLE.contains(&name),
        Py::Dict(_) => DICT.contains(&name),
        Py::Str(_) => STR.contains(&name),
        _ => false,
    }
}

impl Maker<'_> {
    /// Calls a method of a list, string, dictionary or tensor.
    pub(super) fn value_method(
        &mut self,
        file: &Arc<SourceFile>,
        object: &Py,
        name: &str,
        arguments: &Arguments,
        call: &ExprCall,
    ) -> Result<Py> {
        if let (Py::List(_), "append" | "extend" | "insert") = (object, name) {
            let added = if name == "extend" {
                arguments.first().map_or(0, Py::weight)
            } else {
                1
            };
            self.charge_bytes(file, added.saturating_mul(size_of::<Py>() as u64), call)?;
        }
        let value = match object {
            Py::Size(items) if name == "numel" && arguments.is_empty() => {
                let mut all = items.iter().map(|item| item.as_int().unwrap_or_default());
                all.try_fold(1i64, i64::checked_mul).map(Py::Int)
            }
            Py::Complex(number) if name == "conjugate" && arguments.is_empty() => Some(Py::Complex(number.conj())),
            Py::Set(items, is_frozen) => super::sets::method(items, *is_frozen, name, arguments),
            Py::Named(_) => self.sequence_method(&object.plain(), name, arguments),
            Py::List(_) | Py::Tuple(_) => self.sequence_method(object, name, arguments),
            Py::Dict(_) => self.dict_method(object, name, arguments),
            Py::Str(text) => self.str_method(text, name, arguments),
            Py::Handle(module, identity) => {
                let is_other = |hook: &super::value::Hook| !std::rc::Rc::ptr_eq(&hook.identity, identity);
                module.borrow_mut().hooks.retain(is_other);
                Some(Py::None)
            }
            Py::Tensor(tensor) | Py::Parameter(tensor) => self.tensor_method(object, tensor, name, arguments),
            _ => None,
        };
        self.finish(
            file,
            value,
            arguments,
            || format!("the method `{name}` of a {}", object.type_name()),
            call,
        )
    }

    fn sequence_method(&mut self, object: &Py, name: &str, arguments: &Arguments) -> Option<Py> {
        let first = arguments.first();
        match (name, first) {
            ("index", Some(wanted)) => {
                for (at, item) in object.items()?.iter().enumerate() {
                    if super::compare::is_among(std::slice::from_ref(item), wanted)? {
                        return Some(Py::Int(at as i64));
                    }
                }
                return None;
            }
            ("count", Some(wanted)) => {
                let mut count = 0;
                for item in object.items()? {
                    count += i64::from(super::compare::is_among(std::slice::from_ref(&item), wanted)?);
                }
                return Some(Py::Int(count));
            }
            _ => {}
        }
        let Py::List(list) = object else { return None };
        let items = || list.borrow_mut();
        match (name, first) {
            ("append", Some(item)) => items().push(item.clone()),
            ("extend", Some(more)) => {
                let more = self.items(more)?;
                items().extend(more);
            }
            ("insert", Some(Py::Int(at))) => {
                let item = arguments.at(1)?;
                let length = list.borrow().len() as i64;
                let at = if *at < 0 { at.saturating_add(length) } else { *at };
                items().insert(usize::try_from(at.clamp(0, length)).ok()?, item.clone());
            }
            ("pop", None) => return items().pop(),
            ("pop", Some(Py::Int(at))) => {
                let length = list.borrow().len() as i64;
                let at = if *at < 0 { at + length } else { *at };
                let at = usize::try_from(at).ok().filter(|&at| (at as i64) < length)?;
                return Some(items().remove(at));
            }
            ("reverse", None) => items().reverse(),
            ("clear", None) => items().clear(),
            ("copy", None) => return Some(Py::list(list.borrow().clone())),
            _ => return None,
        }
        Some(Py::None)
    }

    fn dict_method(&mut self, object: &Py, name: &str, arguments: &Arguments) -> Option<Py> {
        let Py::Dict(dict) = object else { return None };
        let find = |key: &Py| {
            let items = dict.borrow();
            items.iter().position(|(known, _)| known.is_key(key))
        };
        let value_at = |at: usize| dict.borrow().get(at).map(|(_, value)| value.clone());
        let first = arguments.first();
        Some(match (name, first) {
            ("items", None) => Py::list(
                dict.borrow()
                    .iter()
                    .map(|(k, v)| Py::tuple(vec![k.clone(), v.clone()]))
                    .collect(),
            ),
            ("keys", None) => Py::list(dict.borrow().iter().map(|(k, _)| k.clone()).collect()),
            ("values", None) => Py::list(dict.borrow().iter().map(|(_, v)| v.clone()).collect()),
            ("copy", None) => Py::Dict(std::rc::Rc::new(std::cell::RefCell::new(dict.borrow().clone()))),
            ("get", Some(key)) => {
                let default = arguments.at(1).cloned().unwrap_or(Py::None);
                find(key).and_then(value_at).unwrap_or(default)
            }
            ("pop", Some(key)) => {
                let default = arguments.at(1).cloned();
                match find(key) {
                    Some(at) => dict.borrow_mut().remove(at).1,
                    None => default?,
                }
            }
            ("setdefault", Some(key)) => {
                let default = arguments.at(1).cloned().unwrap_or(Py::None);
                match find(key) {
                    Some(at) => value_at(at)?,
                    None => {
                        dict.borrow_mut().push((key.clone(), default.clone()));
                        default
                    }
                }
            }
            ("update", more) => {
                let more = match more {
                    Some(Py::Dict(more)) => more.borrow().clone(),
                    Some(_) => return None,
                    None => Vec::new(),
                };
                let by_name = arguments
                    .keywords()
                    .iter()
                    .map(|(name, value)| (Py::str(name), value.clone()));
                for (key, value) in more.into_iter().chain(by_name) {
                    insert(&mut dict.borrow_mut(), key, value);
                }
                Py::None
            }
            _ => return None,
        })
    }

    fn str_method(&mut self, text: &str, name: &str, arguments: &Arguments) -> Option<Py> {
        if name == "format" {
            return format_fields(text, arguments.positional(), arguments.keywords()).map(Py::str);
        }
        let first = arguments.first();
        let starts = |part: &str| match name {
            "startswith" => text.starts_with(part),
            _ => text.ends_with(part),
        };
        Some(match (name, first) {
            ("lower", None) if text.is_ascii() => Py::str(text.to_lowercase()),
            ("upper", None) if text.is_ascii() => Py::str(text.to_uppercase()),
            ("strip", None) if text.is_ascii() => Py::str(text.trim()),
            ("isdigit", None) if text.is_ascii() => {
                Py::Bool(!text.is_empty() && text.chars().all(|c| c.is_ascii_digit()))
            }
            ("startswith" | "endswith", Some(Py::Str(part))) => Py::Bool(starts(part)),
            ("startswith" | "endswith", Some(Py::Tuple(parts))) => {
                let is = |part: &Py| match part {
                    Py::Str(part) => Some(starts(part)),
                    _ => None,
                };
                let found: Vec<bool> = parts.iter().map(is).collect::<Option<_>>()?;
                Py::Bool(found.contains(&true))
            }
            ("replace", Some(Py::Str(old))) if !old.is_empty() => match arguments.at(1)? {
                Py::Str(new) => {
                    let length = text.len() + text.matches(&**old).count() * new.len();
                    (length as i64 <= super::maker::MAX_LENGTH).then_some(())?;
                    Py::str(text.replace(&**old, new))
                }
                _ => return None,
            },
            ("split", None) if text.is_ascii() => Py::list(text.split_whitespace().map(Py::str).collect()),
            ("split", Some(Py::Str(at))) if !at.is_empty() => {
                let limit = arguments.get(1, "maxsplit").map_or(Some(-1), Py::as_int)?;
                match usize::try_from(limit) {
                    Ok(limit) => Py::list(text.splitn(limit + 1, &**at).map(Py::str).collect()),
                    Err(_) => Py::list(text.split(&**at).map(Py::str).collect()),
                }
            }
            ("rsplit", Some(Py::Str(at))) if !at.is_empty() => {
                let limit = arguments.get(1, "maxsplit").map_or(Some(-1), Py::as_int)?;
                let limit = usize::try_from(limit).map_or(usize::MAX, |limit| limit.saturating_add(1));
                let mut parts: Vec<Py> = text.rsplitn(limit, &**at).map(Py::str).collect();
                parts.reverse();
                Py::list(parts)
            }
            ("join", Some(items)) => {
                let part = |item: &Py| match item {
                    Py::Str(text) => Some(text.to_string()),
                    _ => None,
                };
                let parts: Vec<String> = self.items(items)?.iter().map(part).collect::<Option<_>>()?;
                Py::str(parts.join(text))
            }
            _ => return None,
        })
    }

    /// Returns the result of a call; an error if the call is not supported, or an argument has not been read.
    pub(super) fn finish(
        &self,
        file: &SourceFile,
        value: Option<Py>,
        arguments: &Arguments,
        what: impl Fn() -> String,
        call: &ExprCall,
    ) -> Result<Py> {
        match (value, arguments.unread()) {
            (Some(value), None) => Ok(value),
            (Some(_), Some(unread)) => self.beyond(file, format!("{unread} of {}", what()), call),
            (None, _) => self.beyond(file, what(), call),
        }
    }
}
