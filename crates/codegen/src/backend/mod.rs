//! From kernel specs to machine code: MLIR passes, LLVM passes, and one in-memory object file per kernel.

mod linker;
mod llvm;
mod mlir;

use crate::emit::family::EmitError;
use frazil_executor::LoadError;
use frazil_executor::link::LibraryError;

pub use linker::LlvmCode;
pub use llvm::{LlvmError, Machine, host_target};
pub use mlir::{MlirError, MlirSession};

/// Error of compiling a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// A kernel has no code.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// MLIR reported an error for a kernel.
    #[error("MLIR refused kernel {kernel}: {source}")]
    Mlir {
        /// The kernel's name.
        kernel: String,
        /// MLIR's error.
        source: MlirError,
    },
    /// LLVM refused a kernel, or the target.
    #[error(transparent)]
    Llvm(#[from] LlvmError),
    /// The code could not be loaded into the process, or the plan contradicts itself.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A code library cannot be written.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// A limit was exceeded meanwhile, or the work was interrupted.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
}
