//! The tensor IR: a method as loop nests and views over tensors, without names of operators.

pub mod affine;
mod alignment;
pub mod call;
pub mod extent;
pub mod graph;
pub mod ir;
pub mod pattern;
pub mod spec;
pub mod standard;
pub mod text;
pub mod transform;
pub mod verify;

pub use alignment::{ALIGNMENT, align_up};
pub use graph::{Origin, TensorGraph, TensorNode, TensorOp};
pub use ir::TensorIr;
