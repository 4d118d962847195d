//! Methods as functions of the tensor IR: read, written, and planned.

use crate::engine::native::compiled::{NativePlan, compilable_graph, specialised};
use crate::engine::native::compiler::Compiler;
use crate::engine::options::{CompileOptions, InputSpec};
use crate::error::{Error, Result};
use crate::model::loaded::Loaded;
use crate::support::limited::within;
use frazil_codegen::specialise::{ResultSpec, Specialised};
use frazil_codegen::tensor_ir::TensorGraph;
use frazil_codegen::tensor_ir::text::{self, FileError};
use frazil_codegen::tensor_ir::verify::verify;
use frazil_limits::{Limits, Phase};
use std::fs::File;
use std::io::Read;
use std::path::Path;

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
        let specialised = within(&limits, Phase::Compile, || specialised(self, graph, inputs))?;
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
        let mut head = [0; 4096];
        let read = File::open(path).and_then(|mut file| file.read(&mut head));
        let head = String::from_utf8_lossy(&head[..read.unwrap_or(0)]);
        let mut lines = head.lines().map(str::trim);
        let first = lines.find(|line| !(line.is_empty() || line.starts_with('#') || line.starts_with("//")));
        first.is_some_and(|line| line.starts_with("func @") || line.starts_with("constants crc32 "))
    }

    /// Reads the text at `path`, and its large constants from the `.safetensors` file beside it.
    ///
    /// # Errors
    /// If a file cannot be read, or the text is malformed or not valid.
    pub fn read(path: &Path) -> Result<TensorFunction> {
        let function = text::read_file(path).map_err(file_error)?;
        Ok(TensorFunction {
            name: function.name,
            graph: function.graph,
            limits: Limits::NONE,
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
