//! Values: arguments and results of methods.

use crate::memory::{array, get, give, give_text, place, put, text};
use crate::{FrazilBytes, FrazilError, FrazilSession, FrazilTensor, error::guarded};
use frazil::Value;
use frazil::ir::types::{TypeStyle, display_type, unify};
use frazil::ir::{Context, Device, TypeId, types};
use frazil::runtime::Signature;
use frazil::runtime::python_repr::repr;
use frazil::runtime::value::ListValue;
use num_complex::Complex64;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;

/// The kind of a value.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrazilValueKind {
    /// `None`.
    None = 0,
    /// A bool.
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
    /// A value of another kind. It can be passed to calls, and has no accessors here.
    Other = 9,
    /// A complex number.
    Complex = 10,
    /// A device.
    Device = 11,
    /// An object of a class.
    Object = 12,
    /// A member of an enumeration.
    Enum = 13,
}

/// A value.
pub struct FrazilValue(pub(crate) Value);

/// Returns a `None` value.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_none(
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| give(out, || Ok(FrazilValue(Value::None))))
}

/// Returns a bool.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_bool(
    value: bool,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| give(out, || Ok(FrazilValue(Value::Bool(value)))))
}

/// Returns an integer.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_int(
    value: i64,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| give(out, || Ok(FrazilValue(Value::Int(value)))))
}

/// Returns a float.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_float(
    value: f64,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| give(out, || Ok(FrazilValue(Value::Float(value)))))
}

/// Returns a complex number.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_complex(
    re: f64,
    im: f64,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| give(out, || Ok(FrazilValue(Value::Complex(Complex64::new(re, im))))))
}

/// Returns a device: `cpu`, `cuda:0`. Programs may name devices other than the host, but cannot use them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_device(
    name: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name of the device") }?;
        let device = Device::parse(name).ok_or_else(|| FrazilError::argument(&format!("`{name}` is no device")));
        give(out, || Ok(FrazilValue(Value::Device(device?))))
    })
}

/// Returns a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_str(
    value: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let value = unsafe { text(value, "the string") }?;
        give(out, || Ok(FrazilValue(Value::str(value))))
    })
}

/// Returns a string of `len` bytes, of which some may be zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_str_of(
    data: *const u8,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let bytes = unsafe { array(data, len, "the string") }?;
        let text = std::str::from_utf8(bytes).map_err(|_| FrazilError::argument("the string is not UTF-8"))?;
        give(out, || Ok(FrazilValue(Value::str(text))))
    })
}

/// Returns a value converted to a type that an annotation names (`List[int]`), as the arguments of methods are: an empty list becomes one of integers, a list a
/// tuple.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_convert(
    session: Option<&FrazilSession>,
    value: Option<&FrazilValue>,
    ty: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let session = get(session, "the session")?.session();
        let value = get(value, "the value")?;
        // SAFETY: the caller follows the rules.
        let ty = unsafe { text(ty, "the type") }?;
        // Types are read by the compiler of source, as the type of an argument; the text may contain nothing else.
        if ty.is_empty() || !ty.chars().all(|c| c.is_ascii_alphanumeric() || "_.,[] ".contains(c)) {
            return Err(FrazilError::argument(&format!("`{ty}` is no type")));
        }
        let source = format!("def convert(value: {ty}):\n    return value\n");
        let model = session.script(Path::new("type"), &source, &[])?.to_model("convert")?;
        let signature = Signature::of_method(model.module(), "forward");
        let signature = signature.ok_or_else(|| FrazilError::argument(&format!("`{ty}` is no type")))?;
        let given = [value.0.clone()];
        let converted = match signature.bind(&given, &[]) {
            Ok(converted) => converted.first().cloned().unwrap_or_default(),
            Err(_) => {
                let found = display_type(session.ctx(), value.0.ty(session.ctx()), TypeStyle::Annotation);
                return Err(FrazilError::input(&format!("a value of type {found} is no {ty}")));
            }
        };
        give(out, || Ok(FrazilValue(converted)))
    })
}

/// Returns a tensor, whose memory the value shares.
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

