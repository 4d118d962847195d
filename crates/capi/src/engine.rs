//! Engines and compiled methods: running.

use crate::memory::{array, get, get_mut, give, give_text, text};
use crate::tensor::dtype_of;
use crate::value::values;
use crate::{
    FrazilError, FrazilInputSpec, FrazilModel, FrazilOptions, FrazilTensor, FrazilValue, error::guarded, memory::null,
};
use frazil::Engine;
use frazil::ir::DType;
use std::ffi::c_char;
use std::mem::MaybeUninit;

/// An instance of a model: what a call changes, the next one sees.
pub struct FrazilEngine(Engine);

/// A method that was compiled for inputs of given shapes.
pub struct FrazilCompiled {
    #[cfg(feature = "codegen")]
    method: frazil::CompiledMethod,
}

/// An engine, which freezes the model and compiles each method for what it is called with, or interprets it where the options say so.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_new(
    model: Option<&FrazilModel>,
    options: Option<&FrazilOptions>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilEngine>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model();
        let options = options.cloned().unwrap_or_default().engine;
        give(out, || Ok(FrazilEngine(model.engine(&options)?)))
    })
}

/// Frees an engine.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_free(engine: Option<Box<FrazilEngine>>) {
    drop(engine);
}

/// Calls a method; arguments that are missing at the end take their defaults.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_engine_call(
    engine: Option<&mut FrazilEngine>,
    method: *const c_char,
    arguments: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = get_mut(engine, "the engine")?;
        // SAFETY: the caller keeps the rules.
        let (method, arguments) = unsafe { (text(method, "the method")?, values(arguments, len)?) };
        give(out, || Ok(FrazilValue(engine.0.call(method, &arguments)?)))
    })
}

/// What an engine compiled, and what it did not and why: a line each.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_notes(
    engine: Option<&FrazilEngine>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = get(engine, "the engine")?;
        give_text(out, || {
            Ok(engine.0.notes().iter().map(|line| format!("{line}\n")).collect())
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
    Ok(FrazilCompiled { method })
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

/// Runs a compiled method on tensors of the shapes that it was compiled for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_compiled_run(
    compiled: Option<&mut FrazilCompiled>,
    inputs: *const Option<&FrazilTensor>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let compiled = get_mut(compiled, "the compiled method")?;
        // SAFETY: the caller keeps the rules.
        let inputs = unsafe { array(inputs, len, "the inputs") }?;
        let tensors: Option<Vec<_>> = inputs.iter().map(|t| t.map(|t| t.0.clone())).collect();
        let tensors = tensors.ok_or_else(|| null("an input"))?;
        give(out, || run(compiled, &tensors))
    })
}

#[cfg(feature = "codegen")]
fn run(compiled: &mut FrazilCompiled, inputs: &[frazil::Tensor]) -> Result<FrazilValue, FrazilError> {
    Ok(FrazilValue(compiled.method.run(inputs)?))
}

#[cfg(not(feature = "codegen"))]
fn run(_: &mut FrazilCompiled, _: &[frazil::Tensor]) -> Result<FrazilValue, FrazilError> {
    Err(FrazilError::no_codegen())
}
