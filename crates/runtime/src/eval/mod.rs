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

pub use crate::error::EvalError;
