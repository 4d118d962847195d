//! Plans of kernels to native code through MLIR and LLVM.
//!
//! [`emit`] turns the kernels of a plan into MLIR, [`backend`] compiles them to object files, and [`compile()`] makes an
//! [`Executable`](frazil_executor::Executable) of a plan, [`aot`] a library. Plans come from [`frazil_planner`].

pub mod aot;
pub mod backend;
pub mod cache;
mod code_library;
pub mod compile;
pub mod emit;
mod options;
pub mod tune;

pub use code_library::CodeLibrary;
pub use compile::{compile, package, package_with};
pub use frazil_executor::link::LibraryError;
pub use options::{BackendOptions, CodeCounts};
