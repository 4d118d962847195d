//! State dictionaries, and conversions of them: dictionaries from dotted names to tensors.

use crate::attributes::{changed, named};
use crate::memory::{get, give, place, text};
use crate::tensor::dtype_of;
use crate::{FrazilError, FrazilModel, FrazilValue, error::guarded};
use frazil::ir::{DType, types};
use frazil::runtime::value::ListValue;
use frazil::{Loaded, Model, StateDict, Value};
use std::ffi::c_char;
use std::mem::MaybeUninit;

/// Returns the state dictionary in a value.
fn state_of(value: Option<&FrazilValue>) -> Result<StateDict, FrazilError> {
    let wrong = || FrazilError::argument("a state dictionary has strings for keys and tensors for values");
    let Value::Dict(dict) = &get(value, "the state dictionary")?.0 else {
        return Err(wrong());
    };
    dict.with(|entries| {
        let each = entries.iter().map(|(key, value)| {
            let name = key.0.as_str().ok_or_else(wrong)?;
            Ok((name.to_owned(), value.as_tensor().ok_or_else(wrong)?))
        });
        each.collect()
    })
}

fn value_of(state: StateDict) -> FrazilValue {
    let values = state.into_iter().map(|(name, tensor)| (name, Value::from(tensor)));
    named(values, types::TENSOR)
}

/// Returns the parameters and persistent buffers of a model, in order: a dictionary from dotted names to tensors.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_state_dict(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        let state = model.state_dict()?;
        model_is_unchanged(model)?;
        give(out, || Ok(value_of(state)))
    })
}

fn model_is_unchanged(model: Model) -> Result<(), FrazilError> {
    Ok(Loaded::Model(model).check_unchanged()?)
}

/// Returns the model with the tensors of a state dictionary in place of its own, converted to the element types of the model. Other sizes are
/// an error and, with `strict`, so are missing and unexpected names. These are returned as lists of strings if `missing` and `unexpected` are
/// not NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_load_state_dict(
    model: Option<&FrazilModel>,
    state: Option<&FrazilValue>,
    strict: bool,
    missing: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
    unexpected: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let mut model = get(model, "the model")?.to_model()?;
        let state = state_of(state)?;
        let out = place(out)?;
        let keys = model.load_state_dict(&state, strict)?;
        for (names, out) in [(keys.missing_keys, missing), (keys.unexpected_keys, unexpected)] {
            let names = names.into_iter().map(Value::str).collect();
            if let Some(out) = out {
                out.write(Some(Box::new(FrazilValue(Value::List(ListValue::new(
                    types::STR,
                    names,
                ))))));
            }
        }
        out.write(Some(Box::new(FrazilModel(Loaded::Model(model)))));
        Ok(())
    })
}

/// Reads a state dictionary from a `.safetensors` file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_read_safetensors(
    path: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        give(out, || Ok(value_of(frazil::read_safetensors(path)?)))
    })
}

/// Writes a state dictionary as a `.safetensors` file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_write_safetensors(
    state: Option<&FrazilValue>,
    path: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let state = state_of(state)?;
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        Ok(frazil::write_safetensors(&state, path)?)
    })
}

/// Returns the model with its floating-point and complex parameters and buffers converted to an element type of one of these kinds: `Module.to`.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_to(
    model: Option<&FrazilModel>,
    dtype: i32,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let dtype = dtype_of(dtype)?;
        changed(model, out, |model| Ok(model.to(dtype)?))
    })
}

/// Returns the model with all parameters and buffers converted to an element type: `Module.type`.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_to_type(
    model: Option<&FrazilModel>,
    dtype: i32,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let dtype = dtype_of(dtype)?;
        changed(model, out, |model| Ok(model.to_type(dtype)?))
    })
}

/// Writes the model with its floating-point parameters and buffers converted to `dtype`.
fn floats_as(
    model: Option<&FrazilModel>,
    dtype: DType,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        changed(model, out, |model| {
            match dtype {
                DType::Half => model.half()?,
                DType::BFloat16 => model.bfloat16()?,
                DType::Double => model.double()?,
                _ => model.float()?,
            }
            Ok(())
        })
    })
}

/// Returns the model with its floating-point parameters and buffers converted to 16-bit floats.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_half(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    floats_as(model, DType::Half, out)
}

/// Returns the model with its floating-point parameters and buffers converted to bfloat16.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_bfloat16(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    floats_as(model, DType::BFloat16, out)
}

/// Returns the model with its floating-point parameters and buffers converted to 32-bit floats.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_float(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    floats_as(model, DType::Float, out)
}

/// Returns the model with its floating-point parameters and buffers converted to 64-bit floats.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_double(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    floats_as(model, DType::Double, out)
}

/// Returns the model with the `requires_grad` flag of all parameters set or cleared. Archives store this flag.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_requires_grad(
    model: Option<&FrazilModel>,
    requires_grad: bool,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| changed(model, out, |model| Ok(model.requires_grad_(requires_grad)?)))
}
