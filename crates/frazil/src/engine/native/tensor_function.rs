//! Methods as functions of the tensor IR: read, written, and planned.

use crate::engine::native::compiled::{NativePlan, compilable_graph, specialised};
use crate::engine::native::compiler::Compiler;
use crate::engine::options::{CompileOptions, InputSpec};
use crate::error::{Error, Result};
use crate::model::PassOptions;
use crate::model::loaded::Loaded;
use crate::model::text::{ReproducerFile, StderrPrinter};
use crate::session::Session;
use crate::support::limited::within;
use frazil_limits::{Limits, Phase};
use frazil_pass_manager::{IrPrinter, IrRef, PassError, PassManager, PassRegistry, Report, Reproducer};
use frazil_planner::lower::{laid_out, scheduled};
use frazil_planner::specialise::{ResultSpec, Specialised};
use frazil_planner::{layout, schedule};
use frazil_tensor_ir::text::{self, FileError, PrintOptions};
use frazil_tensor_ir::verify::verify;
use frazil_tensor_ir::{TensorGraph, TensorIr};
use std::path::Path;

/// A stage between the tensor IR and the plan, as [`TensorFunction::stage`] shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorStage {
    /// The pattern of each loop nest, and the layouts of tensors that are not row-major.
    Layout,
    /// The selected kernels in order, on buffers without addresses.
    Schedule,
}

/// A method for inputs of given shapes, as loop nests and views over tensors: the stage between frozen graphs and kernels. The page
/// `docs/tensor-ir.md` describes its text.
///
/// ```
/// use frazil::{CompileOptions, InputSpec, ir::DType};
///
/// # let source = "def f(x): return (x + 1).relu()\n";
/// # let loaded = frazil::Session::new().script("f.py".as_ref(), source, &[])?;
/// // of `def f(x): return (x + 1).relu()`
/// let function = loaded.tensors("f", &[InputSpec::new(DType::Float, &[8])])?;
/// assert_eq!(function.text().matches(" = nest ").count(), 2);
/// let plan = function.plan(&CompileOptions::default())?;
/// assert_eq!(plan.kernel_count(), (1, 1)); // fused
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TensorFunction {
    name: String,
    graph: TensorGraph,
    limits: Limits,
}

impl Loaded {
    /// Specialises method `method` for tensor inputs of these shapes.
    ///
    /// See [`TensorFunction`] for an example.
    ///
    /// # Errors
    /// The errors of [`Loaded::plan`].
    pub fn tensors(&self, method: &str, inputs: &[InputSpec]) -> Result<TensorFunction> {
        let _inside = frazil_rt::gate::enter()?;
        let graph = compilable_graph(self, method)?;
        let limits = *self.session().limits();
        let specialised = within(&limits, Phase::Compile, || {
            Ok::<_, Error>(specialised(self, graph, inputs)?)
        })?;
        Ok(TensorFunction {
            name: method.to_owned(),
            graph: specialised.graph,
            limits,
        })
    }
}

impl TensorFunction {
    /// Returns whether the file at `path` begins as the text of a tensor function does. Comments do not count.
    pub fn is_text_file(path: &Path) -> bool {
        text::is_text_file(path)
    }

    /// Reads the text at `path`, and its large constants from the `.safetensors` file beside it. Calls in the text may name the operators of `session`,
    /// whose limits apply.
    ///
    /// # Errors
    /// If a file cannot be read, or the text is malformed or not valid.
    pub fn read(path: &Path, session: &Session) -> Result<TensorFunction> {
        let function = text::read_file(path, Some(session.registry())).map_err(file_error)?;
        Ok(TensorFunction {
            name: function.name,
            graph: function.graph,
            limits: *session.limits(),
        })
    }

    /// Returns the text, without the elements of large constants.
    ///
    /// See [`TensorFunction`] for an example.
    pub fn text(&self) -> String {
        text::print(&self.name, &self.graph)
    }

    /// Writes the text to `path`, and its large constants to a `.safetensors` file beside it.
    ///
    /// # Errors
    /// If a file cannot be written; then no new file remains.
    pub fn write(&self, path: &Path) -> Result<()> {
        text::write_file(path, &self.name, &self.graph).map_err(file_error)
    }

