//! Frozen graphs to native code through MLIR and LLVM.
//!
//! The front half turns a frozen graph and the shapes of its inputs into a [`plan::Plan`]: [`graph::TensorGraph`] is what its
//! stages work on. The back half turns a plan into machine code.

pub mod affine;
pub mod aot;
pub mod build_plan;
pub mod classify;
pub mod compile;
pub mod emit;
pub mod error;
mod fold;
pub mod fuse;
pub mod graph;
pub mod kernel;
pub mod layout;
pub mod listing;
pub mod lower;
pub mod memory;
pub mod native;
pub mod plan;
pub mod schedule;
pub mod simplify;
pub mod specialise;
pub mod target;

pub use compile::{CompileOptions, Executable, compile};
pub use error::{LowerError, Unsupported};
pub use graph::TensorGraph;
pub use lower::{LowerOptions, Lowered, compile_graph, lower};
pub use specialise::{InputSpec, ResultSpec};
