//! Frozen graphs to native code through MLIR and LLVM.
//!
//! The front half turns a frozen graph and the shapes of its inputs into a [`plan::Plan`] ([`compile_graph`]):
//!
//! 1. [`specialise`] runs the graph once without elements: control flow, lists and mutation disappear, and each operator appends the program of its registry
//!    entry to a [`TensorGraph`](tensor_ir::TensorGraph). From here on, nothing depends on operators.
//! 2. The passes of [`tensor_ir`] simplify and fuse loop nests, and its patterns recognise convolutions, matmuls, windows and concatenations by their maps.
//! 3. [`layout`] chooses which tensors are stored in channel blocks, and which parts are written in place.
//! 4. [`build_plan`] selects a kernel for each nest and packs weights, which gives a [`schedule::Schedule`]; [`memory`] places its buffers.
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
