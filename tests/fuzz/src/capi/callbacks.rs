//! Arguments that are structures of C, and functions that the compiler calls.

use super::arguments::{Argument, Many, Tensor};
use super::machine::Machine;
use super::texts::text;
use frazil_capi::*;
use std::ffi::{CStr, CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// Files beside a model.
pub struct ExtraFiles(Vec<CString>, Vec<FrazilExtraFile>);

impl Argument for ExtraFiles {
    type Raw = *const FrazilExtraFile;

    fn choose(machine: &mut Machine<'_>) -> Self {
        let names: Vec<Option<CString>> = (0..machine.len).map(|_| text(machine)).collect();
        let files = names.iter().map(|name| {
            let len = machine.choices.below(3);
            FrazilExtraFile {
                name: name.as_ref().map_or(null(), |name| name.as_ptr()),
                data: if len == 0 { null() } else { b"ab".as_ptr() },
                len,
            }
        });
        let files = files.collect();
        ExtraFiles(names.into_iter().flatten().collect(), files)
    }

    fn raw(&mut self) -> *const FrazilExtraFile {
        debug_assert!(self.0.len() <= self.1.len());
        self.1.as_ptr()
    }
}

/// Shapes of inputs.
pub struct Specs(Vec<FrazilInputSpec>);

static SIZES: [i64; 4] = [2, 1, -1, i64::MAX];

impl Argument for Specs {
    type Raw = *const FrazilInputSpec;

    fn choose(machine: &mut Machine<'_>) -> Self {
        let spec = |_| FrazilInputSpec {
            dtype: machine.choices.below(16) as i32,
            rank: machine.choices.below(SIZES.len() + 1),
            sizes: if machine.choices.byte() == 255 {
                null()
            } else {
                SIZES.as_ptr()
            },
        };
        Specs((0..machine.len).map(spec).collect())
    }

    fn raw(&mut self) -> *const FrazilInputSpec {
        self.0.as_ptr()
    }
}

/// Ranges of sizes.
pub struct Ranges(Vec<FrazilSizeRange>);

impl Argument for Ranges {
    type Raw = *const FrazilSizeRange;

    fn choose(machine: &mut Machine<'_>) -> Self {
        const NAMES: [Option<&CStr>; 4] = [Some(c"B"), Some(c"N"), Some(c"n"), None];
        let range = |_| FrazilSizeRange {
            name: NAMES[machine.choices.below(NAMES.len())].map_or(null(), CStr::as_ptr),
            low: SIZES[machine.choices.below(SIZES.len())],
            high: SIZES[machine.choices.below(SIZES.len())],
        };
        Ranges((0..machine.len).map(range).collect())
    }

    fn raw(&mut self) -> *const FrazilSizeRange {
        self.0.as_ptr()
    }
}

/// Methods to be traced.
pub struct TraceMethods {
    names: Vec<Option<CString>>,
    inputs: Vec<Many<Tensor>>,
    functions: Vec<TraceFunction>,
    len: usize,
    methods: Vec<FrazilTraceMethod>,
}

impl Argument for TraceMethods {
    type Raw = *const FrazilTraceMethod;

    fn choose(machine: &mut Machine<'_>) -> Self {
        TraceMethods {
            names: (0..machine.len).map(|_| text(machine)).collect(),
            inputs: (0..machine.len).map(|_| Many::choose(machine)).collect(),
            functions: (0..machine.len).map(|_| TraceFunction::choose(machine)).collect(),
            len: machine.len,
            methods: Vec::new(),
        }
    }

    fn raw(&mut self) -> *const FrazilTraceMethod {
        let parts = self.names.iter().zip(&mut self.inputs).zip(&mut self.functions);
        self.methods = parts
            .map(|((name, inputs), function)| FrazilTraceMethod {
                name: name.as_ref().map_or(null(), |name| name.as_ptr()),
                function: function.raw(),
                context: null_mut(),
                inputs: inputs.raw().cast(),
                len: self.len,
            })
            .collect();
        self.methods.as_ptr()
    }
}

/// The number of contexts that are not released, as a context.
pub struct Context(*const AtomicIsize);

impl Argument for Context {
    type Raw = *mut c_void;

    fn choose(machine: &mut Machine<'_>) -> Self {
        Context(&*machine.unreleased)
    }

    fn raw(&mut self) -> *mut c_void {
        self.0.cast_mut().cast()
    }
}

/// What releases a context; NULL at times.
pub struct Release(bool);

extern "C" fn release(context: *mut c_void) {
    // SAFETY: it is the context of `Context`.
    unsafe { &*context.cast::<AtomicIsize>() }.fetch_sub(1, Relaxed);
}

impl Argument for Release {
    type Raw = Option<extern "C" fn(*mut c_void)>;

    fn choose(machine: &mut Machine<'_>) -> Self {
        let given = machine.choices.byte() < 128;
        if given {
            // Counted before the call, since a function may release at once; taken back where it fails.
            machine.unreleased.fetch_add(1, Relaxed);
        }
        Release(given)
    }

    fn raw(&mut self) -> Self::Raw {
        self.0.then_some(release as extern "C" fn(*mut c_void))
    }

    fn done(self, machine: &mut Machine<'_>, failed: bool) {
        if self.0 && failed {
            machine.unreleased.fetch_sub(1, Relaxed);
        }
    }
}

/// A new value.
fn new_value(value: i64) -> *mut FrazilValue {
    let mut out = std::mem::MaybeUninit::new(None);
    match frazil_value_int(value, Some(&mut out)) {
        // SAFETY: written at once.
        None => unsafe { out.assume_init() }.map_or(null_mut(), Box::into_raw),
        Some(_) => null_mut(),
    }
}

fn new_error() -> *mut FrazilError {
    // SAFETY: a text.
    Box::into_raw(unsafe { frazil_error_new(5, c"ValueError: a hook".as_ptr()) })
}

macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident, $type:ty, ($($argument:ident: $of:ty),*);)*) => {
        $(
            $(#[$doc])*
            pub struct $name(u8);

            impl Argument for $name {
                type Raw = $type;

                fn choose(machine: &mut Machine<'_>) -> Self {
                    $name(machine.choices.byte() % 4)
                }

                fn raw(&mut self) -> $type {
                    unsafe extern "C" fn nothing(_: *mut c_void $(, $argument: $of)*, _: *mut *mut FrazilValue) -> *mut FrazilError {
                        $(let _ = $argument;)*
                        null_mut()
                    }
                    unsafe extern "C" fn other(_: *mut c_void $(, $argument: $of)*, replacement: *mut *mut FrazilValue) -> *mut FrazilError {
                        $(let _ = $argument;)*
                        // SAFETY: a place for a value.
                        unsafe { *replacement = new_value(7) };
                        null_mut()
                    }
                    unsafe extern "C" fn fails(_: *mut c_void $(, $argument: $of)*, _: *mut *mut FrazilValue) -> *mut FrazilError {
                        $(let _ = $argument;)*
                        new_error()
                    }
                    match self.0 {
                        0 => Some(nothing),
                        1 => Some(other),
                        2 => Some(fails),
                        _ => None,
                    }
                }
            }
        )*
    };
}

