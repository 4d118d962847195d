//! Engines and compiled methods: running.

use crate::memory::{array, get, give, give_text, text};
use crate::tensor::dtype_of;
use crate::value::values;
use crate::{
    FrazilError, FrazilErrorKind, FrazilInputSpec, FrazilModel, FrazilOptions, FrazilTensor, FrazilValue,
    error::guarded, memory::null,
};
use frazil::ir::DType;
use frazil::{Engine, Value};
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// An instance of a model: what a call changes, the next one sees.
pub struct FrazilEngine(Mutex<Engine>);

/// A method that was compiled for inputs of given shapes.
pub struct FrazilCompiled {
    #[cfg(feature = "codegen")]
    method: Mutex<frazil::CompiledMethod>,
}

/// What runs one call at a time, for this call: an error while another thread uses it.
fn exclusively<'a, T>(mutex: &'a Mutex<T>, what: &str) -> Result<MutexGuard<'a, T>, FrazilError> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        // A bug ended a call; what it left can be used (see `guarded`).
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            let message = format!("{what} is in use by another thread: it runs one call at a time");
            Err(FrazilError::new(FrazilErrorKind::Busy, &message))
        }
    }
}

/// An engine, which freezes the model and compiles each method for what it is called with, or interprets it where the options say so.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_new(
    model: Option<&FrazilModel>,
    options: Option<&FrazilOptions>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilEngine>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        let options = options.cloned().unwrap_or_default().engine;
        give(out, || Ok(FrazilEngine(Mutex::new(model.engine(&options)?))))
    })
}

/// Frees an engine.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_free(engine: Option<Box<FrazilEngine>>) {
    drop(engine);
}

/// Calls a method. Arguments are checked and converted as PyTorch does with what comes from Python; those that are missing at the end take their
/// defaults. No hooks run, not even for `forward`: `frazil_engine_call_module` calls the module. The path of a submodule without a method's name
/// (`encoder`) calls the submodule, with its hooks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_engine_call(
    engine: Option<&FrazilEngine>,
    method: *const c_char,
    arguments: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = get(engine, "the engine")?;
        // SAFETY: the caller keeps the rules.
        let (method, arguments) = unsafe { (text(method, "the method")?, values(arguments, len)?) };
        let mut engine = exclusively(&engine.0, "the engine")?;
        give(out, || Ok(FrazilValue(engine.call(method, &arguments)?)))
    })
}

/// Calls the module: its forward pre-hooks, `forward`, its forward hooks. Without hooks, this is a call of `forward`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_engine_call_module(
    engine: Option<&FrazilEngine>,
    arguments: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = get(engine, "the engine")?;
        // SAFETY: the caller keeps the rules.
        let arguments = unsafe { values(arguments, len) }?;
        let mut engine = exclusively(&engine.0, "the engine")?;
        give(out, || Ok(FrazilValue(engine.call_module(&arguments)?)))
    })
}

/// Calls a method, or the module where `method` is NULL, with arguments by position and `named_len` more by name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_engine_call_named(
    engine: Option<&FrazilEngine>,
    method: *const c_char,
    arguments: *const Option<&FrazilValue>,
    len: usize,
    names: *const *const c_char,
    named: *const Option<&FrazilValue>,
    named_len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = get(engine, "the engine")?;
        // SAFETY: the caller keeps the rules.
        let (arguments, names, named) = unsafe {
            let names = array(names, named_len, "the names")?;
            (values(arguments, len)?, names, values(named, named_len)?)
        };
        let mut by_name: Vec<(&str, Value)> = Vec::with_capacity(named.len());
        for (&name, value) in names.iter().zip(named) {
            // SAFETY: as above.
            by_name.push((unsafe { text(name, "a name") }?, value));
        }
        let method = match method.is_null() {
            true => None,
            // SAFETY: as above.
            false => Some(unsafe { text(method, "the method") }?),
        };
        let mut engine = exclusively(&engine.0, "the engine")?;
        give(out, || {
            Ok(FrazilValue(match method {
                Some(method) => engine.call_with(method, &arguments, &by_name)?,
                None => engine.call_module_with(&arguments, &by_name)?,
            }))
        })
    })
}

/// What an engine compiled, and what it did not and why: a line each.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_notes(
    engine: Option<&FrazilEngine>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = exclusively(&get(engine, "the engine")?.0, "the engine")?;
        give_text(out, || {
            Ok(engine.notes().iter().map(|line| format!("{line}\n")).collect())
        })
    })
}

