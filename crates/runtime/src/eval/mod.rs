//! Evaluation of scalar expressions, loop nests and programs: the interpreter's tensor engine.

mod binary;
mod complex;
#[cfg(feature = "fast")]
mod contraction;
#[cfg(feature = "fast")]
mod direct;
mod elementwise;
#[cfg(feature = "fast")]
mod gemm;
mod indexed_reads;
mod loop_nest;
mod nest;
mod program;
mod scalar_expr;
pub mod special;
mod staged;
mod tape;
mod unary;

pub(crate) use elementwise::Elementwise;
pub use loop_nest::eval_structured;
pub(crate) use program::{eval_outputs, eval_view};
pub use program::{eval_program, view_layout};
pub use scalar_expr::{ExprEval, LaneSource};
pub(crate) use staged::Staging;
pub(crate) use tape::Tape;

pub use crate::error::EvalError;
