//! Choices among kernels by measurement: the analytical choice stands unless another one was clearly faster on this processor.
//!
//! [`Tuning::measure`] runs the matrix products and convolutions of a plan one by one, each in the few forms that its family names as alternatives. What is
//! found is kept by what the kernel computes, so that it serves all models; lowering asks for it ([`LowerOptions::tuning`](crate::LowerOptions)).

use crate::compile::{CompileOptions, compile};
use crate::kernel::{Conv, ConvTile, Epilogue, Gemm, GemmB, GemmTile, KernelSpec, Winograd};
use crate::native::CompileError;
use crate::plan::{Buffer, Plan, Port};
use crate::target::{Target, VectorUnit};
use frazil_ir::DType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How much faster than the analytical choice another one has to be: less may be noise.
const MARGIN: f64 = 0.97;
/// How long a form is run.
const TIME: Duration = Duration::from_millis(20);

/// Most bytes of a file of measurements: a hundred thousand kernels.
const MOST_BYTES: u64 = 64 << 20;

/// What was measured, by kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// By what the kernel computes and on how many threads; `None` where the analytical choice is the best.
    kernels: BTreeMap<String, Option<Choice>>,
}

/// A form of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Choice {
    Conv(ConvTile, Option<Winograd>),
    Gemm(GemmTile),
}

impl Tuning {
    /// Reads what [`Tuning::write`] wrote; nothing is known where there is no such file.
    ///
    /// # Errors
    /// When it cannot be read, or is no such file.
    pub fn read(path: &Path) -> io::Result<Tuning> {
        match frazil_syntax::read_regular(path, MOST_BYTES) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Tuning::default()),
            Err(e) => Err(e),
        }
    }

    /// Writes it, in JSON.
    ///
    /// # Errors
    /// When it cannot be written; what was there is then as it was.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut output = frazil_syntax::OutputFile::replacing(path)?;
        // In one piece: the file is not buffered.
        output.file().write_all(&serde_json::to_vec_pretty(self)?)?;
        output.commit()
    }

    /// Kernels that were measured, and those among them for which the analytical choice was not the best.
    pub fn counts(&self) -> (usize, usize) {
        (self.kernels.len(), self.kernels.values().flatten().count())
    }

    /// Gives a convolution the form that was the fastest.
    pub(crate) fn conv(&self, conv: &mut Conv, target: &Target, threads: usize) {
        let spec = KernelSpec::Conv(conv.clone());
        // What a file says counts only where it is a form that there is.
        if let Some(Choice::Conv(tile, winograd)) = self.choice(&spec, target, threads) {
            let chosen = |c: &Conv| c.tile == tile && c.winograd == winograd;
            if let Some(found) = conv.alternatives(target.vector).into_iter().find(chosen) {
                *conv = found;
            }
        }
    }

    /// Gives a matrix product the blocking that was the fastest.
    pub(crate) fn gemm(&self, gemm: &mut Gemm, target: &Target, threads: usize) {
        let spec = KernelSpec::Gemm(gemm.clone());
        if let Some(Choice::Gemm(tile)) = self.choice(&spec, target, threads) {
            let chosen = |g: &Gemm| g.tile == tile;
            if let Some(found) = gemm.alternatives(target.vector).into_iter().find(chosen) {
                *gemm = found;
            }
        }
    }

    fn choice(&self, spec: &KernelSpec, target: &Target, threads: usize) -> Option<Choice> {
        // Nothing is looked for where nothing was measured.
        let (_, key) = (!self.kernels.is_empty()).then(|| question(spec, target, threads))??;
        *self.kernels.get(&key)?
    }

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

/// The kernel as the analysis would have it, without its epilogue, and the name of what it computes; `None` for one without a choice.
fn question(spec: &KernelSpec, target: &Target, threads: usize) -> Option<(KernelSpec, String)> {
    let bare = match spec {
        KernelSpec::Conv(c) => {
            let plain = c.input_shape().is_none();
            let own = Conv::on_lattice(c.shape, c.lattice, plain, Epilogue::none(), target.vector);
            KernelSpec::Conv(Conv {
                input: c.input,
                output_batch_stride: c.output_batch_stride,
                ..own
            })
        }
        KernelSpec::Gemm(g) => KernelSpec::Gemm(Gemm {
            tile: GemmTile::choose(g.batch_count(), [g.m, g.n, g.k], target.vector),
            epilogue: Epilogue::none(),
            ..g.clone()
        }),
        _ => return None,
    };
    let key = format!("{} {threads} {bare:?}", target.cpu);
    Some((bare, key))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ConvShape;

    fn target() -> Target {
        Target::new("x86-64-v3", "")
    }

    fn conv() -> Conv {
        let shape = ConvShape {
            batch: 1,
            in_channels: 16,
            out_channels: 32,
            groups: 1,
            input: [20, 20],
            output: [20, 20],
            kernel: [3, 3],
            stride: [1, 1],
            padding: [1, 1],
            dilation: [1, 1],
        };
        Conv::new(shape, false, Epilogue::none(), target().vector)
    }

    fn tuning(spec: KernelSpec, choice: Choice) -> Tuning {
        let (_, key) = question(&spec, &target(), 2).expect("a kernel with forms");
        Tuning {
            kernels: [(key, Some(choice))].into_iter().collect(),
        }
    }

    #[test]
    fn a_kernel_takes_the_form_that_was_chosen_for_it() {
        let analytical = conv();
        let other = analytical
            .alternatives(target().vector)
            .pop()
            .expect("there are others");
        let chosen = tuning(KernelSpec::Conv(conv()), Choice::Conv(other.tile, other.winograd));
        let mut tuned = conv();
        chosen.conv(&mut tuned, &target(), 2);
        assert_eq!(tuned, other);
        // What was measured on two threads says nothing of one.
        let mut alone = conv();
        chosen.conv(&mut alone, &target(), 1);
        assert_eq!(alone, analytical);
        // The form is the same kernel: it is asked for under the same name.
        let names = [&analytical, &other].map(|c| question(&KernelSpec::Conv(c.clone()), &target(), 2).map(|q| q.1));
        assert_eq!(names[0], names[1]);

        let gemm = || Gemm::linear(40, 200, 300, Epilogue::none(), target().vector);
        let other = gemm().alternatives(target().vector).pop().expect("there are others");
        let chosen = tuning(KernelSpec::Gemm(gemm()), Choice::Gemm(other.tile));
        let mut tuned = gemm();
        chosen.gemm(&mut tuned, &target(), 2);
        assert_eq!(tuned, other);
        assert_ne!(tuned, gemm());
    }

    #[test]
    fn forms_that_there_are_not_are_ignored() {
        let tile = ConvTile {
            columns: 1000,
            ..conv().tile
        };
        let mut tuned = conv();
        tuning(KernelSpec::Conv(conv()), Choice::Conv(tile, None)).conv(&mut tuned, &target(), 2);
        assert_eq!(tuned, conv());
    }
}
