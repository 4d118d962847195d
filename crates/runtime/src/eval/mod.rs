//! Evaluation of scalar expressions, loop nests and programs: the interpreter's tensor engine.

mod binary;
mod complex;
#[cfg(feature = "fast")]
mod contraction;
#[cfg(feature = "fast")]
mod direct;
mod elementwise;
mod gather;
#[cfg(feature = "fast")]
mod gemm;
mod nest;
mod program;
mod scalar_expr;
pub mod special;
mod staged;
mod structured;
mod tape;
mod unary;

pub(crate) use elementwise::Elementwise;
pub(crate) use program::{eval_outputs, eval_view};
pub use program::{eval_program, view_layout};
pub use scalar_expr::{ExprEval, LaneSource};
pub(crate) use staged::Staging;
pub use structured::eval_structured;
pub(crate) use tape::Tape;

use thiserror::Error;

/// Why an evaluation failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvalError {
    /// An integer was divided by zero.
    #[error("ZeroDivisionError")]
    DivisionByZero,
    /// The expression applies a function to a dtype on which it is not defined.
    #[error("{0} is not defined on this dtype")]
    Undefined(String),
    /// An index names no element.
    #[error("{0}")]
    OutOfRange(String),
    /// The program does not fit its arguments, or is inconsistent. A bug of the entry that made it.
    #[error("malformed tensor program: {0}")]
    Malformed(&'static str),
    /// A result could not be made.
    #[error(transparent)]
    Tensor(#[from] crate::TensorError),
}
