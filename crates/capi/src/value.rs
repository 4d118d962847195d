//! Values: what methods take and give.

use crate::memory::{array, get, give, give_text, put, text};
use crate::{FrazilError, FrazilSession, FrazilTensor, error::guarded};
use frazil::Value;
use frazil::ir::types;
use frazil::runtime::value::ListValue;
use std::ffi::c_char;
use std::mem::MaybeUninit;

/// What a value is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrazilValueKind {
    /// `None`.
    None = 0,
    /// A truth value.
    Bool = 1,
    /// An integer.
    Int = 2,
    /// A float.
    Float = 3,
    /// A string.
    Str = 4,
    /// A tensor.
    Tensor = 5,
    /// A list.
    List = 6,
    /// A tuple.
    Tuple = 7,
    /// A dictionary, whose items are tuples of a key and a value.
    Dict = 8,
    /// Something else, which can be handed on.
    Other = 9,
}

/// A value.
pub struct FrazilValue(pub(crate) Value);

/// `None`.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_none(
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| give(out, || Ok(FrazilValue(Value::None))))
}

/// A truth value.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_bool(
    value: bool,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| give(out, || Ok(FrazilValue(Value::Bool(value)))))
}

/// An integer.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_int(
    value: i64,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| give(out, || Ok(FrazilValue(Value::Int(value)))))
}

/// A float.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_float(
    value: f64,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| give(out, || Ok(FrazilValue(Value::Float(value)))))
}

/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_str(
    value: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller keeps the rules.
        let value = unsafe { text(value, "the string") }?;
        give(out, || Ok(FrazilValue(Value::str(value))))
    })
}

/// A tensor, whose memory the value shares.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_tensor(
    tensor: Option<&FrazilTensor>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let tensor = get(tensor, "the tensor")?;
        give(out, || Ok(FrazilValue(Value::from(tensor.0.clone()))))
    })
}

/// The values that an array of handles stands for.
///
/// # Safety
/// The caller keeps the rules.
pub(crate) unsafe fn values(items: *const Option<&FrazilValue>, len: usize) -> Result<Vec<Value>, FrazilError> {
    // SAFETY: the caller keeps the rules.
    let items = unsafe { array(items, len, "the values") }?;
    items
        .iter()
        .map(|item| get(*item, "a value").map(|v| v.0.clone()))
        .collect()
}

/// A list of values of one type: that of the first, or tensors where there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_list(
    session: Option<&FrazilSession>,
    items: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ctx = get(session, "the session")?.ctx();
        // SAFETY: the caller keeps the rules.
        let items = unsafe { values(items, len) }?;
        let element = items.first().map_or(types::TENSOR, |item| item.ty(ctx));
        if items.iter().any(|item| item.ty(ctx) != element) {
            return Err(FrazilError::argument("the items of a list are of one type"));
        }
        give(out, || Ok(FrazilValue(Value::List(ListValue::new(element, items)))))
    })
}

/// A tuple of values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_tuple(
    items: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller keeps the rules.
        let items = unsafe { values(items, len) }?;
        give(out, || Ok(FrazilValue(Value::tuple(items))))
    })
}

/// Frees a value.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_free(value: Option<Box<FrazilValue>>) {
    drop(value);
}

/// What a value is; `FRAZIL_VALUE_KIND_NONE` for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_kind(value: Option<&FrazilValue>) -> FrazilValueKind {
    match value.map(|v| &v.0) {
        None | Some(Value::None) => FrazilValueKind::None,
        Some(Value::Bool(_)) => FrazilValueKind::Bool,
        Some(Value::Int(_)) => FrazilValueKind::Int,
        Some(Value::Float(_)) => FrazilValueKind::Float,
        Some(Value::Str(_)) => FrazilValueKind::Str,
        Some(Value::Tensor(_)) => FrazilValueKind::Tensor,
        Some(Value::List(_)) => FrazilValueKind::List,
        Some(Value::Tuple(_)) => FrazilValueKind::Tuple,
        Some(Value::Dict(_)) => FrazilValueKind::Dict,
        Some(_) => FrazilValueKind::Other,
    }
}

fn wrong(what: &str) -> FrazilError {
    FrazilError::argument(&format!("the value is no {what}"))
}

/// The truth value that a value is.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_as_bool(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let value = get(value, "the value")?;
        put(out, value.0.as_bool().ok_or_else(|| wrong("truth value"))?)
    })
}

/// The integer that a value is.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_as_int(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<i64>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let value = get(value, "the value")?;
        put(out, value.0.as_int().ok_or_else(|| wrong("integer"))?)
    })
}

/// The float that a value is.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_as_float(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<f64>>,
) -> Option<Box<FrazilError>> {
    guarded(|| match get(value, "the value")?.0 {
        Value::Float(x) => put(out, x),
        _ => Err(wrong("float")),
    })
}

/// The string that a value is, up to a zero byte in it.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_as_str(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let value = get(value, "the value")?;
        give_text(out, || Ok(value.0.as_str().ok_or_else(|| wrong("string"))?.to_owned()))
    })
}

/// The tensor that a value is, whose memory is shared.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_as_tensor(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilTensor>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let value = get(value, "the value")?;
        give(out, || {
            value.0.as_tensor().map(FrazilTensor).ok_or_else(|| wrong("tensor"))
        })
    })
}

fn items(value: Option<&FrazilValue>) -> Result<Vec<Value>, FrazilError> {
    let value = &get(value, "the value")?.0;
    let pair = |(key, value): (&frazil::runtime::value::Key, &Value)| Value::tuple(vec![key.0.clone(), value.clone()]);
    match value {
        Value::Dict(dict) => Ok(dict.with(|entries| entries.iter().map(pair).collect())),
        other => other.items().ok_or_else(|| wrong("list, tuple or dictionary")),
    }
}

/// How many items a list, tuple or dictionary has.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_count(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<FrazilError>> {
    guarded(|| put(out, items(value)?.len()))
}

/// Item number `index` of a list, tuple or dictionary.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_item(
    value: Option<&FrazilValue>,
    index: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let items = items(value)?;
        let item = items.get(index).cloned();
        give(out, || {
            item.map(FrazilValue)
                .ok_or_else(|| FrazilError::argument(&format!("there is no item {index}: there are {}", items.len())))
        })
    })
}
