//! Measurement of the variants of a plan's kernels.

use crate::backend::CompileError;
use crate::compile::compile;
use crate::options::BackendOptions;
use frazil_executor::Executable;
use frazil_ir::DType;
use frazil_planner::kernel::KernelSpec;
use frazil_planner::plan::{Buffer, Plan, Port};
use frazil_planner::target::Machine;
use frazil_planner::tune::{Tuning, measured_kernel};
use std::time::{Duration, Instant};

/// Maximum ratio of a variant's time to that of the cost model's choice for the variant to replace it. Smaller differences may be noise.
const MARGIN: f64 = 0.97;
/// The time for which a variant is run.
const TIME: Duration = Duration::from_millis(20);

/// Measures the kernels of `plan` that have not been measured yet, on this processor, whose model is in `options`.
///
/// # Errors
/// If a kernel cannot be compiled.
pub fn measure(tuning: &mut Tuning, plan: &Plan, options: &BackendOptions) -> Result<(), CompileError> {
    let (target, threads) = (&options.target, options.threads);
    for spec in &plan.kernels {
        let Some((bare, key)) = measured_kernel(&**spec, target, threads) else {
            continue;
        };
        if tuning.is_known(&key) {
            continue;
        }
        let forms = forms(&bare, target.machine);
        let mut times = Vec::with_capacity(forms.len());
        for form in &forms {
            frazil_limits::check()?;
            times.push(Trial::new(form, options)?.map_or(f64::INFINITY, |mut t| t.seconds(TIME)));
        }
        let best = times.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
        let better = best.filter(|(_, time)| times.first().is_some_and(|own| **time < own * MARGIN));
        let variant = better.and_then(|(i, _)| Some(forms.get(i)?.variants()?.variant()));
        tuning.record(key, variant);
    }
    Ok(())
}

/// Returns the variants of the kernel, starting with the one that the cost model chooses.
pub(super) fn forms(spec: &KernelSpec, machine: &Machine) -> Vec<KernelSpec> {
    let others = spec.variants().map_or_else(Vec::new, |v| v.alternatives(machine));
    [spec.clone()].into_iter().chain(others).collect()
}

/// A compiled kernel with memory for its operands.
pub(super) struct Trial {
    code: Executable,
    inputs: Vec<Vec<u8>>,
    outputs: Vec<Vec<u8>>,
}

impl Trial {
    /// Compiles `spec`; `None` for a kernel that cannot be measured.
    pub(super) fn new(spec: &KernelSpec, options: &BackendOptions) -> Result<Option<Trial>, CompileError> {
        let Some(plan) = plan_of(spec) else {
            return Ok(None);
        };
        let bytes = |port: &Port| vec![0u8; port.bytes()];
        Ok(Some(Trial {
            code: compile(&plan, options)?,
            inputs: plan.inputs.iter().map(bytes).collect(),
            outputs: plan.outputs.iter().map(bytes).collect(),
        }))
    }

    /// Returns the seconds that a call takes: the minimum over several calls, which together take at least `time`.
    pub(super) fn seconds(&mut self, time: Duration) -> f64 {
        let inputs: Vec<&[u8]> = self.inputs.iter().map(Vec::as_slice).collect();
        let mut outputs: Vec<&mut [u8]> = self.outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let (begin, mut best, mut runs) = (Instant::now(), f64::INFINITY, 0);
        while runs < 3 || begin.elapsed() < time {
            let start = Instant::now();
            if self.code.run(&inputs, &mut outputs).is_err() {
                return f64::INFINITY;
            }
            best = best.min(start.elapsed().as_secs_f64());
            runs += 1;
        }
        best
    }
}

/// A plan that calls the kernel once; `None` for a kernel that cannot be measured.
fn plan_of(spec: &KernelSpec) -> Option<Plan> {
    let trial = spec.variants()?.trial()?;
    let port = |elements: i64| Port {
        name: "x".to_owned(),
        dtype: DType::Float,
        shape: smallvec::smallvec![elements],
    };
    let mut plan = Plan {
        name: "tune".to_owned(),
        inputs: trial.inputs.iter().copied().map(port).collect(),
        outputs: vec![port(trial.output)],
        ..Plan::default()
    };
    let inputs = (0..trial.inputs.len() as u32).map(|index| Buffer::Input { index, offset: 0 });
    let mut buffers: Vec<Buffer> = inputs.collect();
    if let Some((packed, transformation)) = trial.weights {
        buffers.push(plan.weights(&packed, transformation));
    }
    buffers.push(Buffer::Output { index: 0, offset: 0 });
    plan.call(spec.clone(), buffers);
    Some(plan)
}
