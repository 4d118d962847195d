//! Linear algebra based on the `nalgebra` crate. It requires the feature `linalg`.

mod decompositions;
mod eigen;
mod ldl;
mod lu;
mod reflections;
mod rotations;

use frazil_runtime::entry::Row;

/// The tables of the linear algebra operators.
pub(super) const TABLES: &[&[Row]] = &[
    decompositions::ENTRIES,
    eigen::ENTRIES,
    ldl::ENTRIES,
    lu::ENTRIES,
    reflections::ENTRIES,
];
