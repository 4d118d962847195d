//! Compiled functions as data, and their execution in this process, without a compiler.
//!
//! A [`Package`] holds machine code, constants and the calls of kernels in order. It comes from a compiler or from a file; [`Package::link`] loads its code
//! and prepares its weights, and an [`Executable`] runs it. This crate does not depend on operators, kernels or LLVM.

pub mod error;
pub mod link;
pub mod memory;
pub mod package;
pub mod program;
pub mod run;

pub use error::LoadError;
pub use package::Package;
pub use run::{Executable, LoadedCode, Pools, RunError, RunOptions};
