//! The tensor IR: a method as loop nests and views over tensors, without names of operators.

pub mod affine;
pub mod call;
pub mod graph;
pub mod pass;
pub mod pattern;
pub mod spec;
pub mod text;
pub mod transform;
pub mod verify;

pub use graph::{Origin, TensorGraph, TensorNode, TensorOp};
pub use pass::TensorIr;

/// Alignment of tensors in buffers, in bytes: a cache line, and the widest vector register.
pub const ALIGNMENT: usize = 64;

/// Returns `n` rounded up to a multiple of [`ALIGNMENT`].
pub fn align_up(n: usize) -> usize {
    n.next_multiple_of(ALIGNMENT)
}
