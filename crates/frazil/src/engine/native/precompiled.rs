//! Code of a code library, which a shape runs in until code of its own pays.

use super::compiled::{CompiledCode, CompiledMethod};
use crate::error::Result;
use frazil_executor::memory::Workspace;
use frazil_runtime::Tensor;
use frazil_runtime::value::{TensorCell, Value};
use std::time::{Duration, Instant};

/// Estimated time to compile one kernel. Measured on one thread: 10 to 40 ms.
const COMPILE_TIME: Duration = Duration::from_millis(25);

/// An instance of code whose kernels come from the code library.
///
/// Code of a shape's own is faster by a few percent at most, but it has to be compiled first. So a shape gets it only after its calls have taken as long as
/// compiling is estimated to take: compiling at most doubles the time that the calls have taken so far.
pub(super) struct Precompiled {
    pub(super) method: CompiledMethod,
    /// The time that calls take until code of the shape's own is due.
    left: Duration,
}

impl Precompiled {
    /// Returns an instance of `code` that runs in `workspace`.
    pub(super) fn new(code: &CompiledCode, workspace: &Workspace) -> Result<Precompiled> {
        let kernels = u32::try_from(code.kernels()).unwrap_or(u32::MAX);
        Ok(Precompiled {
            method: code.instance_in(workspace)?,
            left: COMPILE_TIME.saturating_mul(kernels),
        })
    }

    /// Returns true if the calls so far have taken as long as compiling is estimated to take.
    pub(super) fn is_due(&self) -> bool {
        self.left.is_zero()
    }

    /// Runs the code as [`CompiledMethod::run_aliasing`] does.
    pub(super) fn run(&mut self, inputs: &[Tensor], cells: &[TensorCell]) -> Result<Value> {
        let start = Instant::now();
        let result = self.method.run_aliasing(inputs, cells);
        self.left = self.left.saturating_sub(start.elapsed());
        result
    }
}