    /// Returns all rules of the tensor IR that the function violates; empty for a valid function.
    ///
    /// ```
    /// # use frazil::{InputSpec, ir::DType};
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?;
    /// let function = loaded.tensors("f", &[InputSpec::new(DType::Float, &[8])])?;
    /// assert_eq!(function.verify(), [""; 0]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn verify(&self) -> Vec<String> {
        verify(&self.graph).iter().map(ToString::to_string).collect()
    }

    /// Runs passes of the tensor IR; `docs/tensor-ir.md` lists them.
    ///
    /// ```
    /// # use frazil::{InputSpec, PassOptions, ir::DType};
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return (x + 1).relu()\n", &[])?;
    /// let mut function = loaded.tensors("f", &[InputSpec::new(DType::Float, &[8])])?;
    /// let report = function.run_passes("simplify,fuse", &PassOptions::default().verify_each(true))?;
    /// assert_eq!(report.statistics, [("fuse".to_owned(), "nests fused", 1)]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the pipeline is malformed, or a pass fails.
    pub fn run_passes(&mut self, pipeline: &str, options: &PassOptions) -> Result<Report> {
        let passes: PassRegistry<TensorIr> = PassRegistry::standard();
        let mut manager = PassManager::from_pipeline(&passes, pipeline)?;
        manager.verify_each(options.verify_each);
        manager.limit(options.limit);
        manager.limits(self.limits);
        if let Some(path) = &options.reproducer {
            let file = ReproducerFile { path: path.clone() };
            manager.reproduce(Box::new(TensorReproducer {
                file,
                name: self.name.clone(),
            }));
        }
        let printer = StderrPrinter {
            elide: options.elide_constants_larger_than,
        };
        let printer = TensorPrinter {
            printer,
            name: self.name.clone(),
        };
        manager.print_ir(options.print.clone(), Box::new(printer));
        Ok(manager.run_on_graph(&mut self.graph, &())?)
    }

    /// Returns the text of a stage between the tensor IR and the plan, after the optimisations that compiling runs.
    ///
    /// ```
    /// # use frazil::{CompileOptions, InputSpec, TensorStage, ir::DType};
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return (x + 1).relu()\n", &[])?;
    /// let function = loaded.tensors("f", &[InputSpec::new(DType::Float, &[8])])?;
    /// let layouts = function.stage(TensorStage::Layout, &CompileOptions::default())?;
    /// assert!(layouts.contains("pointwise float32[8]"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the function cannot be expressed as kernels.
    pub fn stage(&self, stage: TensorStage, options: &CompileOptions) -> Result<String> {
        let compiler = Compiler::of(options);
        let options = compiler.lower_options();
        let mut graph = self.graph.clone();
        within(&self.limits, Phase::Compile, || {
            Ok::<_, Error>(match stage {
                TensorStage::Layout => {
                    let layouts = laid_out(&mut graph, &options)?;
                    layout::text(&graph, &layouts)
                }
                TensorStage::Schedule => schedule::text(&scheduled(&mut graph, &options)?),
            })
        })
    }

    /// Plans the kernels. Each output of the function is a result of the plan.
    ///
    /// See [`TensorFunction`] for an example.
    ///
    /// # Errors
    /// If the function cannot be expressed as kernels.
    pub fn plan(&self, options: &CompileOptions) -> Result<NativePlan> {
        let _inside = frazil_rt::gate::enter()?;
        let results = self.graph.outputs().len().saturating_sub(self.graph.checks().len());
        let results = u32::try_from(results).unwrap_or(u32::MAX);
        let specialised = Specialised {
            graph: self.graph.clone(),
            results: (0..results).map(ResultSpec::Tensor).collect(),
            warnings: Vec::new(),
        };
        let compiler = Compiler::of(options);
        within(&self.limits, Phase::Compile, || {
            Ok::<_, Error>(NativePlan::of(specialised, &compiler)?)
        })
    }
}

/// Prints functions between passes.
struct TensorPrinter {
    printer: StderrPrinter,
    name: String,
}

impl IrPrinter<TensorIr> for TensorPrinter {
    fn print(&self, header: &str, ir: IrRef<'_, TensorIr>) {
        let IrRef::Graph(_, graph) = ir else { return };
        let mut options = PrintOptions::default();
        if let Some(elide) = self.printer.elide {
            options.inline = i64::try_from(elide).unwrap_or(i64::MAX);
        }
        self.printer
            .print_text(header, &text::print_with(&self.name, graph, options));
    }
}

/// Writes reproducers of failures of passes, with all constants.
struct TensorReproducer {
    file: ReproducerFile,
    name: String,
}

impl Reproducer<TensorIr> for TensorReproducer {
    fn write(&self, pipeline: &str, ir: IrRef<'_, TensorIr>, error: &PassError<TensorIr>) {
        let IrRef::Graph(_, graph) = ir else { return };
        let options = PrintOptions {
            inline: i64::MAX,
            ..PrintOptions::default()
        };
        let body = text::print_with(&self.name, graph, options);
        self.file.write_text(pipeline, &error.to_string(), &body);
    }
}

fn file_error(error: FileError) -> Error {
    match error {
        FileError::Read { path, source } => Error::io("read", &path, source),
        FileError::Write { path, source } => Error::io("write", &path, source),
        FileError::Text { path, text, source } => {
            let name = path.display().to_string();
            Error::Text(frazil_syntax::render(&name, &text, &source.diagnostics, false))
        }
        other => Error::Text(other.to_string()),
    }
}
