//! Targets: the processor that code is generated for.
//!
//! A [`Target`] has LLVM's name and features of a processor, which decide about instructions, and a [`Machine`], whose parameters decide about
//! kernels: tiles, tasks, prefetches. Each machine is a file of this folder.
//!
//! # Add a machine
//!
//! 1. Copy the file of the most similar machine. Give it the names that LLVM has for its processors (`llc -march=x86-64 -mcpu=help`), and
//!    remove these names from the machine that had them before.
//! 2. Set ports and caches from the manufacturer's documentation. Set other parameters only from measurements, and write beside each value what was
//!    measured: the machine, what was varied, and how much slower other values are. Inherit the rest by `..`, and say so.
//! 3. Add the file to [`MACHINES`].
//! 4. Run `make bench-cost-model` on the machine. It compares the chosen variant of each kernel with the alternatives.
//!
//! The parameters are part of all cache keys through the debug form of [`Target`].

mod generic;
mod level;
mod machine;
mod sapphire_rapids;
#[cfg(test)]
mod tests;
mod vector;
mod zen4;
mod zen5;

pub use generic::{AVX2, AVX512, NEON, SSE2};
pub use machine::{
    Caches, ConvParameters, GemmParameters, LoopParameters, Machine, PartitionParameters, Ports, WindowParameters,
    WinogradParameters,
};
pub use sapphire_rapids::SAPPHIRE_RAPIDS;
pub use vector::{InstructionSet, VectorUnit};
pub use zen4::ZEN4;
pub use zen5::ZEN5;

/// All machines, those with measurements first.
pub static MACHINES: [&Machine; 7] = [&SAPPHIRE_RAPIDS, &ZEN4, &ZEN5, &AVX512, &AVX2, &SSE2, &NEON];

/// A processor to generate code for.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// LLVM's name of the processor, for example `znver5` or `x86-64-v3`.
    pub cpu: String,
    /// LLVM's feature string, for example `+avx2,+fma`; may be empty.
    pub features: String,
    /// The machine with the parameters for selecting and emitting kernels. The features include the instructions of its vector unit.
    pub machine: &'static Machine,
}

impl Target {
    /// Returns the processor `cpu` (LLVM's name) with features `features` (LLVM's notation, or empty: those that the name implies).
    ///
    /// The machine is that of the name. If the name has no machine, or the features lack the machine's vector unit, it is the generic machine of the features'
    /// vector unit: AVX-512, AVX2, NEON, or SSE2 if the features mention none of them. See [`Target::is_known`].
    pub fn new(cpu: &str, features: &str) -> Target {
        let has = |f: &str| features.split(',').any(|x| x.strip_prefix('+') == Some(f));
        let named = machine_of(cpu);
        let generic = if ["avx512f", "avx512vl", "avx512dq"].into_iter().all(has) {
            &AVX512
        } else if has("avx2") && has("fma") {
            &AVX2
        } else if has("neon") || cfg!(target_arch = "aarch64") {
            &NEON
        } else {
            &SSE2
        };
        let fits = |m: &&Machine| features.is_empty() || m.vector == generic.vector;
        Target {
            cpu: cpu.to_owned(),
            features: features.to_owned(),
            machine: named.filter(fits).unwrap_or(generic),
        }
    }

    /// Returns true when the features are given, or the name is one that LLVM has for an x86-64 processor. LLVM itself accepts any name, and
    /// silently generates code for the oldest processor if it does not know it.
    pub fn is_known(&self) -> bool {
        !self.features.is_empty() || machine_of(&self.cpu).is_some() || !cfg!(target_arch = "x86_64")
    }

    /// Returns the vector unit.
    pub fn vector(&self) -> VectorUnit {
        self.machine.vector
    }

    /// Returns true when instructions of AVX-512 may be used.
    pub fn has_avx512(&self) -> bool {
        self.vector().instructions == InstructionSet::Avx512
    }

    /// Returns true when instructions of x86-64 may be used: code is always for the architecture that this program is compiled for.
    pub fn is_x86(&self) -> bool {
        cfg!(target_arch = "x86_64") && self.vector().instructions != InstructionSet::Neon
    }
}

/// Returns the machine that LLVM's name of an x86-64 processor implies, if code is for x86-64.
fn machine_of(cpu: &str) -> Option<&'static Machine> {
    let mut machines = MACHINES.into_iter().filter(|_| cfg!(target_arch = "x86_64"));
    machines.find(|m| m.cpus.contains(&cpu))
}
