//! Kernel specs to objects and texts.

use crate::backend::{CompileError, Machine, MlirError, MlirSession};
use crate::emit::module::emit_kernel;
use crate::options::BackendOptions;
use frazil_planner::kernel::KernelCode;

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
pub fn compile_kernel(name: &str, code: &KernelCode, options: &BackendOptions) -> Result<Vec<u8>, CompileError> {
    let machine = Machine::new(&options.target)?;
    let session = MlirSession::new();
    let module = emit_kernel(session.context(), name, code, &options.target, &options.emitters)?;
    let context = inkwell::context::Context::create();
    let module = session
        .translate(module, &context)
        .map_err(|source| mlir_error(name, source))?;
    Ok(machine.object(&module)?)
}

/// The text of one kernel at `stage`.
pub fn kernel_text(
    name: &str,
    code: &KernelCode,
    options: &BackendOptions,
    stage: Stage,
) -> Result<String, CompileError> {
    let session = MlirSession::new();
    let module = emit_kernel(session.context(), name, code, &options.target, &options.emitters)?;
    if stage == Stage::Mlir {
        return Ok(module.as_operation().to_string());
    }
    let machine = Machine::new(&options.target)?;
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
