//! Compiled methods: native code for inputs of given shapes, in this process or as a library.

#[cfg(feature = "codegen")]
use crate::engine::exclusively;
use crate::memory::{array, get, give, null, text};
use crate::tensor::dtype_of;
use crate::{
    FrazilBytes, FrazilError, FrazilInputSpec, FrazilModel, FrazilOptions, FrazilTensor, FrazilValue, error::guarded,
};
use frazil::ir::DType;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
#[cfg(feature = "codegen")]
use std::sync::Mutex;

/// A method that was compiled for inputs of given shapes.
pub struct FrazilCompiled {
    inputs: Names,
    outputs: Names,
    #[cfg(feature = "codegen")]
    method: Mutex<frazil::CompiledMethod>,
}

/// Names of inputs or outputs.
struct Names(Vec<CString>);

/// Returns the shapes in an array of input specifications.
///
/// # Safety
/// The caller follows the rules.
unsafe fn shapes(inputs: *const FrazilInputSpec, len: usize) -> Result<Vec<(DType, Vec<i64>)>, FrazilError> {
    // SAFETY: the caller follows the rules.
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
        // SAFETY: the caller follows the rules.
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
        inputs: Names::of(method.inputs()),
        outputs: Names::of(method.outputs()),
        method: Mutex::new(method),
    })
}

#[cfg(not(feature = "codegen"))]
fn compile(_: &FrazilModel, _: &[(DType, Vec<i64>)], _: Option<&FrazilOptions>) -> Result<FrazilCompiled, FrazilError> {
    Err(FrazilError::no_codegen())
}

/// Stage of native code: fused kernels, with their shapes and memory, as text.
pub const FRAZIL_STAGE_KERNELS: i32 = 0;
/// Stage of native code: the kernels in MLIR.
pub const FRAZIL_STAGE_MLIR: i32 = 1;
/// Stage of native code: the kernels in LLVM IR.
pub const FRAZIL_STAGE_LLVM: i32 = 2;
/// Stage of native code: the kernels in assembler.
pub const FRAZIL_STAGE_ASM: i32 = 3;
/// Stage of native code: an object file.
pub const FRAZIL_STAGE_OBJECT: i32 = 4;

/// Returns the text or bytes of a stage of native code for a method of a frozen model, for inputs of these shapes. `stage` is one of `FRAZIL_STAGE_`.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "a method, its inputs, how, and the place for the result"
)]
pub unsafe extern "C" fn frazil_model_emit(
    model: Option<&FrazilModel>,
    method: *const c_char,
    inputs: *const FrazilInputSpec,
    len: usize,
    stage: i32,
    options: Option<&FrazilOptions>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilBytes>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller follows the rules.
        let (method, shapes) = unsafe { (text(method, "the method")?, shapes(inputs, len)?) };
        if !(FRAZIL_STAGE_KERNELS..=FRAZIL_STAGE_OBJECT).contains(&stage) {
            return Err(FrazilError::argument(&format!("there is no such stage: {stage}")));
        }
        give(out, || {
            Ok(FrazilBytes(emit(model, method, &shapes, stage, options)?.into()))
        })
    })
}

#[cfg(feature = "codegen")]
fn emit(
    model: &FrazilModel,
    method: &str,
    shapes: &[(DType, Vec<i64>)],
    stage: i32,
    options: Option<&FrazilOptions>,
) -> Result<Vec<u8>, FrazilError> {
    let options = options.cloned().unwrap_or_default().compile();
    let plan = model.0.plan(method, &specs(shapes), &options)?;
    Ok(plan.emit(match stage {
        FRAZIL_STAGE_KERNELS => frazil::Emit::Kernels,
        FRAZIL_STAGE_MLIR => frazil::Emit::Mlir,
        FRAZIL_STAGE_LLVM => frazil::Emit::Llvm,
        FRAZIL_STAGE_ASM => frazil::Emit::Asm,
        _ => frazil::Emit::Object,
    })?)
}

#[cfg(not(feature = "codegen"))]
fn emit(
    _: &FrazilModel,
    _: &str,
    _: &[(DType, Vec<i64>)],
    _: i32,
    _: Option<&FrazilOptions>,
) -> Result<Vec<u8>, FrazilError> {
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
        // SAFETY: the caller follows the rules.
        let (method, path) = unsafe { (text(method, "the method")?, text(path, "the path")?) };
        // SAFETY: the caller follows the rules.
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

/// A size that callers of a library choose.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FrazilSizeRange {
    /// The name: capital letters, digits and underscores, a letter first.
    pub name: *const c_char,
    /// The smallest size, at least 0.
    pub low: i64,
    /// The largest size.
    pub high: i64,
}

