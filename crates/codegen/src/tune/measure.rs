//! Measuring the forms of a plan's kernels.

use super::{Choice, Tuning, question};
use crate::compile::{BackendOptions, Executable, compile};
use crate::kernel::{GemmB, KernelSpec};
use crate::native::CompileError;
use crate::plan::{Buffer, Plan, Port};
use crate::target::Machine;
use frazil_ir::DType;
use std::time::{Duration, Instant};

/// How much faster than the analytical choice another one has to be: less may be noise.
const MARGIN: f64 = 0.97;
/// How long a form is run.
const TIME: Duration = Duration::from_millis(20);

impl Tuning {
    /// Measures the kernels of `plan` that are not known yet, on this processor, whose kind `options` tells.
    ///
    /// # Errors
    /// When a kernel cannot be compiled.
    pub fn measure(&mut self, plan: &Plan, options: &BackendOptions) -> Result<(), CompileError> {
        let (target, threads) = (&options.target, options.threads);
        for spec in &plan.kernels {
            let Some((bare, key)) = question(spec, target, threads) else {
                continue;
            };
            if self.kernels.contains_key(&key) {
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
            let choice = better.and_then(|(i, _)| match forms.get(i)? {
                KernelSpec::Conv(c) => Some(Choice::Conv(c.tile, c.winograd)),
                KernelSpec::Gemm(g) => Some(Choice::Gemm(g.tile)),
                _ => None,
            });
            self.kernels.insert(key, choice);
        }
        Ok(())
    }
}

/// The kernel's variants, the one that the cost model chooses first.
pub(super) fn forms(spec: &KernelSpec, machine: &Machine) -> Vec<KernelSpec> {
    let others: Vec<KernelSpec> = match spec {
        KernelSpec::Conv(c) => c.alternatives(machine).into_iter().map(KernelSpec::Conv).collect(),
        KernelSpec::Gemm(g) => g.alternatives(machine).into_iter().map(KernelSpec::Gemm).collect(),
        _ => Vec::new(),
    };
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

    /// Returns the seconds that a call takes: the least of several calls, which together take at least `time`.
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
    let mut plan = Plan {
        name: "tune".to_owned(),
        ..Plan::default()
    };
    let port = |elements: i64| Port {
        name: "x".to_owned(),
        dtype: DType::Float,
        shape: smallvec::smallvec![elements],
    };
    let input = Buffer::Input { index: 0, offset: 0 };
    let output = Buffer::Output { index: 0, offset: 0 };
    match spec {
        KernelSpec::Conv(c) => {
            let s = &c.shape;
            let plain = s.batch * s.in_channels * s.input[0] * s.input[1];
            plan.inputs = vec![port(c.input_shape().map_or(plain, |s| s.elements()))];
            plan.outputs = vec![port(c.output_shape().elements())];
            let weights = s.out_channels * (s.in_channels / s.groups.max(1)) * s.kernel[0] * s.kernel[1];
            let packed = c.pack_weights(&vec![0.01; weights as usize]);
            let weights = plan.weights(&packed, c.transformation());
            plan.call(spec.clone(), [input, weights, output]);
        }
        KernelSpec::Gemm(g) => {
            let reach = |steps: &[(i64, i64)]| 1 + steps.iter().map(|(n, step)| (n - 1).max(0) * step).sum::<i64>();
            let strides = g.batch.iter().flat_map(|b| [b.a, b.b, b.c]);
            let b = match g.b {
                GemmB::Packed => [0, 0],
                GemmB::Strided { k_stride, n_stride } => [k_stride, n_stride],
            };
            // One that runs backwards begins inside of its operand, which this plan has no word for.
            if strides.chain([g.a_row_stride, g.a_col_stride]).chain(b).any(|s| s < 0) {
                return None;
            }
            let batch = |of: &dyn Fn(&crate::kernel::GemmBatch) -> i64| {
                g.batch.iter().map(|b| (b.extent, of(b))).collect::<Vec<_>>()
            };
            let a = [batch(&|b| b.a), vec![(g.m, g.a_row_stride), (g.k, g.a_col_stride)]].concat();
            let c = [batch(&|b| b.c), vec![(g.m, g.c_row_stride), (g.n, 1)]].concat();
            plan.inputs = vec![port(reach(&a))];
            plan.outputs = vec![port(reach(&c))];
            let right = match g.b {
                GemmB::Packed => plan.constants.push(&vec![0.01f32; g.packed_elements()]),
                GemmB::Strided { k_stride, n_stride } => {
                    let b = [batch(&|b| b.b), vec![(g.k, k_stride), (g.n, n_stride)]].concat();
                    plan.inputs.push(port(reach(&b)));
                    Buffer::Input { index: 1, offset: 0 }
                }
            };
            plan.call(spec.clone(), [input, right, output]);
        }
        _ => return None,
    }
    Some(plan)
}