hooks! {
    /// A hook before `forward`.
    PreHook, FrazilPreHook, (arguments: *const FrazilValue);
    /// A hook after `forward`.
    Hook, FrazilHook, (arguments: *const FrazilValue, result: *const FrazilValue);
}

/// A function to be traced.
pub struct TraceFunction(u8);

/// `relu(inputs[0])`, or an error where that is one.
unsafe extern "C" fn traced(
    _: *mut c_void,
    ops: *const FrazilOps,
    inputs: *const *const FrazilValue,
    len: usize,
    result: *mut *mut FrazilValue,
) -> *mut FrazilError {
    let mut out = std::mem::MaybeUninit::new(None);
    // SAFETY: what the compiler gives is what the interface says.
    let error = unsafe {
        frazil_ops_call(
            ops.as_ref(),
            c"aten::relu".as_ptr(),
            inputs.cast(),
            len.min(1),
            null(),
            null(),
            0,
            Some(&mut out),
        )
    };
    // SAFETY: written at once.
    if let Some(value) = unsafe { out.assume_init() } {
        // SAFETY: a place for a value.
        unsafe { *result = Box::into_raw(value) };
    }
    error.map_or(null_mut(), Box::into_raw)
}

unsafe extern "C" fn traced_without_result(
    _: *mut c_void,
    _: *const FrazilOps,
    _: *const *const FrazilValue,
    _: usize,
    _: *mut *mut FrazilValue,
) -> *mut FrazilError {
    null_mut()
}

unsafe extern "C" fn traced_number(
    _: *mut c_void,
    _: *const FrazilOps,
    _: *const *const FrazilValue,
    _: usize,
    result: *mut *mut FrazilValue,
) -> *mut FrazilError {
    // SAFETY: a place for a value.
    unsafe { *result = new_value(1) };
    null_mut()
}

impl Argument for TraceFunction {
    type Raw = FrazilTraceFunction;

    fn choose(machine: &mut Machine<'_>) -> Self {
        TraceFunction(machine.choices.byte() % 8)
    }

    fn raw(&mut self) -> FrazilTraceFunction {
        match self.0 {
            0 => None,
            1 => Some(traced_without_result),
            2 => Some(traced_number),
            _ => Some(traced),
        }
    }
}
