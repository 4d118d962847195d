//! Tracing: records the calls that a function of the caller makes on tensors as a graph.

use crate::hooks::given;
use crate::memory::{array, c_string, get, get_mut, give, null, place, text};
use crate::{FrazilError, FrazilModel, FrazilOps, FrazilSession, FrazilTensor, FrazilValue, error::guarded};
use frazil::Tensor;
use frazil::eager::{Ops, Var};
use frazil::trace::{Method, MethodFn, Outputs, Parameters, Scope, Trace, TraceOptions};
use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

/// A function to be traced. It is called with `len` input tensors, which belong to the compiler, and calls operators with `frazil_ops_call` of `ops`,
/// which it does not free. It writes its result to `result`: a tensor, or a tuple, list or dictionary of tensors, which belongs to the compiler from
/// then on. It returns NULL or an error, which ends tracing. It runs several times, on the calling thread, if the trace is checked.
pub type FrazilTraceFunction = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        ops: *const FrazilOps,
        inputs: *const *const FrazilValue,
        len: usize,
        result: *mut *mut FrazilValue,
    ) -> *mut FrazilError,
>;

/// A method of a module to be traced.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FrazilTraceMethod {
    /// Its name: `forward`.
    pub name: *const c_char,
    /// The function to trace.
    pub function: FrazilTraceFunction,
    /// The argument that the function is called with.
    pub context: *mut c_void,
    /// Example inputs.
    pub inputs: *const *const FrazilTensor,
    /// Number of inputs.
    pub len: usize,
}

/// Options for tracing.
#[derive(Default)]
pub struct FrazilTraceOptions(TraceOptions);

/// The parameters and buffers of a module to be traced, by dotted path.
pub struct FrazilParameters(Parameters);

/// Returns new options: the trace is checked on its example inputs.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_trace_options_new() -> Box<FrazilTraceOptions> {
    Box::default()
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_trace_options_free(options: Option<Box<FrazilTraceOptions>>) {
    drop(options);
}

fn set(options: Option<&mut FrazilTraceOptions>, change: impl FnOnce(&mut TraceOptions)) -> Option<Box<FrazilError>> {
    guarded(|| {
        change(&mut get_mut(options, "options")?.0);
        Ok(())
    })
}

/// Adds the name of the next input; inputs without names are called `x`, `x1`, `x2`, ...
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_trace_options_add_name(
    options: Option<&mut FrazilTraceOptions>,
    name: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let options = get_mut(options, "options")?;
        // SAFETY: the caller follows the rules.
        options.0.names.push(unsafe { text(name, "the name") }?.to_owned());
        Ok(())
    })
}

/// Sets whether the trace is run, made again and compared. Default: true.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_trace_options_set_check(
    options: Option<&mut FrazilTraceOptions>,
    check: bool,
) -> Option<Box<FrazilError>> {
    set(options, |o| o.check_trace = check)
}

/// Adds inputs of the first method for the comparison, in place of the example inputs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_trace_options_add_check_inputs(
    options: Option<&mut FrazilTraceOptions>,
    inputs: *const *const FrazilTensor,
    len: usize,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let options = get_mut(options, "options")?;
        // SAFETY: the caller follows the rules.
        options.0.check_inputs.push(unsafe { tensors(inputs, len) }?);
        Ok(())
    })
}

/// Sets the relative tolerance of results when the trace is checked. Default: 1e-5.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_trace_options_set_tolerance(
    options: Option<&mut FrazilTraceOptions>,
    tolerance: f64,
) -> Option<Box<FrazilError>> {
    set(options, |o| o.check_tolerance = tolerance)
}

/// Sets whether lists and dictionaries are refused as results. Default: true.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_trace_options_set_strict(
    options: Option<&mut FrazilTraceOptions>,
    strict: bool,
) -> Option<Box<FrazilError>> {
    set(options, |o| o.strict = strict)
}

/// Sets whether in-place operators are recorded as the variants that return new tensors. Default: false.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_trace_options_set_force_outplace(
    options: Option<&mut FrazilTraceOptions>,
    force: bool,
) -> Option<Box<FrazilError>> {
    set(options, |o| o.force_outplace = force)
}

/// Returns an empty set of parameters, of a module whose class is called `name`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_parameters_new(
    name: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilParameters>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name") }?;
        give(out, || Ok(FrazilParameters(Parameters::new(name))))
    })
}

/// Frees parameters.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_parameters_free(parameters: Option<Box<FrazilParameters>>) {
    drop(parameters);
}

/// Adds a parameter at a dotted path, or a buffer where `is_buffer` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_parameters_add(
    parameters: Option<&mut FrazilParameters>,
    path: *const c_char,
    tensor: Option<&FrazilTensor>,
    is_buffer: bool,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let parameters = &mut get_mut(parameters, "the parameters")?.0;
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        let tensor = get(tensor, "the tensor")?.0.clone();
        match is_buffer {
            true => parameters.buffer(path, tensor),
            false => parameters.parameter(path, tensor),
        };
        Ok(())
    })
}

/// Adds the parameter or buffer at `other` under a second path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_parameters_share(
    parameters: Option<&mut FrazilParameters>,
    path: *const c_char,
    other: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let parameters = &mut get_mut(parameters, "the parameters")?.0;
        // SAFETY: the caller follows the rules.
        let (path, other) = unsafe { (text(path, "the path")?, text(other, "the other path")?) };
        parameters.share(path, other)?;
        Ok(())
    })
}

