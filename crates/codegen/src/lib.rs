//! Frozen graphs to native code through MLIR and LLVM.
//!
//! The front half turns a frozen graph and the shapes of its inputs into a [`plan::Plan`] ([`compile_graph`]):
//!
//! 1. [`specialise`] runs the graph once without elements: control flow, lists and mutation disappear, each operator appends the tensor
//!    program of its registry entry to a [`graph::TensorGraph`]. From here on nothing knows an operator.
//! 2. [`simplify`] reads past views and folds constants; [`fuse`] moves pointwise work into the loops around it.
//! 3. [`classify`] recognises convolutions, matrix products, windows and concatenations by their access maps; [`layout`] chooses which
//!    tensors lie in channel blocks, and which parts are written in place.
//! 4. [`build_plan`] chooses a kernel for each nest and packs weights, giving a [`schedule::Schedule`]; [`memory`] places its buffers.
//!
//! The back half turns a plan into machine code. [`listing`] shows a plan.
//!
//! Without the feature `llvm` there are plans and [`Package`]s, and nothing that compiles.

// What a plan says of kernels is read where they are compiled.
#![cfg_attr(not(feature = "llvm"), allow(dead_code, reason = "only compiling uses it"))]

#[cfg(feature = "llvm")]
pub mod aot;
pub mod build_plan;
pub mod cache;
pub mod compile;
pub mod cost;
#[cfg(feature = "llvm")]
pub mod emit;
pub mod error;
pub mod kernel;
pub mod layout;
pub mod listing;
pub mod lower;
mod mapped;
pub mod memory;
pub mod native;
mod output;
pub mod package;
mod pages;
pub mod plan;
mod pools;
pub mod profile;
pub mod schedule;
mod slices;
pub mod specialise;
mod spread;
pub mod target;
pub mod tune;

#[cfg(feature = "llvm")]
pub use compile::compile;
pub use compile::{BackendOptions, Executable, LoadedCode};
pub use error::{LowerError, Unsupported};
pub use frazil_tensor_ir as tensor_ir;
pub use lower::{LowerOptions, Lowered, compile_graph, lower};
pub use package::Package;
pub use pools::Pools;
pub use specialise::{ArgumentSpec, ResultSpec};
