//! Classes of errors, by which callers can decide how to react.

use super::{CallError, Error};
use frazil_runtime::interp::{ErrorKind, ExecError};
use frazil_torchscript::SaveError;

/// The class of an error.
///
/// ```
/// use frazil::{ErrorClass, Session};
///
/// let session = Session::new();
/// assert_eq!(session.load("nowhere.pt").err().map(|e| e.class()), Some(ErrorClass::Io));
/// let source = session.script("f.py".as_ref(), "def f(x): return y\n", &[]);
/// assert_eq!(source.err().map(|e| e.class()), Some(ErrorClass::Input));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// A file could not be read or written.
    Io,
    /// The input is malformed, or a call does not fit the model: an unknown method or attribute, a tensor of another shape.
    Input,
    /// The model, the operation or this build does not support what was requested.
    Unsupported,
    /// The program raised an exception.
    Raised,
    /// A limit of the session was exceeded ([`Error::exceeded`]).
    Limit,
    /// The work was interrupted ([`interruptible`](crate::interruptible)).
    Interrupted,
    /// Any other error.
    Failed,
}

impl Error {
    /// Returns the class of the error.
    ///
    /// See [`ErrorClass`] for an example.
    pub fn class(&self) -> ErrorClass {
        match self {
            _ if self.is_interruption() => ErrorClass::Interrupted,
            _ if self.exceeded().is_some() => ErrorClass::Limit,
            Error::Io { .. } | Error::Save(SaveError::Io(_)) => ErrorClass::Io,
            Error::Text(_)
            | Error::Load { .. }
            | Error::Pipeline(_)
            | Error::NoSuchMethod(_)
            | Error::NoSuchFunction(_)
            | Error::Attribute(_)
            | Error::StateDict(_)
            | Error::Call(_)
            | Error::Invalid { .. } => ErrorClass::Input,
            Error::Unsupported(_)
            | Error::Pass(_)
            | Error::Code(_)
            | Error::Save(_)
            | Error::Export(_)
            | Error::NoCounterpart { .. } => ErrorClass::Unsupported,
            Error::Operator(e) if e.is_unsupported() => ErrorClass::Unsupported,
            Error::Operator(_) => ErrorClass::Raised,
            Error::Run(e) => class_of_run(e),
            #[cfg(feature = "codegen")]
            Error::Lower(e) => class_of_lowering(e),
            #[cfg(feature = "codegen")]
            Error::NativeRun(frazil_executor::RunError::Raised(_)) => ErrorClass::Raised,
            #[cfg(feature = "codegen")]
            Error::NativeRun(frazil_executor::RunError::Changed) => ErrorClass::Io,
            #[cfg(feature = "codegen")]
            Error::NativeRun(_) => ErrorClass::Input,
            #[cfg(feature = "codegen")]
            Error::Compile(frazil_codegen::backend::CompileError::Library(_)) => ErrorClass::Input,
            #[cfg(feature = "codegen")]
            Error::EmitFile(e) => match e {
                frazil_codegen::aot::EmitFileError::Io { .. } => ErrorClass::Io,
                frazil_codegen::aot::EmitFileError::Name(_) => ErrorClass::Input,
                frazil_codegen::aot::EmitFileError::RuntimeCalls(_) => ErrorClass::Unsupported,
                frazil_codegen::aot::EmitFileError::Range(e) => class_of_range(e),
                _ => ErrorClass::Failed,
            },
            _ => ErrorClass::Failed,
        }
    }
}

impl CallError {
    /// Returns the class of the error.
    ///
    /// ```
    /// # use frazil::{ErrorClass, Value};
    /// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x: int): return x\n", &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// let class = |called: Result<Value, frazil::CallError>| called.err().map(|e| e.class());
    /// assert_eq!(class(engine.call("forward", &[])), Some(ErrorClass::Raised)); // an argument is missing
    /// assert_eq!(class(engine.call("backward", &[])), Some(ErrorClass::Input)); // the method is
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn class(&self) -> ErrorClass {
        match self {
            CallError::Raised(_) => ErrorClass::Raised,
            CallError::Failed(error) => error.class(),
        }
    }
}

#[cfg(feature = "codegen")]
fn class_of_lowering(error: &frazil_planner::LowerError) -> ErrorClass {
    match error {
        frazil_planner::LowerError::InputCount { .. } => ErrorClass::Input,
        frazil_planner::LowerError::Raises { .. } => ErrorClass::Raised,
        frazil_planner::LowerError::OutOfMemory(_) => ErrorClass::Failed,
        _ => ErrorClass::Unsupported,
    }
}

#[cfg(feature = "codegen")]
fn class_of_range(error: &frazil_codegen::aot::range::RangeError) -> ErrorClass {
    use frazil_codegen::aot::range::RangeError;
    match error {
        RangeError::Lower { source, .. } => class_of_lowering(source),
        RangeError::Plan { .. }
        | RangeError::Inconsistent(_)
        | RangeError::NotAnArgument(_)
        | RangeError::OutOfMemory(_) => ErrorClass::Failed,
        RangeError::RuntimeCalls { .. } | RangeError::Changing { .. } => ErrorClass::Unsupported,
        _ => ErrorClass::Input,
    }
}

fn class_of_run(error: &ExecError) -> ErrorClass {
    match error.kind {
        ErrorKind::Raised { .. } => ErrorClass::Raised,
        ErrorKind::Missing(_) | ErrorKind::Unsupported(_) => ErrorClass::Unsupported,
        ErrorKind::Malformed(_) => ErrorClass::Input,
        _ => ErrorClass::Failed,
    }
}
