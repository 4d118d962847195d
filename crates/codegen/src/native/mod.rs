//! From kernel specs to machine code: MLIR passes, LLVM passes, one object file a kernel in memory.

mod deferred;
mod image;
pub mod jit;
mod llvm;
mod mlir;
pub(crate) mod own_pages;

use crate::emit::{self, EmitError};
use crate::kernel::KernelSpec;
use crate::target::Target;
use frazil_runtime::memory::OutOfMemory;

pub use llvm::{LlvmError, Machine, host_target};
pub use mlir::{MlirError, MlirSession};

/// Why a plan could not be compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// A kernel has no code.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// MLIR refused a kernel.
    #[error("MLIR refused kernel {kernel}: {source}")]
    Mlir {
        /// The kernel's name.
        kernel: String,
        /// What MLIR said.
        source: MlirError,
    },
    /// LLVM refused a kernel, or the target.
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

/// A textual form of a kernel on its way to machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// MLIR as emitted.
    Mlir,
    /// LLVM IR after optimisation.
    Llvm,
    /// Assembly.
    Assembly,
}

/// Compiles one kernel to an object file.
pub fn compile_kernel(name: &str, spec: &KernelSpec, target: &Target) -> Result<Vec<u8>, CompileError> {
    let machine = Machine::new(target)?;
    let session = MlirSession::new();
    let module = emit::emit_kernel(session.context(), name, spec)?;
    let context = inkwell::context::Context::create();
    let module = session
        .translate(module, &context)
        .map_err(|source| mlir_error(name, source))?;
    Ok(machine.object(&module)?)
}

/// The text of one kernel at `stage`.
pub fn kernel_text(name: &str, spec: &KernelSpec, target: &Target, stage: Stage) -> Result<String, CompileError> {
    let session = MlirSession::new();
    let module = emit::emit_kernel(session.context(), name, spec)?;
    if stage == Stage::Mlir {
        return Ok(module.as_operation().to_string());
    }
    let machine = Machine::new(target)?;
    let context = inkwell::context::Context::create();
    let module = session
        .translate(module, &context)
        .map_err(|source| mlir_error(name, source))?;
    match stage {
        Stage::Assembly => Ok(machine.assembly(&module)?),
        _ => Ok(machine.ir(&module)?),
    }
}

fn mlir_error(name: &str, source: MlirError) -> CompileError {
    CompileError::Mlir {
        kernel: name.to_owned(),
        source,
    }
}
