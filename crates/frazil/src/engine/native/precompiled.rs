//! Code for any size, which a shape runs in until code of its own pays.

use super::NativeCode;
use super::compiled::{CompiledCode, CompiledMethod, NativePlan};
use super::compiler::with_phases;
use crate::error::Result;
use crate::model::Model;
use frazil_executor::memory::Workspace;
use frazil_planner::specialise::ArgumentSpec;
use frazil_runtime::Tensor;
use frazil_runtime::value::{TensorCell, Value};
use std::time::{Duration, Instant};
use tracing::debug;

/// Estimated time to compile one kernel. Measured on one thread: 10 to 40 ms.
const COMPILE_TIME: Duration = Duration::from_millis(25);

/// Decides when a shape gets code of its own, if it runs in code for any size.
///
/// Code of a shape's own is faster by a few percent at most, but it has to be compiled first. So a shape gets it only after its calls have taken as long as
/// compiling is estimated to take: compiling at most doubles the time that the calls have taken so far.
#[derive(Default)]
pub(super) struct Patience {
    spent: Duration,
}

impl Patience {
    /// Returns true if the calls so far have taken as long as compiling `kernels` kernels is estimated to take.
    pub(super) fn is_over(&self, kernels: usize) -> bool {
        let kernels = u32::try_from(kernels).unwrap_or(u32::MAX);
        self.spent >= COMPILE_TIME.saturating_mul(kernels)
    }

    /// Runs a call, and adds the time that it takes.
    pub(super) fn during<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = call();
        self.spent += start.elapsed();
        result
    }
}

/// An instance of code whose kernels come from the code library.
pub(super) struct Precompiled {
    pub(super) method: CompiledMethod,
    kernels: usize,
    patience: Patience,
}

impl Precompiled {
    /// Returns an instance of `code` that runs in `workspace`.
    pub(super) fn new(code: &CompiledCode, workspace: &Workspace) -> Result<Precompiled> {
        Ok(Precompiled {
            method: code.instance_in(workspace)?,
            kernels: code.kernels(),
            patience: Patience::default(),
        })
    }

    /// Returns true if code of the shape's own pays.
    pub(super) fn is_due(&self) -> bool {
        self.patience.is_over(self.kernels)
    }

    /// Runs the code as [`CompiledMethod::run_aliasing`] does.
    pub(super) fn run(&mut self, inputs: &[Tensor], cells: &[TensorCell]) -> Result<Value> {
        let method = &mut self.method;
        self.patience.during(|| method.run_aliasing(inputs, cells))
    }
}

impl NativeCode {
    /// Returns code for the first calls of a shape, if the library contains the code of at least half of the kernels. The code of the others is compiled with
    /// all sizes as arguments, so that other shapes can use it.
    pub(super) fn library_code(
        &self,
        model: &Model,
        method: &str,
        specs: &[ArgumentSpec],
        start: Instant,
    ) -> Option<CompiledCode> {
        let compiler = self.compiler.named(method).for_any_size();
        let graph = model.graph(method).ok()?;
        let plan = NativePlan::aliasing(
            graph,
            specs,
            Some(self.shared.plans(model)),
            model.session().registry(),
            &compiler,
        )
        .ok()?;
        let codes = plan.codes_for_any_size();
        let lacking: Vec<_> = compiler.lacking(&codes).collect();
        for code in &lacking {
            debug!(target: "frazil::library", "{method}: the code library lacks {}", code.identity().text());
        }
        if plan.warns || 2 * lacking.len() > with_phases(&codes).count() {
            return None;
        }
        let package = plan.package_with(&compiler, &codes).ok()?;
        let (results, packed) = plan.into_results();
        let what = match lacking.len() {
            0 => "from the code library".to_owned(),
            lacking => format!("from the code library, {lacking} kernels compiled,"),
        };
        let code = self.load(method, package, results, &what, start).ok()?;
        code.keep_packed(&packed, &compiler);
        Some(code)
    }
}
