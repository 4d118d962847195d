//! Measuring the forms of a plan's kernels.

use super::{Choice, Tuning, question};
use crate::compile::{CompileOptions, compile};
use crate::kernel::{GemmB, KernelSpec};
use crate::native::CompileError;
use crate::plan::{Buffer, Plan, Port};
use crate::target::VectorUnit;
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
    pub fn measure(&mut self, plan: &Plan, options: &CompileOptions) -> Result<(), CompileError> {
        let (target, threads) = (&options.target, options.threads);
        for spec in &plan.kernels {
            let Some((bare, key)) = question(spec, target, threads) else {
                continue;
            };
            if self.kernels.contains_key(&key) {
                continue;
            }
            let forms = forms(&bare, target.vector);
            let mut times = Vec::with_capacity(forms.len());
            for form in &forms {
                frazil_limits::check()?;
                times.push(time(form, options)?);
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

/// The kernel's forms, the analytical one first.
fn forms(spec: &KernelSpec, vector: VectorUnit) -> Vec<KernelSpec> {
    let others: Vec<KernelSpec> = match spec {
        KernelSpec::Conv(c) => c.alternatives(vector).into_iter().map(KernelSpec::Conv).collect(),
        KernelSpec::Gemm(g) => g.alternatives(vector).into_iter().map(KernelSpec::Gemm).collect(),
        _ => Vec::new(),
    };
    [spec.clone()].into_iter().chain(others).collect()
}

/// Seconds that a call of the kernel takes: the least of several.
fn time(spec: &KernelSpec, options: &CompileOptions) -> Result<f64, CompileError> {
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
                return Ok(f64::INFINITY);
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
        _ => return Ok(f64::INFINITY),
    }
    let mut code = compile(&plan, options)?;
    let bytes = |port: &Port| vec![0u8; port.bytes()];
    let inputs: Vec<Vec<u8>> = plan.inputs.iter().map(bytes).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut outputs: Vec<Vec<u8>> = plan.outputs.iter().map(bytes).collect();
    let mut outputs: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    let (begin, mut best, mut runs) = (Instant::now(), f64::INFINITY, 0);
    while runs < 3 || begin.elapsed() < TIME {
        let start = Instant::now();
        if code.run(&inputs, &mut outputs).is_err() {
            return Ok(f64::INFINITY);
        }
        best = best.min(start.elapsed().as_secs_f64());
        runs += 1;
    }
    Ok(best)
}
