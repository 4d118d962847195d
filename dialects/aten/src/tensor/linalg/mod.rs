//! Linear algebra: what stands on the `nalgebra` crate. Compiled with the feature `linalg`.

mod decompositions;
mod eigen;
mod ldl;
mod lu;
mod reflections;
mod rotations;

use frazil_runtime::op::KernelFn;

/// The tables of the family.
pub(super) const TABLES: &[&[(&str, KernelFn)]] = &[
    decompositions::KERNELS,
    eigen::KERNELS,
    ldl::KERNELS,
    lu::KERNELS,
    reflections::KERNELS,
];
