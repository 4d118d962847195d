//! Selection of kernel variants by measurement: the cost model's variant is used unless another variant was clearly faster on this processor.
//!
//! The code generator measures the variants of each kernel of a plan. The key of a result is the computation of the kernel, so that results serve
//! all models. Kernel selection reads them ([`LowerOptions::tuning`](crate::LowerOptions::tuning)).

use crate::kernel::{Kernel, KernelSpec};
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// Maximum number of bytes of a file of measurements: enough for a hundred thousand kernels.
const MOST_BYTES: u64 = 64 << 20;

/// Results of measurements, by kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// The fastest variant for each computation and number of threads; `None` if it is the cost model's choice.
    kernels: BTreeMap<String, Option<String>>,
}

impl Tuning {
    /// Reads a file from [`Tuning::write`]. Returns no measurements if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, or has another format.
    pub fn read(path: &Path) -> io::Result<Tuning> {
        match frazil_syntax::read_regular(path, MOST_BYTES) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Tuning::default()),
            Err(e) => Err(e),
        }
    }

    /// Writes the measurements in JSON.
    ///
    /// # Errors
    /// If the file cannot be written; then it is unchanged.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut output = frazil_syntax::OutputFile::replacing(path)?;
        // In one piece: the file is not buffered.
        output.file().write_all(&serde_json::to_vec_pretty(self)?)?;
        output.commit()
    }

    /// Returns the number of measured kernels, and the number of those for which the cost model's choice was not the fastest.
    pub fn counts(&self) -> (usize, usize) {
        (self.kernels.len(), self.kernels.values().flatten().count())
    }

    /// Returns true when the kernel of this name has been measured.
    pub fn is_known(&self, name: &str) -> bool {
        self.kernels.contains_key(name)
    }

    /// Records the variant that was the fastest of the kernel of this name; `None` for the cost model's choice.
    pub fn record(&mut self, name: String, variant: Option<String>) {
        self.kernels.insert(name, variant);
    }

    /// Returns the variant of `kernel` that was the fastest, if it is not the cost model's choice.
    pub(crate) fn variant(&self, kernel: &dyn Kernel, target: &Target, threads: usize) -> Option<KernelSpec> {
        // The name is computed only if there are measurements.
        let variants = kernel.variants().filter(|_| !self.kernels.is_empty())?;
        let (_, name) = measured_kernel(kernel, target, threads)?;
        let wanted = self.kernels.get(&name)?.as_ref()?;
        // A file may name a variant that does not exist.
        let is_wanted = |k: &KernelSpec| k.variants().is_some_and(|v| v.variant() == *wanted);
        variants.alternatives(target.machine).into_iter().find(is_wanted)
    }
}

/// Returns the kernel as it is measured, which is the cost model's choice without an epilogue, and its name: the computation, the machine, and the number of
/// threads. `None` for a kernel without variants.
pub fn measured_kernel(kernel: &dyn Kernel, target: &Target, threads: usize) -> Option<(KernelSpec, String)> {
    let bare = kernel.variants()?.baseline(target.machine);
    let key = format!("{} {} {threads} {bare:?}", target.cpu, target.machine.name);
    Some((bare, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Conv, ConvShape, ConvTile, Epilogue, Gemm, Variants};
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

    /// Measurements by which `variant` is the fastest for `kernel` on two threads.
    fn tuning(kernel: &dyn Kernel, variant: &dyn Variants) -> Tuning {
        let (_, name) = measured_kernel(kernel, &target(), 2).expect("a kernel with variants");
        let mut tuning = Tuning::default();
        tuning.record(name, Some(variant.variant()));
        tuning
    }

    #[test]
    fn a_kernel_takes_the_variant_that_was_chosen_for_it() {
        let analytical = conv();
        let other = Conv::alternatives(&analytical, target().machine)
            .pop()
            .expect("there are others");
        let chosen = tuning(&analytical, &other);
        assert_eq!(chosen.variant(&conv(), &target(), 2), Some(other.clone().into()));
        // What was measured on two threads says nothing of one.
        assert_eq!(chosen.variant(&conv(), &target(), 1), None);
        // The variant is the same kernel: it is asked for under the same name.
        let names = [&analytical, &other].map(|c| measured_kernel(c, &target(), 2).map(|q| q.1));
        assert_eq!(names[0], names[1]);

        let gemm = Gemm::linear(40, 200, 300, Epilogue::none(), target().machine);
        let other = gemm.alternatives(target().machine).pop().expect("there are others");
        let chosen = tuning(&gemm, &other);
        assert_eq!(chosen.variant(&gemm, &target(), 2), Some(other.into()));
    }

    #[test]
    fn variants_have_different_names() {
        let gemm = Gemm::linear(40, 200, 300, Epilogue::none(), target().machine);
        for kernel in [KernelSpec::from(conv()), gemm.into()] {
            let variants = kernel.variants().expect("has variants");
            let mut all = variants.alternatives(target().machine);
            all.push(variants.baseline(target().machine));
            let name = |k: &KernelSpec| k.variants().map(Variants::variant);
            let names: std::collections::BTreeSet<_> = all.iter().map(name).collect();
            assert_eq!(names.len(), all.len());
        }
    }

    #[test]
    fn measurements_on_another_machine_do_not_count() {
        let of = |machine| Target {
            machine,
            ..Target::new("x86-64-v4", "")
        };
        let gemm = |target: &Target| Gemm::linear(40, 20, 30, Epilogue::none(), target.machine);
        let keys = [of(&AVX512), of(&ZEN5)].map(|target| measured_kernel(&gemm(&target), &target, 2).map(|q| q.1));
        assert_ne!(keys[0], keys[1]);
    }

    #[test]
    fn variants_that_do_not_exist_are_ignored() {
        let tile = ConvTile {
            columns: 1000,
            ..conv().tile
        };
        let other = Conv { tile, ..conv() };
        assert_eq!(tuning(&conv(), &other).variant(&conv(), &target(), 2), None);
    }
}
