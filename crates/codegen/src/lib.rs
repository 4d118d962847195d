//! Frozen graphs to native code through MLIR and LLVM.

pub mod kernel;
pub mod plan;
pub mod target;