/// Returns the tensors of an array.
///
/// # Safety
/// The caller follows the rules.
unsafe fn tensors(first: *const *const FrazilTensor, len: usize) -> Result<Vec<Tensor>, FrazilError> {
    // SAFETY: a handle that may be NULL has the layout of an optional reference.
    let each = unsafe { array(first.cast::<Option<&FrazilTensor>>(), len, "the inputs") }?;
    each.iter()
        .map(|tensor| Ok(get(*tensor, "an input")?.0.clone()))
        .collect()
}

/// A caller's function in the form that the tracer calls.
#[derive(Clone, Copy)]
struct Callback {
    function: FrazilTraceFunction,
    context: *mut c_void,
}

impl Callback {
    fn call(self, ops: &Ops, scope: Option<&Scope>, inputs: &[Var]) -> frazil::Result<Outputs> {
        let ops = FrazilOps {
            ops: ops.clone(),
            scope: scope.cloned(),
        };
        ops.ops.set_place(None);
        let values: Vec<FrazilValue> = inputs.iter().map(|var| FrazilValue(var.to_value())).collect();
        let pointers: Vec<*const FrazilValue> = values.iter().map(std::ptr::from_ref).collect();
        let function = self.function.ok_or_else(|| null("the function"))?;
        let mut result = std::ptr::null_mut();
        // SAFETY: the caller passed a function that may be called this way, and follows the rules for its results.
        let value = unsafe {
            let error = function(self.context, &ops, pointers.as_ptr(), pointers.len(), &mut result);
            given(error, result)
        };
        let value = value?.ok_or_else(|| FrazilError::argument("the traced function gives no result"))?;
        Ok(ops.outputs(&value, 0)?)
    }
}

/// Writes the model and the warnings of a trace.
fn give_trace(
    trace: impl FnOnce() -> frazil::Result<Trace>,
    out_warnings: Option<&mut MaybeUninit<*mut c_char>>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Result<(), FrazilError> {
    let out = place(out)?;
    let trace = trace()?;
    if let Some(warnings) = out_warnings {
        let lines: String = trace.warnings.iter().map(|warning| format!("{warning}\n")).collect();
        warnings.write(c_string(&lines).into_raw());
    }
    out.write(Some(Box::new(FrazilModel(trace.loaded().clone()))));
    Ok(())
}

/// Records the calls that a function makes on example inputs as the method `forward`: `torch.jit.trace`. Warnings, one line each, are written to
/// `out_warnings`, unless that is NULL.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "a function, its inputs, how, and the places for the results"
)]
pub unsafe extern "C" fn frazil_trace(
    session: Option<&FrazilSession>,
    function: FrazilTraceFunction,
    context: *mut c_void,
    inputs: *const *const FrazilTensor,
    len: usize,
    options: Option<&FrazilTraceOptions>,
    out_warnings: Option<&mut MaybeUninit<*mut c_char>>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let session = get(session, "the session")?.session();
        let callback = Callback { function, context };
        if function.is_none() {
            return Err(null("the function"));
        }
        // SAFETY: the caller follows the rules.
        let inputs = unsafe { tensors(inputs, len) }?;
        if inputs.is_empty() {
            return Err(FrazilError::argument("a traced function has at least one input"));
        }
        let options = options.map_or_else(TraceOptions::default, |o| o.0.clone());
        let function = |inputs: &[Var]| match inputs.first() {
            Some(first) => callback.call(first.ops(), None, inputs),
            None => Err(FrazilError::argument("a traced function has at least one input").into()),
        };
        give_trace(|| session.trace(function, &inputs, &options), out_warnings, out)
    })
}

/// Records the calls that methods make on parameters and example inputs: `torch.jit.trace_module`. The parameters become attributes, in submodules by
/// their dotted paths. Warnings are written as by `frazil_trace`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_trace_module(
    session: Option<&FrazilSession>,
    parameters: Option<&FrazilParameters>,
    methods: *const FrazilTraceMethod,
    len: usize,
    options: Option<&FrazilTraceOptions>,
    out_warnings: Option<&mut MaybeUninit<*mut c_char>>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let session = get(session, "the session")?.session();
        let parameters = &get(parameters, "the parameters")?.0;
        // SAFETY: the caller follows the rules.
        let methods = unsafe { array(methods, len, "the methods") }?;
        let options = options.map_or_else(TraceOptions::default, |o| o.0.clone());
        let mut functions: Vec<Box<MethodFn<'_>>> = Vec::with_capacity(len);
        let mut examples = Vec::with_capacity(len);
        for method in methods {
            if method.function.is_none() {
                return Err(null("the function"));
            }
            let callback = Callback {
                function: method.function,
                context: method.context,
            };
            functions.push(Box::new(move |scope: &Scope, inputs: &[Var]| {
                callback.call(scope.ops(), Some(scope), inputs)
            }));
            // SAFETY: as above.
            examples.push(unsafe {
                (
                    text(method.name, "the name of a method")?,
                    tensors(method.inputs, method.len)?,
                )
            });
        }
        let methods: Vec<Method<'_>> = functions
            .iter()
            .zip(&examples)
            .map(|(function, (name, inputs))| Method { name, function, inputs })
            .collect();
        give_trace(
            || session.trace_module(parameters, &methods, &options),
            out_warnings,
            out,
        )
    })
}
