//! Frozen graphs to native code through MLIR and LLVM.
