//! Functions of the tensor IR as input and output of `jit-opt`.

use super::{
    EmitKind, Options, compile_options, emit_plan, pass_options, print_report, reproduced_pipeline, write_text,
};
use crate::Failure;
use crate::progress::Progress;
use frazil::{Session, TensorFunction, TensorStage};
use std::path::Path;

/// Runs the options on the tensor function that the input contains.
pub(super) fn run(options: &Options, session: &Session, progress: &Progress) -> Result<(), Failure> {
    let mut function = TensorFunction::read(&options.input, session)?;
    let reproduced = match options.run_reproducer {
        true => Some(reproduced_pipeline(&options.input)?),
        false => None,
    };
    if let Some(pipeline) = reproduced.as_ref().or(options.pass_pipeline.as_ref()) {
        progress.stage("running passes");
        let report = function.run_passes(pipeline, &pass_options(options))?;
        print_report(options, &report);
    }
    progress.stage("compiling");
    emit(options, emit_kind(options)?, &function)
}

/// Writes a function, or a stage of its compilation.
pub(super) fn emit(options: &Options, kind: EmitKind, function: &TensorFunction) -> Result<(), Failure> {
    let compile = compile_options(options);
    match kind {
        EmitKind::Tensors => write(options, function),
        EmitKind::Layout => write_text(options, &function.stage(TensorStage::Layout, &compile)?),
        EmitKind::Schedule => write_text(options, &function.stage(TensorStage::Schedule, &compile)?),
        kind => emit_plan(options, kind, &function.plan(&compile)?),
    }
}

/// Returns what is written: the function itself unless another stage is named.
fn emit_kind(options: &Options) -> Result<EmitKind, Failure> {
    let file = options.output.as_deref().filter(|path| *path != Path::new("-"));
    let kind = options.emit.or_else(|| file.and_then(EmitKind::from_extension));
    match kind.unwrap_or(EmitKind::Tensors) {
        EmitKind::Ir | EmitKind::Pt | EmitKind::Code | EmitKind::Dot => Err(Failure::usage(format!(
            "{} is a function of the tensor IR, which has no way back to TorchScript: expected --emit=tensors, layout, schedule, kernels, mlir, llvm, asm, obj or lib",
            options.input.display()
        ))),
        kind => Ok(kind),
    }
}

/// Writes a function: to a file with its large constants beside it, or to standard output without them.
fn write(options: &Options, function: &TensorFunction) -> Result<(), Failure> {
    match options.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => Ok(function.write(path)?),
        None => write_text(options, &function.text()),
    }
}