/// The shapes that an array of specifications stands for.
///
/// # Safety
/// The caller keeps the rules.
unsafe fn shapes(inputs: *const FrazilInputSpec, len: usize) -> Result<Vec<(DType, Vec<i64>)>, FrazilError> {
    // SAFETY: the caller keeps the rules.
    let inputs = unsafe { array(inputs, len, "the inputs") }?;
    let shape = |input: &FrazilInputSpec| {
        // SAFETY: as above.
        let sizes = unsafe { array(input.sizes, input.rank, "the sizes of an input") }?;
        Ok((dtype_of(input.dtype)?, sizes.to_vec()))
    };
    inputs.iter().map(shape).collect()
}

/// Compiles `forward` of a frozen model for inputs of these shapes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_compile(
    model: Option<&FrazilModel>,
    inputs: *const FrazilInputSpec,
    len: usize,
    options: Option<&FrazilOptions>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilCompiled>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller keeps the rules.
        let shapes = unsafe { shapes(inputs, len) }?;
        give(out, || compile(model, &shapes, options))
    })
}

#[cfg(feature = "codegen")]
fn specs(shapes: &[(DType, Vec<i64>)]) -> Vec<frazil::InputSpec> {
    shapes
        .iter()
        .map(|(dtype, sizes)| frazil::InputSpec::new(*dtype, sizes))
        .collect()
}

#[cfg(feature = "codegen")]
fn compile(
    model: &FrazilModel,
    shapes: &[(DType, Vec<i64>)],
    options: Option<&FrazilOptions>,
) -> Result<FrazilCompiled, FrazilError> {
    let options = options.cloned().unwrap_or_default().compile();
    let method = model.0.plan("forward", &specs(shapes), &options)?.compile(&options)?;
    Ok(FrazilCompiled {
        method: Mutex::new(method),
    })
}

#[cfg(not(feature = "codegen"))]
fn compile(_: &FrazilModel, _: &[(DType, Vec<i64>)], _: Option<&FrazilOptions>) -> Result<FrazilCompiled, FrazilError> {
    Err(FrazilError::no_codegen())
}

/// Writes a shared library that runs a method of a frozen model on inputs of these shapes, and its C header beside it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_write_library(
    model: Option<&FrazilModel>,
    method: *const c_char,
    inputs: *const FrazilInputSpec,
    len: usize,
    options: Option<&FrazilOptions>,
    path: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller keeps the rules.
        let (method, path) = unsafe { (text(method, "the method")?, text(path, "the path")?) };
        // SAFETY: the caller keeps the rules.
        let shapes = unsafe { shapes(inputs, len) }?;
        write_library(model, method, &shapes, options, path)
    })
}

#[cfg(feature = "codegen")]
fn write_library(
    model: &FrazilModel,
    method: &str,
    shapes: &[(DType, Vec<i64>)],
    options: Option<&FrazilOptions>,
    path: &str,
) -> Result<(), FrazilError> {
    let options = options.cloned().unwrap_or_default().compile();
    let plan = model.0.plan(method, &specs(shapes), &options)?;
    Ok(plan.write_library(path.as_ref())?)
}

#[cfg(not(feature = "codegen"))]
fn write_library(
    _: &FrazilModel,
    _: &str,
    _: &[(DType, Vec<i64>)],
    _: Option<&FrazilOptions>,
    _: &str,
) -> Result<(), FrazilError> {
    Err(FrazilError::no_codegen())
}

/// Frees a compiled method.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_compiled_free(compiled: Option<Box<FrazilCompiled>>) {
    drop(compiled);
}

/// Runs a compiled method on tensors of the types of elements and the sizes that it was compiled for; others are an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_compiled_run(
    compiled: Option<&FrazilCompiled>,
    inputs: *const Option<&FrazilTensor>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let compiled = get(compiled, "the compiled method")?;
        // SAFETY: the caller keeps the rules.
        let inputs = unsafe { array(inputs, len, "the inputs") }?;
        let tensors: Option<Vec<_>> = inputs.iter().map(|t| t.map(|t| t.0.clone())).collect();
        let tensors = tensors.ok_or_else(|| null("an input"))?;
        give(out, || run(compiled, &tensors))
    })
}

#[cfg(feature = "codegen")]
fn run(compiled: &FrazilCompiled, inputs: &[frazil::Tensor]) -> Result<FrazilValue, FrazilError> {
    Ok(FrazilValue(
        exclusively(&compiled.method, "the compiled method")?.run(inputs)?,
    ))
}

#[cfg(not(feature = "codegen"))]
fn run(_: &FrazilCompiled, _: &[frazil::Tensor]) -> Result<FrazilValue, FrazilError> {
    Err(FrazilError::no_codegen())
}