/// Returns the values that an array of handles points to.
///
/// # Safety
/// The caller follows the rules.
pub(crate) unsafe fn values(items: *const Option<&FrazilValue>, len: usize) -> Result<Vec<Value>, FrazilError> {
    // SAFETY: the caller follows the rules.
    let items = unsafe { array(items, len, "the values") }?;
    items
        .iter()
        .map(|item| get(*item, "a value").map(|v| v.0.clone()))
        .collect()
}

/// Returns the common type of `items`, which is optional if some are `None`. `what` describes the items in messages.
pub(crate) fn common_type<'v>(
    ctx: &Context,
    items: impl IntoIterator<Item = &'v Value>,
    empty: TypeId,
    what: &str,
) -> Result<TypeId, FrazilError> {
    let mut types = items.into_iter().map(|item| item.ty(ctx));
    let first = types.next().unwrap_or(empty);
    types
        .try_fold(first, |all, ty| unify(ctx, all, ty))
        .ok_or_else(|| FrazilError::argument(&format!("{what} are of one type")))
}

/// Returns a list of values of one type; tensors for an empty list. Some may be `None`; the element type is optional then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_list(
    session: Option<&FrazilSession>,
    items: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ctx = get(session, "the session")?.ctx();
        // SAFETY: the caller follows the rules.
        let items = unsafe { values(items, len) }?;
        let element = common_type(ctx, &items, types::TENSOR, "the items of a list")?;
        give(out, || Ok(FrazilValue(Value::List(ListValue::new(element, items)))))
    })
}

/// Returns a tuple of values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_value_tuple(
    items: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let items = unsafe { values(items, len) }?;
        give(out, || Ok(FrazilValue(Value::tuple(items))))
    })
}

/// Frees a value.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_free(value: Option<Box<FrazilValue>>) {
    drop(value);
}

/// Returns the kind of a value; `FRAZIL_VALUE_KIND_NONE` for NULL.
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
        Some(Value::Complex(_)) => FrazilValueKind::Complex,
        Some(Value::Device(_)) => FrazilValueKind::Device,
        Some(Value::Object(_)) => FrazilValueKind::Object,
        Some(Value::Enum(_)) => FrazilValueKind::Enum,
        Some(_) => FrazilValueKind::Other,
    }
}

fn wrong(what: &str) -> FrazilError {
    FrazilError::argument(&format!("the value is no {what}"))
}

/// Returns the bool in a value.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_as_bool(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let value = get(value, "the value")?;
        put(out, value.0.as_bool().ok_or_else(|| wrong("bool"))?)
    })
}

/// Returns the integer in a value.
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

/// Returns the float in a value.
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

/// Returns the string in a value, up to its first zero byte.
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

/// Returns the bytes of the string in a value, which may include zeros.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_as_str_bytes(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilBytes>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let value = get(value, "the value")?;
        let text = value.0.as_str().ok_or_else(|| wrong("string"))?;
        give(out, || Ok(FrazilBytes(text.as_bytes().into())))
    })
}

/// Returns the tensor in a value, whose memory is shared.
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

/// Returns the complex number in a value.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_as_complex(
    value: Option<&FrazilValue>,
    re: Option<&mut MaybeUninit<f64>>,
    im: Option<&mut MaybeUninit<f64>>,
) -> Option<Box<FrazilError>> {
    guarded(|| match get(value, "the value")?.0 {
        Value::Complex(c) => {
            let (re, im) = (place(re)?, place(im)?);
            re.write(c.re);
            im.write(c.im);
            Ok(())
        }
        _ => Err(wrong("complex number")),
    })
}

/// Returns the name of the device in a value.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_as_device(
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| match get(value, "the value")?.0 {
        Value::Device(device) => give_text(out, || Ok(device.to_string())),
        _ => Err(wrong("device")),
    })
}

/// Returns the type of a value, as annotations write it: `List[Tensor]`.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_type(
    session: Option<&FrazilSession>,
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ctx = get(session, "the session")?.ctx();
        let value = get(value, "the value")?;
        let ty = display_type(ctx, value.0.ty(ctx), TypeStyle::Annotation).to_string();
        give_text(out, || Ok(ty))
    })
}

/// Returns a value as Python prints it in containers: `[1, 2]`, `'text'`, `tensor([1.])`.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_value_repr(
    session: Option<&FrazilSession>,
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let ctx = get(session, "the session")?.ctx();
        let value = get(value, "the value")?;
        give_text(out, || Ok(repr(ctx, &value.0)))
    })
}
