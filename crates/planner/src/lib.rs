//! Compilation of frozen graphs to plans of kernels, without code generation.
//!
//! [`compile_graph`] compiles a frozen graph for the shapes of its inputs to a [`plan::Plan`], in stages:
//!
//! 1. [`specialise`] runs the graph once without elements: control flow, lists and mutation disappear, and each operator appends the program of its registry
//!    entry to a [`TensorGraph`](frazil_tensor_ir::TensorGraph). From here on, nothing depends on operators.
//! 2. The passes of [`frazil_tensor_ir`] simplify and fuse loop nests, and its patterns recognise convolutions, matmuls, windows and concatenations by their maps.
//! 3. [`layout`] chooses the tensors that are stored in channel blocks, and the parts of concatenations that are written in place.
//! 4. [`select`] chooses a kernel for each nest and packs weights, which gives a [`schedule::Schedule`].
//! 5. [`placement`] places the buffers of the schedule, which gives the plan. [`plan::listing`] shows it.

pub mod codes;
pub mod error;
pub mod family;
pub mod kernel;
pub mod layout;
pub mod lower;
mod options;
pub mod packed;
pub mod placement;
pub mod plan;
pub mod schedule;
pub mod select;
pub mod specialise;
pub mod target;
pub mod tune;

pub use error::{LowerError, Unsupported};
pub use lower::{Lowered, compile_graph, lower};
pub use options::{LowerOptions, PlanSizes};
pub use specialise::{ArgumentSpec, ResultSpec};
