//! Functions for native code: profiles and libraries.

use crate::arrays::{dtype_of, shown};
use crate::engine_call::{Arguments, failed};
use crate::errors::{OrRaise, exception, type_error, value_error};
use crate::interrupt::without_gil;
use crate::profile::ProfileTable;
use crate::script_module::{ScriptModule, join};
use frazil::ir::DType;
use frazil::passes::freeze::Freeze;
use frazil::{CompileOptions, Emit, FreezeOptions, InputSize, InputSpec, Loaded, RangedInput, SizeRange};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyTuple};
use std::path::PathBuf;
use std::time::Duration;

/// Returns the dtype and sizes of an input: those of an array, a shape (with dtype float32), or a pair of a dtype and a shape. A size is a number or the name of
/// a range.
fn input_spec(given: &Bound<'_, PyAny>) -> PyResult<RangedInput> {
    let wrong = || {
        type_error(format!(
            "`inputs`: expected an array, a shape such as (1, 3, 224, 224), or a dtype and a shape such as ('int64', (1, 8)), not {}",
            shown(given)
        ))
    };
    let (dtype, sizes): (DType, Vec<Size>) = if given.hasattr("shape")? && given.hasattr("dtype")? {
        (dtype_of(&given.getattr("dtype")?)?, given.getattr("shape")?.extract()?)
    } else if let Ok(sizes) = given.extract() {
        (DType::Float, sizes)
    } else {
        let (dtype, sizes): (Bound<'_, PyAny>, Vec<Size>) = given.extract().map_err(|_| wrong())?;
        (dtype_of(&dtype)?, sizes)
    };
    let size = |size: Size| match size {
        Size::Number(size) if size < 0 => Err(value_error(format!(
            "`inputs`: expected sizes of at least 0, not {size}"
        ))),
        Size::Number(size) => Ok(InputSize::Fixed(size)),
        Size::Name(name) => Ok(InputSize::Named(name)),
    };
    let sizes = sizes.into_iter().map(size).collect::<PyResult<_>>()?;
    Ok(RangedInput { dtype, sizes })
}

/// A size in a shape.
#[derive(FromPyObject)]
enum Size {
    Number(i64),
    Name(String),
}

/// Returns the inputs, if all of their sizes are numbers.
fn without_names(inputs: &[RangedInput]) -> Option<Vec<InputSpec>> {
    let number = |size: &InputSize| match size {
        InputSize::Fixed(size) => Some(*size),
        InputSize::Named(_) => None,
    };
    let spec = |input: &RangedInput| {
        let sizes: Vec<i64> = input.sizes.iter().map(number).collect::<Option<_>>()?;
        Some(InputSpec::new(input.dtype, &sizes))
    };
    inputs.iter().map(spec).collect()
}

/// Returns the ranges of a dict such as `{"B": (1, 8)}`, in its order. Both bounds are included.
fn size_ranges(given: &Bound<'_, PyMapping>) -> PyResult<Vec<SizeRange>> {
    let range = |item: Bound<'_, PyAny>| {
        let (name, (low, high)) = item.extract().map_err(|_| {
            type_error(format!(
                "`ranges`: expected names with the smallest and the largest size, such as {{'B': (1, 8)}}, not {}",
                shown(given)
            ))
        })?;
        Ok(SizeRange { name, low, high })
    };
    given.items()?.iter().map(range).collect()
}

fn input_specs(inputs: &Bound<'_, PyAny>) -> PyResult<Vec<RangedInput>> {
    inputs.try_iter()?.map(|input| input_spec(&input?)).collect()
}

impl ScriptModule {
    /// Calls `work` with the frozen module, without the interpreter's lock.
    fn with_frozen<R: Send>(
        &self,
        py: Python<'_>,
        method: &str,
        work: impl FnOnce(&Loaded) -> Result<R, frazil::Error> + Send,
    ) -> PyResult<R> {
        let model = self.whole(py, "compile")?;
        let limits = self.instance.options(py)?.limits;
        let done = without_gil(py, || {
            let model = model.with_limits(limits);
            // A module that is frozen stays as it is; calls of functions are inlined.
            let freeze = Freeze {
                preserve: vec![method.to_owned()],
                ..Freeze::default()
            };
            let frozen = model.freeze(&FreezeOptions::default().freeze(freeze))?;
            work(&Loaded::Model(frozen))
        })?;
        done.or_raise(py)
    }

    fn compile_options(
        &self,
        py: Python<'_>,
        name: &str,
        threads: Option<usize>,
        target_cpu: Option<&str>,
    ) -> PyResult<CompileOptions> {
        let mut compile = self.instance.options(py)?.engine.compile;
        name.clone_into(&mut compile.name);
        compile.cache_dir = None;
        if let Some(threads) = threads {
            compile.threads = threads;
        }
        if let Some(cpu) = target_cpu {
            cpu.clone_into(&mut compile.target_cpu);
        }
        Ok(compile)
    }
}

