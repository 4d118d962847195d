//! Errors of running a program.

use super::{OpError, TensorError};
use crate::error::EvalError;
use frazil_ir::{Context, SourceRange};
use std::fmt;

/// An operator that a graph uses and that has no registered semantics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingOperator {
    /// Name of the operator, with the overload if it is known: `aten::add.Tensor`.
    pub name: String,
    /// Source location of the node: `file.py:10:5`.
    pub place: Option<String>,
}

/// The reason why the execution stopped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program raised an exception, as it would in PyTorch.
    Raised {
        /// The exception's class: `ValueError`, `RuntimeError`.
        class: String,
        /// The message of the exception.
        message: String,
        /// True if the program's own `raise` or `assert` raised it.
        user: bool,
    },
    /// The program uses operators without registered semantics. All missing operators of the function are listed.
    Missing(Vec<MissingOperator>),
    /// The arguments of an operator are not supported (yet).
    Unsupported(String),
    /// The program exceeded the step limit ([`Interpreter::with_step_limit`](crate::interp::Interpreter::with_step_limit)).
    Limit,
    /// A limit of the current thread's budget was exceeded.
    Exceeded(frazil_limits::Exceeded),
    /// The graph is not a valid TorchScript program.
    Malformed(String),
}

/// The reason why the execution stopped, and the source location.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecError {
    /// The reason.
    pub kind: ErrorKind,
    /// Source locations of the active calls, from the innermost call outwards: `file.py:10:5`.
    pub trace: Vec<String>,
}

impl ExecError {
    /// Returns an error without a location.
    pub fn new(kind: ErrorKind) -> ExecError {
        ExecError {
            kind,
            trace: Vec::new(),
        }
    }

    pub(crate) fn malformed(text: impl Into<String>) -> ExecError {
        ExecError::new(ErrorKind::Malformed(text.into()))
    }

    pub(crate) fn raised(class: &str, message: impl Into<String>) -> ExecError {
        ExecError::new(ErrorKind::Raised {
            class: class.to_string(),
            message: message.into(),
            user: false,
        })
    }

    /// Returns true if the program raised an exception; false if, for example, the program uses an operator that is not supported.
    pub fn is_raised(&self) -> bool {
        matches!(self.kind, ErrorKind::Raised { .. })
    }

    pub(crate) fn at(mut self, ctx: &Context, range: Option<SourceRange>) -> ExecError {
        if let Some(range) = range {
            self.trace.push(range.display(ctx).to_string());
        }
        self
    }

    /// Adds a location as [`ExecError::at`] does, unless it equals the last location of the trace.
    pub(crate) fn within(self, ctx: &Context, range: Option<SourceRange>) -> ExecError {
        let place = range.map(|range| range.display(ctx).to_string());
        match place {
            Some(place) if self.trace.last() == Some(&place) => self,
            _ => self.at(ctx, range),
        }
    }
}

impl From<OpError> for ExecError {
    fn from(e: OpError) -> ExecError {
        if e.is_unsupported() {
            return ExecError::new(ErrorKind::Unsupported(e.to_string()));
        }
        match e {
            OpError::Eval(EvalError::DivisionByZero) => ExecError::raised("RuntimeError", "ZeroDivisionError"),
            OpError::Argument { .. } => ExecError::malformed(e.to_string()),
            OpError::Tensor(TensorError::Exceeded(exceeded)) => ExecError::new(ErrorKind::Exceeded(exceeded)),
            other => ExecError::raised("RuntimeError", other.to_string()),
        }
    }
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ErrorKind::Raised { class, message, .. } => write!(f, "{class}: {message}")?,
            ErrorKind::Missing(missing) => {
                f.write_str("operators without semantics:")?;
                for m in missing {
                    write!(f, "\n  {}", m.name)?;
                    if let Some(place) = &m.place {
                        write!(f, " at {place}")?;
                    }
                }
            }
            ErrorKind::Unsupported(text) => f.write_str(text)?,
            ErrorKind::Limit => f.write_str("it takes too many steps; does it end?")?,
            ErrorKind::Exceeded(exceeded) => write!(f, "{exceeded}")?,
            ErrorKind::Malformed(text) => write!(f, "malformed program: {text}")?,
        }
        for place in &self.trace {
            write!(f, "\n  at {place}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ExecError {}
