//! Functions for native code: profiles and libraries.

use crate::arrays::{dtype_of, shown};
use crate::engine_call::{Arguments, failed};
use crate::errors::{OrRaise, exception, type_error, value_error};
use crate::interrupt::without_gil;
use crate::profile::ProfileTable;
use crate::script_module::{ScriptModule, join};
use frazil::ir::DType;
use frazil::passes::freeze::Freeze;
use frazil::{CompileOptions, Emit, FreezeOptions, InputSpec, Loaded, NativePlan};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::path::PathBuf;
use std::time::Duration;

/// Returns the dtype and shape of an input: those of an array, a shape (with dtype float32), or a pair of a dtype and a
/// shape.
fn input_spec(given: &Bound<'_, PyAny>) -> PyResult<InputSpec> {
    let wrong = || {
        type_error(format!(
            "`inputs`: expected an array, a shape such as (1, 3, 224, 224), or a dtype and a shape such as ('int64', (1, 8)), not {}",
            shown(given)
        ))
    };
    let sizes: (DType, Vec<i64>) = if given.hasattr("shape")? && given.hasattr("dtype")? {
        (dtype_of(&given.getattr("dtype")?)?, given.getattr("shape")?.extract()?)
    } else if let Ok(sizes) = given.extract::<Vec<i64>>() {
        (DType::Float, sizes)
    } else {
        let (dtype, sizes): (Bound<'_, PyAny>, Vec<i64>) = given.extract().map_err(|_| wrong())?;
        (dtype_of(&dtype)?, sizes)
    };
    match sizes.1.iter().find(|&&size| size < 0) {
        Some(size) => Err(value_error(format!(
            "`inputs`: expected sizes of at least 0, not {size}"
        ))),
        None => Ok(InputSpec::new(sizes.0, &sizes.1)),
    }
}

impl ScriptModule {
    fn plan(
        &self,
        py: Python<'_>,
        inputs: &Bound<'_, PyAny>,
        method: &str,
        options: &CompileOptions,
    ) -> PyResult<NativePlan> {
        let model = self.whole(py, "compile")?;
        let inputs: Vec<InputSpec> = inputs
            .try_iter()?
            .map(|input| input_spec(&input?))
            .collect::<PyResult<_>>()?;
        let limits = self.instance.options(py)?.limits;
        let plan = without_gil(py, || {
            let model = model.with_limits(limits);
            // A frozen module has no training flag.
            let frozen = match model.root().has_attribute("training") {
                true => {
                    let freeze = Freeze {
                        preserve: vec![method.to_owned()],
                        ..Freeze::default()
                    };
                    model.freeze(&FreezeOptions::default().freeze(freeze))?
                }
                false => model,
            };
            Loaded::Model(frozen).plan(method, &inputs, options)
        })?;
        plan.or_raise(py)
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
    ///     inputs: for each input of the method, an array, a shape (of float32), or a pair of a dtype and a shape.
    ///     method: the method. A model that is not frozen is frozen first.
    ///     name: the name of the functions in the library, a C identifier.
    ///     threads: threads that a run may use; that of the options by default.
    ///     target_cpu: the processor; that of the options by default.
    #[pyo3(signature = (path, inputs, *, method = "forward", name = "model", threads = None, target_cpu = None))]
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
    ) -> PyResult<()> {
        let options = self.compile_options(py, name, threads, target_cpu)?;
        let plan = self.plan(py, inputs, method, &options)?;
        without_gil(py, || plan.write_library(&path))?.or_raise(py)
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
        let plan = self.plan(py, inputs, method, &options)?;
        let bytes = without_gil(py, || plan.emit(stage))?.or_raise(py)?;
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
