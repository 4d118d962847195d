//! From kernel specs to machine code: MLIR passes, LLVM passes, one object file a kernel in memory.

#[cfg(feature = "llvm")]
mod compile;
mod deferred;
mod image;
pub mod jit;
#[cfg(feature = "llvm")]
mod linker;
#[cfg(feature = "llvm")]
mod llvm;
#[cfg(feature = "llvm")]
mod mlir;
pub(crate) mod own_pages;

#[cfg(feature = "llvm")]
use crate::emit::EmitError;
use frazil_runtime::memory::OutOfMemory;

#[cfg(feature = "llvm")]
pub use compile::{Stage, compile_kernel, kernel_text};
#[cfg(feature = "llvm")]
pub use llvm::{LlvmError, Machine, host_target};
#[cfg(feature = "llvm")]
pub use mlir::{MlirError, MlirSession};

/// Why a plan could not be compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// A kernel has no code.
    #[cfg(feature = "llvm")]
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// MLIR refused a kernel.
    #[cfg(feature = "llvm")]
    #[error("MLIR refused kernel {kernel}: {source}")]
    Mlir {
        /// The kernel's name.
        kernel: String,
        /// What MLIR said.
        source: MlirError,
    },
    /// LLVM refused a kernel, or the target.
    #[cfg(feature = "llvm")]
    #[error(transparent)]
    Llvm(#[from] LlvmError),
    /// The object could not be loaded into the process.
    #[error(transparent)]
    Jit(#[from] jit::JitError),
    /// The plan contradicts itself.
    #[error("the plan is not valid: {0}")]
    InvalidPlan(String),
    /// The system refused memory or threads.
    #[error("out of memory or threads while preparing the compiled function")]
    Resources,
    /// The system refused memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A limit was exceeded meanwhile, or the work was interrupted.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
}