#[pymethods]
impl ScriptModule {
    /// Compiles a method to a shared library, which needs neither Python nor this package to run, with a C header beside it.
    ///
    /// Args:
    ///     path: the library; the header has the same name with ``.h``.
    ///     inputs: for each input of the method, an array, a shape (of float32), or a pair of a dtype and a shape. Sizes in shapes may be names.
    ///     method: the method. A model that is not frozen is frozen first.
    ///     name: the name of the functions in the library, a C identifier.
    ///     threads: threads that a run may use; that of the options by default.
    ///     target_cpu: the processor; that of the options by default.
    ///     ranges: the smallest and the largest size for each name, both included: ``{"B": (1, 8)}``. Callers of the library choose the sizes.
    #[pyo3(signature = (path, inputs, *, method = "forward", name = "model", threads = None, target_cpu = None, ranges = None))]
    #[allow(clippy::too_many_arguments, reason = "they are keyword arguments")]
    fn save_library(
        &self,
        py: Python<'_>,
        path: PathBuf,
        inputs: &Bound<'_, PyAny>,
        method: &str,
        name: &str,
        threads: Option<usize>,
        target_cpu: Option<&str>,
        ranges: Option<&Bound<'_, PyMapping>>,
    ) -> PyResult<()> {
        let options = self.compile_options(py, name, threads, target_cpu)?;
        let inputs = input_specs(inputs)?;
        let ranges = ranges.map_or_else(|| Ok(Vec::new()), size_ranges)?;
        self.with_frozen(py, method, |frozen| match without_names(&inputs) {
            Some(inputs) if ranges.is_empty() => frozen.plan(method, &inputs, &options)?.write_library(&path),
            _ => frozen.plan_ranges(method, &inputs, &ranges, &options)?.write(&path),
        })
    }

    /// Returns a stage of the compilation of a method: ``'kernels'``, ``'mlir'``, ``'llvm'`` or ``'asm'`` as a str, ``'obj'`` as bytes.
    #[pyo3(signature = (kind, inputs, *, method = "forward", name = "model", threads = None, target_cpu = None))]
    #[allow(clippy::too_many_arguments, reason = "they are keyword arguments")]
    fn emit<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        inputs: &Bound<'py, PyAny>,
        method: &str,
        name: &str,
        threads: Option<usize>,
        target_cpu: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stage = match kind {
            "kernels" => Emit::Kernels,
            "mlir" => Emit::Mlir,
            "llvm" => Emit::Llvm,
            "asm" => Emit::Asm,
            "obj" => Emit::Object,
            _ => {
                return Err(value_error(format!(
                    "`kind`: expected 'kernels', 'mlir', 'llvm', 'asm' or 'obj', not {kind:?}"
                )));
            }
        };
        let options = self.compile_options(py, name, threads, target_cpu)?;
        let Some(inputs) = without_names(&input_specs(inputs)?) else {
            return Err(value_error("`inputs`: only libraries have sizes with names"));
        };
        let bytes = self.with_frozen(py, method, |frozen| frozen.plan(method, &inputs, &options)?.emit(stage))?;
        match kind {
            "obj" => Ok(PyBytes::new(py, &bytes).into_any()),
            _ => Ok(String::from_utf8_lossy(&bytes)
                .into_owned()
                .into_pyobject(py)?
                .into_any()),
        }
    }

    /// Calls the module with these arguments for about ``seconds``, and returns the time of each kernel.
    ///
    /// Raises:
    ///     frazil.UnsupportedError: if the method does not run natively as a whole; ``notes`` contain the reason.
    #[pyo3(signature = (*args, method = "forward", seconds = 1.0))]
    fn profile<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        method: &str,
        seconds: f64,
    ) -> PyResult<ProfileTable> {
        let time = Duration::try_from_secs_f64(seconds);
        let time = time.map_err(|_| value_error(format!("`seconds`: expected a positive number, not {seconds}")))?;
        let path = join(&self.path, method);
        let model = self.instance.definitions(py)?;
        let arguments = Arguments::read(py, &model, self.instance.kind, args, None::<&Bound<'py, PyDict>>)?;
        let positional = &arguments.positional;
        let measured = self.instance.with_engine(py, Some(&path), |engine| {
            engine.call(&path, positional)?;
            Ok(engine.profile(&path, positional, time)?)
        })?;
        match measured.map_err(|error| failed(py, &model, Some(&path), &arguments, &error))? {
            Some(profile) => Ok(ProfileTable(profile)),
            None => {
                let text = format!("`{path}` does not run natively as a whole; the module's `notes` say why");
                Err(exception(py, "UnsupportedError", &text, &[]))
            }
        }
    }
}
