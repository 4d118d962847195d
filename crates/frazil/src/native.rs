//! Native code for the methods of a model.

use crate::{CallError, Error, Model, Result};
use frazil_ir::DType;
use frazil_runtime::Value;
use std::path::Path;
use std::time::Duration;

/// dtype and sizes of an input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InputSpec {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub sizes: Vec<i64>,
}

impl InputSpec {
    /// A dense tensor of these sizes.
    pub fn new(dtype: DType, sizes: &[i64]) -> InputSpec {
        InputSpec {
            dtype,
            sizes: sizes.to_vec(),
        }
    }
}

/// How to make native code.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// `host`, an x86-64 level, or a name that LLVM knows.
    pub target_cpu: String,
    /// Threads that a run may use.
    pub threads: usize,
    /// What functions of libraries are called.
    pub name: String,
}

/// A stage on the way to native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// Fused kernels.
    Kernels,
    /// MLIR.
    Mlir,
    /// LLVM IR.
    Llvm,
    /// Assembler.
    Asm,
    /// An object file.
    Object,
}

/// Kernels, ready to be turned into machine code.
pub struct NativePlan {}

impl NativePlan {
    /// The text or bytes of a stage.
    ///
    /// # Errors
    /// When code generation fails.
    pub fn emit(&self, _kind: Emit, _options: &CompileOptions) -> Result<Vec<u8>> {
        Err(Error::Unsupported("native code is not there yet".to_owned()))
    }

    /// Writes a shared library with its header.
    ///
    /// # Errors
    /// When code generation fails or a file cannot be written.
    pub fn write_library(&self, _path: &Path, _options: &CompileOptions) -> Result<()> {
        Err(Error::Unsupported("native code is not there yet".to_owned()))
    }
}

impl crate::Loaded {
    /// The plan of native code for method `method` on inputs of these shapes.
    ///
    /// # Errors
    /// When the method cannot be compiled.
    pub fn plan(&self, _method: &str, _inputs: &[InputSpec], _options: &CompileOptions) -> Result<NativePlan> {
        Err(Error::Unsupported("native code is not there yet".to_owned()))
    }
}

/// Compiled methods by shapes.
pub(crate) struct Cache {}

impl Cache {
    pub(crate) fn new(_threads: usize, _strict: bool) -> Cache {
        Cache {}
    }

    pub(crate) fn call(
        &mut self,
        _model: &Model,
        _method: &str,
        _args: &[Value],
        _notes: &mut Vec<String>,
        _compile_time: &mut Duration,
    ) -> Result<Option<Value>, CallError> {
        Ok(None)
    }
}
