//! Native code for plans of kernels, through MLIR and LLVM.
//!
//! [`emit`] emits the kernels of a plan as MLIR, and [`backend`] compiles them to object files. [`compile()`] returns
//! an [`Executable`](frazil_executor::Executable) for a plan, and [`aot`] writes a library. Plans come from
//! [`frazil_planner`].

pub mod aot;
pub mod backend;
pub mod cache;
mod code_library;
pub mod compile;
pub mod emit;
mod options;
mod target_keys;
pub mod tune;

pub use code_library::CodeLibrary;
pub use compile::{compile, is_compiled, package, package_with};
pub use frazil_executor::link::LibraryError;
pub use options::{BackendOptions, CodeCounts};
pub use target_keys::TargetKeys;
