//! Why the execution of a program stopped.

use super::{OpError, TensorError};
use crate::error::EvalError;
use frazil_ir::{Context, SourceRange};
use std::fmt;

/// An operator that a graph uses and nothing gives semantics to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingOperator {
    /// The node's kind, with its overload where that is known.
    pub name: String,
    /// Where it stands in the source: `file.py:10:5`.
    pub place: Option<String>,
}

/// Why the execution stopped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program raised: PyTorch raises here too.
    Raised {
        /// The exception's class: `ValueError`, `RuntimeError`.
        class: String,
        /// Its message.
        message: String,
        /// True when the program's own `raise` or `assert` did it.
        user: bool,
    },
    /// The program uses what we do not have. All missing operators of the function are listed.
    Missing(Vec<MissingOperator>),
    /// An operator does not cover these arguments (yet).
    Unsupported(String),
    /// The program took more steps than it was allowed ([`Interpreter::with_step_limit`](crate::interp::Interpreter::with_step_limit)).
    Limit,
    /// A limit of the current thread's budget was exceeded.
    Exceeded(frazil_limits::Exceeded),
    /// The graph is not what a TorchScript program can be.
    Malformed(String),
}

/// Why the execution stopped, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecError {
    /// Why.
    pub kind: ErrorKind,
    /// Source places from the innermost call outwards: `file.py:10:5`.
    pub trace: Vec<String>,
}

impl ExecError {
    /// An error without a place.
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

    /// True when the program raised an exception, as opposed to our not being able to run it.
    pub fn is_raised(&self) -> bool {
        matches!(self.kind, ErrorKind::Raised { .. })
    }

    pub(crate) fn at(mut self, ctx: &Context, range: Option<SourceRange>) -> ExecError {
        if let Some(range) = range {
            self.trace.push(range.display(ctx).to_string());
        }
        self
    }

    /// [`ExecError::at`], unless that is the place noted last.
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