/// Writes a shared library that runs a method of a frozen model on inputs whose sizes are in these ranges, and its C header beside it. In the shapes of the
/// inputs, -1 stands for the size of the first range, -2 for that of the second, and so on.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "a method, its inputs and their ranges, how, and the place for the result"
)]
pub unsafe extern "C" fn frazil_model_write_range_library(
    model: Option<&FrazilModel>,
    method: *const c_char,
    inputs: *const FrazilInputSpec,
    len: usize,
    ranges: *const FrazilSizeRange,
    range_len: usize,
    options: Option<&FrazilOptions>,
    path: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller follows the rules.
        let (method, path) = unsafe { (text(method, "the method")?, text(path, "the path")?) };
        // SAFETY: the caller follows the rules.
        let (shapes, ranges) = unsafe { (shapes(inputs, len)?, array(ranges, range_len, "the ranges")?) };
        let range = |range: &FrazilSizeRange| {
            // SAFETY: the caller follows the rules.
            let name = unsafe { text(range.name, "the name of a range") }?;
            Ok((name.to_owned(), [range.low, range.high]))
        };
        let ranges: Vec<(String, [i64; 2])> = ranges.iter().map(range).collect::<Result<_, FrazilError>>()?;
        write_range_library(model, method, &shapes, &ranges, options, path)
    })
}

#[cfg(feature = "codegen")]
fn write_range_library(
    model: &FrazilModel,
    method: &str,
    shapes: &[(DType, Vec<i64>)],
    ranges: &[(String, [i64; 2])],
    options: Option<&FrazilOptions>,
    path: &str,
) -> Result<(), FrazilError> {
    use frazil::{InputSize, RangedInput, SizeRange};
    let size = |&size: &i64| {
        if size >= 0 {
            return Ok(InputSize::Fixed(size));
        }
        // -1 is index 0; `!size` does not overflow.
        match usize::try_from(!size).ok().and_then(|index| ranges.get(index)) {
            Some((name, _)) => Ok(InputSize::Named(name.clone())),
            None => Err(FrazilError::argument(&format!(
                "the size {size} stands for a range that does not exist"
            ))),
        }
    };
    let input = |(dtype, sizes): &(DType, Vec<i64>)| {
        let sizes = sizes.iter().map(size).collect::<Result<_, FrazilError>>()?;
        Ok(RangedInput { dtype: *dtype, sizes })
    };
    let inputs: Vec<RangedInput> = shapes.iter().map(input).collect::<Result<_, FrazilError>>()?;
    let ranges = ranges
        .iter()
        .cloned()
        .map(|(name, [low, high])| SizeRange { name, low, high });
    let options = options.cloned().unwrap_or_default().compile();
    let library = model
        .0
        .plan_ranges(method, &inputs, &ranges.collect::<Vec<_>>(), &options)?;
    Ok(library.write(path.as_ref())?)
}

#[cfg(not(feature = "codegen"))]
fn write_range_library(
    _: &FrazilModel,
    _: &str,
    _: &[(DType, Vec<i64>)],
    _: &[(String, [i64; 2])],
    _: Option<&FrazilOptions>,
    _: &str,
) -> Result<(), FrazilError> {
    Err(FrazilError::no_codegen())
}

#[cfg(feature = "codegen")]
impl Names {
    fn of(ports: &[frazil::Port]) -> Names {
        Names(ports.iter().map(|port| crate::memory::c_string(&port.name)).collect())
    }
}

impl Names {
    fn get(&self, index: usize) -> *const c_char {
        self.0.get(index).map_or(std::ptr::null(), |name| name.as_ptr())
    }
}

/// Returns the number of inputs that a compiled method takes; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_compiled_input_count(compiled: Option<&FrazilCompiled>) -> usize {
    compiled.map_or(0, |c| c.inputs.0.len())
}

/// Returns the name that the program has for input number `index`, which lives as long as the compiled method; NULL when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_compiled_input_name(compiled: Option<&FrazilCompiled>, index: usize) -> *const c_char {
    compiled.map_or(std::ptr::null(), |c| c.inputs.get(index))
}

/// Returns the number of tensors that the result of a compiled method has; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_compiled_output_count(compiled: Option<&FrazilCompiled>) -> usize {
    compiled.map_or(0, |c| c.outputs.0.len())
}

/// Returns the name that the program has for tensor number `index` of the result (a variable, a field, a key), which lives as long as the compiled method;
/// NULL when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_compiled_output_name(compiled: Option<&FrazilCompiled>, index: usize) -> *const c_char {
    compiled.map_or(std::ptr::null(), |c| c.outputs.get(index))
}

/// Frees a compiled method.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_compiled_free(compiled: Option<Box<FrazilCompiled>>) {
    drop(compiled);
}

/// Runs a compiled method on tensors of the element types and sizes that it was compiled for; others are an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_compiled_run(
    compiled: Option<&FrazilCompiled>,
    inputs: *const Option<&FrazilTensor>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let compiled = get(compiled, "the compiled method")?;
        // SAFETY: the caller follows the rules.
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
