//! Attributes of modules: reading and setting them by dotted path, adding new ones, and submodules.

use crate::memory::{get, give, put, text};
use crate::{FrazilError, FrazilModel, FrazilTensor, FrazilValue, error::guarded};
use frazil::ir::{TypeId, types};
use frazil::runtime::value::{DictValue, Key};
use frazil::{Loaded, MemberOptions, Model, Value};
use std::ffi::c_char;
use std::mem::MaybeUninit;

/// Calls `change` with a copy of `model`, and returns the changed copy. `model` itself is not changed.
pub(crate) fn changed(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
    change: impl FnOnce(&mut Model) -> Result<(), FrazilError>,
) -> Result<(), FrazilError> {
    let mut model = get(model, "the model")?.to_model()?;
    give(out, || {
        change(&mut model)?;
        Ok(FrazilModel(Loaded::Model(model)))
    })
}

/// Returns a dictionary from names to values of one type.
pub(crate) fn named(entries: impl IntoIterator<Item = (String, Value)>, ty: TypeId) -> FrazilValue {
    let entries = entries.into_iter().map(|(name, value)| (Key(Value::str(name)), value));
    FrazilValue(Value::Dict(DictValue::new(types::STR, ty, entries.collect())))
}

/// Returns the attribute at a dotted path: `encoder.scale`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_attribute(
    model: Option<&FrazilModel>,
    path: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        give(out, || Ok(FrazilValue(model.root().attribute(path)?)))
    })
}

/// Returns whether there is an attribute at a dotted path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_has_attribute(
    model: Option<&FrazilModel>,
    path: *const c_char,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        put(out, model.root().has_attribute(path))
    })
}

/// Returns the model with another value of the attribute at a dotted path, which must be of the attribute's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_set_attribute(
    model: Option<&FrazilModel>,
    path: *const c_char,
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        let value = get(value, "the value")?;
        changed(model, out, |model| Ok(model.set_attribute(path, &value.0)?))
    })
}

/// Returns the model with one more parameter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_register_parameter(
    model: Option<&FrazilModel>,
    name: *const c_char,
    tensor: Option<&FrazilTensor>,
    requires_grad: bool,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name") }?;
        let tensor = get(tensor, "the tensor")?;
        changed(model, out, |model| {
            Ok(model.register_parameter(name, &tensor.0, requires_grad)?)
        })
    })
}

/// Returns the model with one more buffer. State dictionaries contain the buffer only if it is persistent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_register_buffer(
    model: Option<&FrazilModel>,
    name: *const c_char,
    tensor: Option<&FrazilTensor>,
    persistent: bool,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name") }?;
        let tensor = get(tensor, "the tensor")?;
        changed(model, out, |model| {
            Ok(model.register_buffer(name, &tensor.0, persistent)?)
        })
    })
}

/// Returns the model with one more attribute, of the value's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_register_attribute(
    model: Option<&FrazilModel>,
    name: *const c_char,
    value: Option<&FrazilValue>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name") }?;
        let value = get(value, "the value")?;
        changed(model, out, |model| Ok(model.register_attribute(name, &value.0)?))
    })
}

/// Returns the model with another module at a dotted path, which replaces an existing one. Both modules belong to one session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_set_submodule(
    model: Option<&FrazilModel>,
    path: *const c_char,
    child: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        let child = get(child, "the submodule")?.to_model()?;
        changed(model, out, |model| {
            let is_new = !path.contains('.') && !model.root().has_attribute(path);
            match is_new {
                true => model.add_module(path, &child)?,
                false => model.set_submodule(path, &child)?,
            }
            Ok(())
        })
    })
}

/// Returns the model with the functions of a source text as methods; each has the module as its first argument.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_define(
    model: Option<&FrazilModel>,
    source: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let source = unsafe { text(source, "the source") }?;
        changed(model, out, |model| Ok(model.define(source)?))
    })
}

/// Returns the options to list the members of a module; without `recurse`, members of submodules are left out.
fn members(recurse: bool) -> MemberOptions {
    MemberOptions::default().recurse(recurse)
}

/// Returns a dictionary of all attributes but submodules, by dotted path; without `recurse` only those of the module itself.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_named_attributes(
    model: Option<&FrazilModel>,
    recurse: bool,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        give(out, || {
            Ok(named(model.root().named_attributes(&members(recurse))?, types::ANY))
        })
    })
}

/// Returns a dictionary of parameters, by dotted path; without `recurse` only those of the module itself.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_named_parameters(
    model: Option<&FrazilModel>,
    recurse: bool,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        let found = model.root().named_parameters(&members(recurse))?;
        give(out, || Ok(tensors(found)))
    })
}

/// Returns a dictionary of buffers, by dotted path; without `recurse` only those of the module itself.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_named_buffers(
    model: Option<&FrazilModel>,
    recurse: bool,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        let found = model.root().named_buffers(&members(recurse))?;
        give(out, || Ok(tensors(found)))
    })
}

/// Returns a dictionary from the dotted path of each module to the name of its class; the path of the module itself is empty.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_named_modules(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        let modules = model.root().named_modules().into_iter();
        let classes = modules.map(|(path, module)| (path, Value::str(module.original_name())));
        give(out, || Ok(named(classes, types::STR)))
    })
}

fn tensors(found: Vec<(String, frazil::Tensor)>) -> FrazilValue {
    let values = found.into_iter().map(|(name, tensor)| (name, Value::from(tensor)));
    named(values, types::TENSOR)
}
