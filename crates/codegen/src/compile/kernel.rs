//! Compilation of kernel specs to objects and texts.

use super::origins::{comment, locate};
use crate::backend::{CompileError, Machine, MlirError, MlirSession};
use crate::emit::module::emit_kernel;
use crate::options::BackendOptions;
use frazil_planner::kernel::KernelCode;
use frazil_tensor_ir::Origin;
use melior::ir::operation::{OperationLike, OperationPrintingFlags};

/// A textual form of a kernel on its way to machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// MLIR as emitted.
    Mlir,
    /// MLIR as emitted, with locations: the operators that the kernel computes, and their places in the source.
    LocatedMlir,
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

/// Returns the text of one kernel at `stage`. LLVM IR and assembly begin with a comment that lists `origins`, the operators that the kernel computes.
///
/// # Errors
/// If the kernel cannot be compiled.
pub fn kernel_text(
    name: &str,
    code: &KernelCode,
    origins: &[Origin],
    options: &BackendOptions,
    stage: Stage,
) -> Result<String, CompileError> {
    let session = MlirSession::new();
    let mut module = emit_kernel(session.context(), name, code, &options.target, &options.emitters)?;
    match stage {
        Stage::Mlir => return Ok(module.as_operation().to_string()),
        Stage::LocatedMlir => {
            locate(session.context(), &mut module, name, origins);
            let flags = OperationPrintingFlags::new().enable_debug_info(true, false);
            let text = module.as_operation().to_string_with_flags(flags);
            return text.map_err(|e| {
                let diagnostics = vec![e.to_string()];
                let stage = "printing with locations";
                mlir_error(name, MlirError { stage, diagnostics })
            });
        }
        Stage::Llvm | Stage::Assembly => {}
    }
    let machine = Machine::new(&options.target)?;
    let context = inkwell::context::Context::create();
    let module = session
        .translate(module, &context)
        .map_err(|source| mlir_error(name, source))?;
    match stage {
        // Assembly of all x86 targets has this comment.
        Stage::Assembly => Ok(comment("#", name, origins) + &machine.assembly(&module)?),
        _ => Ok(comment(";", name, origins) + &machine.ir(&module)?),
    }
}

fn mlir_error(name: &str, source: MlirError) -> CompileError {
    CompileError::Mlir {
        kernel: name.to_owned(),
        source,
    }
}
