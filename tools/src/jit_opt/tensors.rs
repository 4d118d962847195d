//! Functions of the tensor IR as input and output of `jit-opt`.

use super::{EmitKind, Options, compile_options, emit_plan, write_text};
use crate::Failure;
use crate::progress::Progress;
use frazil::TensorFunction;
use std::path::Path;

/// Runs the options on the tensor function that the input contains.
pub(super) fn run(options: &Options, progress: &Progress) -> Result<(), Failure> {
    let function = TensorFunction::read(&options.input)?;
    match emit_kind(options)? {
        EmitKind::Tensors => {
            progress.stage("writing");
            write(options, &function)
        }
        kind => {
            progress.stage("compiling");
            emit_plan(options, kind, &function.plan(&compile_options(options))?)
        }
    }
}

/// Returns what is written: the function itself unless another stage is named.
fn emit_kind(options: &Options) -> Result<EmitKind, Failure> {
    let file = options.output.as_deref().filter(|path| *path != Path::new("-"));
    let kind = options.emit.or_else(|| file.and_then(EmitKind::from_extension));
    match kind.unwrap_or(EmitKind::Tensors) {
        EmitKind::Ir | EmitKind::Pt | EmitKind::Code | EmitKind::Dot => Err(Failure::usage(format!(
            "{} is a function of the tensor IR, which has no way back to TorchScript: expected --emit=tensors, kernels, mlir, llvm, asm, obj or lib",
            options.input.display()
        ))),
        kind => Ok(kind),
    }
}

/// Writes a function: to a file with its large constants beside it, or to standard output without them.
pub(super) fn write(options: &Options, function: &TensorFunction) -> Result<(), Failure> {
    match options.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => Ok(function.write(path)?),
        None => write_text(options, &function.text()),
    }
}
