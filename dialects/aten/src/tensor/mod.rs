//! Operators on tensors, one family per file.

mod activation;
mod arithmetic;
mod comparison;
mod complex;
mod contraction;
mod convert;
mod convolution;
mod create;
mod ctc;
mod einsum;
mod embedding;
mod fft;
mod gather;
mod grouped;
mod indexed_reduction;
mod indexing;
mod interpolate;
mod join;
#[cfg(feature = "linalg")]
mod linalg;
mod math;
mod movement;
mod normalization;
mod padding;
mod pooling;
mod random;
mod reduction;
mod resample;
mod scans;
mod segments;
mod sets;
mod softmax;
mod sorting;
mod special;
mod special_functions;
mod splitting;
mod views;
mod weight_norm;
#[cfg(any(test, not(feature = "linalg")))]
mod without_linalg;

use frazil_runtime::Registry;
use frazil_runtime::entry::{Row, ScalarConversion, ScalarVariant};
#[cfg(not(feature = "linalg"))]
use without_linalg as linalg;

/// Returns the error for an operator that cannot be run because the build lacks a feature.
#[cfg(any(test, not(all(feature = "fft", feature = "linalg"))))]
fn needs_feature(operator: &str, feature: &str) -> frazil_runtime::op::OpError {
    frazil_runtime::op::OpError::Unsupported(format!(
        "{operator}: this build of Frazil is without the feature `{feature}`"
    ))
}

/// Returns the conversion by which the overload with a tensor at `position` computes the overload with a scalar there.
const fn by_tensor(position: usize, conversion: ScalarConversion) -> ScalarVariant {
    ScalarVariant {
        overload: "Tensor",
        position,
        conversion,
    }
}

/// The tables of entries, one for each family of operators.
const TABLES: &[&[Row]] = &[
    activation::ENTRIES,
    arithmetic::ENTRIES,
    comparison::ENTRIES,
    complex::ENTRIES,
    contraction::ENTRIES,
    convert::ENTRIES,
    convolution::ENTRIES,
    create::ENTRIES,
    ctc::ENTRIES,
    einsum::ENTRIES,
    embedding::ENTRIES,
    fft::ENTRIES,
    gather::ENTRIES,
    grouped::ENTRIES,
    indexing::ENTRIES,
    interpolate::ENTRIES,
    join::ENTRIES,
    math::ENTRIES,
    movement::ENTRIES,
    normalization::ENTRIES,
    padding::ENTRIES,
    pooling::ENTRIES,
    random::ENTRIES,
    reduction::ENTRIES,
    resample::ENTRIES,
    scans::ENTRIES,
    segments::ENTRIES,
    sets::ENTRIES,
    softmax::ENTRIES,
    sorting::ENTRIES,
    special::ENTRIES,
    splitting::ENTRIES,
    views::ENTRIES,
    weight_norm::ENTRIES,
];

/// Registers the tensor operators.
pub(crate) fn register(registry: &mut Registry) {
    for table in TABLES.iter().chain(linalg::TABLES) {
        registry.register_all(table);
    }
}

/// Returns the rows of all tables.
#[cfg(test)]
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    TABLES.iter().chain(linalg::TABLES).copied().flatten()
}
