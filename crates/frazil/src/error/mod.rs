//! The error type of this crate.

mod call;
mod class;
pub(crate) mod tracing_check;

pub use call::CallError;
pub use class::ErrorClass;
pub use tracing_check::TracingCheckError;

use frazil_limits::Exceeded;
use frazil_passes::PassError;
use frazil_runtime::interp::state::StateError;
use frazil_runtime::interp::{ErrorKind, ExecError};
use frazil_torchscript::LoadError;
use std::path::{Path, PathBuf};

/// The error of an operation of this crate.
///
/// ```
/// use frazil::{Error, Session};
///
/// let session = Session::new();
/// assert!(matches!(session.load("nowhere.pt"), Err(Error::Io { .. })));
/// let text = session.load_bytes("graph.ir".as_ref(), b"graph(%x : Tensor):\n  return (%y)\n".to_vec());
/// assert!(matches!(text, Err(Error::Text(report)) if report.contains("%y")));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    Io {
        /// The operation that was attempted.
        action: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A text contains errors. The string is the rendered report, with the lines of the text.
    #[error("{0}")]
    Text(String),
    /// An archive cannot be loaded.
    #[error("{}", about(.path, .source))]
    Load {
        /// The path of the archive.
        path: PathBuf,
        /// The reason why the archive cannot be loaded.
        #[source]
        source: LoadError,
    },
    /// A pass pipeline is malformed.
    #[error(transparent)]
    Pipeline(#[from] frazil_passes::PipelineError),
    /// A pass failed.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// A graph cannot be written as TorchScript.
    #[error(transparent)]
    Code(#[from] frazil_torchscript::code::CodeError),
    /// A module file cannot be written.
    #[error(transparent)]
    Write(#[from] frazil_syntax::WriteError),
    /// A module cannot be written as an archive.
    #[error(transparent)]
    Save(#[from] frazil_torchscript::SaveError),
    /// A tensor could not be created.
    #[error(transparent)]
    Tensor(#[from] frazil_runtime::TensorError),
    /// Objects cannot be restored from their archived state, or their state cannot be computed for an archive.
    #[error(transparent)]
    State(#[from] StateError),
    /// A run was stopped for a reason outside of the program.
    #[error("{0}")]
    Run(ExecError),
    /// A graph cannot be lowered to native code.
    #[cfg(feature = "codegen")]
    #[error(transparent)]
    Lower(#[from] frazil_planner::LowerError),
    /// A pass over the tensor IR failed.
    #[cfg(feature = "codegen")]
    #[error(transparent)]
    TensorPass(#[from] frazil_pass_manager::PassError<frazil_tensor_ir::TensorIr>),
    /// Native code could not be generated.
    #[cfg(feature = "codegen")]
    #[error(transparent)]
    Compile(#[from] frazil_codegen::backend::CompileError),
    /// Files of native code could not be written.
    #[cfg(feature = "codegen")]
    #[error(transparent)]
    EmitFile(#[from] frazil_codegen::aot::EmitFileError),
    /// Native code was called with inputs of other dtypes or shapes than it was compiled for.
    #[cfg(feature = "codegen")]
    #[error(transparent)]
    NativeRun(#[from] frazil_executor::RunError),
    /// An attribute, parameter, buffer or submodule is missing, or a member of another kind has its name.
    #[error("{0}")]
    Attribute(String),
    /// A state dictionary does not fit the module, or its file is malformed.
    #[error("{0}")]
    StateDict(String),
    /// An operator was called with arguments that it does not accept, or its result is of another kind than required.
    #[error("{0}")]
    Call(String),
    /// An operator raised an exception, or cannot compute its result.
    #[error(transparent)]
    Operator(#[from] frazil_runtime::OpError),
    /// A value cannot be stored in a module.
    #[error(transparent)]
    Export(#[from] frazil_runtime::export::ExportError),
    /// Tracing with other inputs, to check a trace, resulted in another graph or other constants.
    #[error(transparent)]
    TracingCheck(#[from] TracingCheckError),
    /// An edit of a method left its graph invalid.
    #[error("the edited graph of `{method}` is invalid: {source}")]
    Invalid {
        /// The name of the method.
        method: String,
        /// The errors of the verifier.
        #[source]
        source: frazil_ir::verify::VerifyError,
    },
    /// A limit of the session ([`Session::with_limits`](crate::Session::with_limits)) was exceeded.
    #[error(transparent)]
    Exceeded(Exceeded),
    /// The work was interrupted ([`interruptible`](crate::interruptible)).
    #[error("interrupted")]
    Interrupted,
    /// The model has no method with the given name.
    #[error("the module has no method `{0}`")]
    NoSuchMethod(String),
    /// There is no function with the given name.
    #[error("there is no function `{0}`")]
    NoSuchFunction(String),
    /// An error of an embedder's own operator, pass or edit.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// A feature of PyTorch has no counterpart here.
    #[error("`{name}` has no counterpart here: {reason}")]
    NoCounterpart {
        /// The name of the feature in PyTorch.
        name: &'static str,
        /// The reason why there is no counterpart.
        reason: &'static str,
    },
    /// The object does not support the requested operation.
    #[error("{0}")]
    Unsupported(String),
    /// The compiler was used in a forked process whose parent was using the compiler on another thread at the time of the fork.
    #[error(transparent)]
    Forked(#[from] frazil_rt::gate::Torn),
}

/// Returns the text of a loading error with the path of the file. The path is not repeated if the error begins with a location in that file.
fn about(path: &Path, source: &LoadError) -> String {
    let (path, text) = (path.display().to_string(), source.to_string());
    let begins = text.strip_prefix(&path).is_some_and(|rest| rest.starts_with(':'));
    if begins { text } else { format!("{path}: {text}") }
}

impl From<Exceeded> for Error {
    fn from(exceeded: Exceeded) -> Error {
        match exceeded.is_interruption() {
            true => Error::Interrupted,
            false => Error::Exceeded(exceeded),
        }
    }
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Error {
        Error::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// Returns the limit that was exceeded, if an exceeded limit caused the error: a limit of the session, or the allowance for reading an archive.
    ///
    /// See [`Session::with_limits`](crate::Session::with_limits) for an example.
    pub fn exceeded(&self) -> Option<&Exceeded> {
        self.ended_by().filter(|exceeded| !exceeded.is_interruption())
    }

    /// Returns whether the error is that the work was interrupted.
    pub(crate) fn is_interruption(&self) -> bool {
        matches!(self, Error::Interrupted) || self.ended_by().is_some_and(Exceeded::is_interruption)
    }

    /// Returns the exceeded limit or the interruption, if one of them caused the error.
    fn ended_by(&self) -> Option<&Exceeded> {
        match self {
            Error::Exceeded(exceeded)
            | Error::Load {
                source: LoadError::Exceeded(exceeded),
                ..
            } => Some(exceeded),
            Error::Pass(error) => match error.root() {
                PassError::Exceeded(exceeded) => Some(exceeded),
                _ => None,
            },
            Error::Run(error) => match &error.kind {
                ErrorKind::Exceeded(exceeded) => Some(exceeded),
                _ => None,
            },
            #[cfg(feature = "codegen")]
            Error::Lower(frazil_planner::LowerError::Exceeded(exceeded))
            | Error::Compile(frazil_codegen::backend::CompileError::Exceeded(exceeded)) => Some(exceeded),
            _ => None,
        }
    }

    /// Returns the source locations of the error, each `file:line:column`, the innermost first. Empty if none is known.
    ///
    /// ```
    /// use frazil::Session;
    ///
    /// let places = |source: &str| match Session::new().script("f.py".as_ref(), source, &[]) {
    ///     Ok(_) => Vec::new(),
    ///     Err(e) => e.places(),
    /// };
    /// assert_eq!(places("def f(x):\n    return y\n"), ["f.py:2:12"]);
    /// assert!(places("def f(x):\n    return x\n").is_empty());
    /// ```
    pub fn places(&self) -> Vec<String> {
        match self {
            Error::Run(e) => e.trace.clone(),
            Error::Load {
                source: LoadError::Source(e),
                ..
            } => vec![e.place()],
            Error::Text(report) => report.lines().filter_map(reported_place).collect(),
            #[cfg(feature = "codegen")]
            Error::Lower(frazil_planner::LowerError::Unsupported(all)) => {
                all.iter().filter_map(|u| u.source.clone()).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the location in a line of a rendered report: `  --> file:line:column`, with or without colours.
fn reported_place(line: &str) -> Option<String> {
    // Colours are `ESC [ numbers m`.
    let mut pieces = line.split('\u{1b}');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain += piece.split_once('m').map_or("", |(_, text)| text);
    }
    plain.trim().strip_prefix("--> ").map(str::to_owned)
}

/// Results of this crate.
///
/// ```
/// fn methods(source: &str) -> frazil::Result<usize> {
///     let model = frazil::Session::new().script("f.py".as_ref(), source, &[])?.to_model("f")?;
///     Ok(model.root().method_names().len())
/// }
/// assert_eq!(methods("def f(x): return x\n").ok(), Some(1));
/// assert!(methods("def f(x): return y\n").is_err());
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(feature = "codegen")]
impl From<frazil_executor::LoadError> for Error {
    fn from(error: frazil_executor::LoadError) -> Self {
        Error::Compile(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::reported_place;

    #[test]
    fn places_are_found_in_colour_too() {
        assert_eq!(reported_place(" --> a.ir:2:11").as_deref(), Some("a.ir:2:11"));
        let coloured = " \u{1b}[1m\u{1b}[94m--> \u{1b}[0ma.ir:2:11";
        assert_eq!(reported_place(coloured).as_deref(), Some("a.ir:2:11"));
        assert_eq!(reported_place("2 |   return (%y)"), None);
    }
}
