//! Choices among kernels by measurement: the analytical choice stands unless another one was clearly faster on this processor.
//!
//! `Tuning::measure` runs the matrix products and convolutions of a plan one by one, each in the few forms that its family names as alternatives. What is
//! found is kept by what the kernel computes, so that it serves all models; lowering asks for it ([`LowerOptions::tuning`](crate::LowerOptions)).

#[cfg(feature = "llvm")]
mod compare;
#[cfg(feature = "llvm")]
mod measure;

#[cfg(feature = "llvm")]
pub use compare::{Comparison, Comparisons, Variant};

use crate::kernel::{Conv, ConvTile, Epilogue, Gemm, GemmTile, KernelSpec, Winograd};
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

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
            if let Some(found) = conv.alternatives(target.machine).into_iter().find(chosen) {
                *conv = found;
            }
        }
    }

    /// Gives a matrix product the blocking that was the fastest.
    pub(crate) fn gemm(&self, gemm: &mut Gemm, target: &Target, threads: usize) {
        let spec = KernelSpec::Gemm(gemm.clone());
        if let Some(Choice::Gemm(tile)) = self.choice(&spec, target, threads) {
            let chosen = |g: &Gemm| g.tile == tile;
            if let Some(found) = gemm.alternatives(target.machine).into_iter().find(chosen) {
                *gemm = found;
            }
        }
    }

    fn choice(&self, spec: &KernelSpec, target: &Target, threads: usize) -> Option<Choice> {
        // Nothing is looked for where nothing was measured.
        let (_, key) = (!self.kernels.is_empty()).then(|| question(spec, target, threads))??;
        *self.kernels.get(&key)?
    }
}

/// The kernel as the analysis would have it, without its epilogue, and the name of what it computes; `None` for one without a choice.
fn question(spec: &KernelSpec, target: &Target, threads: usize) -> Option<(KernelSpec, String)> {
    let bare = match spec {
        KernelSpec::Conv(c) => {
            let plain = c.input_shape().is_none();
            let own = Conv::on_lattice(c.shape, c.lattice, plain, Epilogue::none(), target.machine);
            KernelSpec::Conv(Conv {
                input: c.input,
                output_batch_stride: c.output_batch_stride,
                ..own
            })
        }
        KernelSpec::Gemm(g) => KernelSpec::Gemm(Gemm {
            tile: GemmTile::choose(g.batch_count(), [g.m, g.n, g.k], target.machine),
            epilogue: Epilogue::none(),
            ..g.clone()
        }),
        _ => return None,
    };
    let key = format!("{} {} {threads} {bare:?}", target.cpu, target.machine.name);
    Some((bare, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ConvShape;
    use crate::target::{AVX512, ZEN5};

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
        Conv::new(shape, false, Epilogue::none(), target().machine)
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
            .alternatives(target().machine)
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

        let gemm = || Gemm::linear(40, 200, 300, Epilogue::none(), target().machine);
        let other = gemm().alternatives(target().machine).pop().expect("there are others");
        let chosen = tuning(KernelSpec::Gemm(gemm()), Choice::Gemm(other.tile));
        let mut tuned = gemm();
        chosen.gemm(&mut tuned, &target(), 2);
        assert_eq!(tuned, other);
        assert_ne!(tuned, gemm());
    }

    #[test]
    fn measurements_on_another_machine_do_not_count() {
        let of = |machine| Target {
            machine,
            ..Target::new("x86-64-v4", "")
        };
        let gemm = |target: &Target| KernelSpec::Gemm(Gemm::linear(40, 20, 30, Epilogue::none(), target.machine));
        let keys = [of(&AVX512), of(&ZEN5)].map(|target| question(&gemm(&target), &target, 2).map(|q| q.1));
        assert_ne!(keys[0], keys[1]);
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
