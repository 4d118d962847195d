//! Operators on tensors, one family a file.

mod activation;
mod arithmetic;
mod complex;
mod contraction;
mod convert;
mod convolution;
mod create;
mod einsum;
mod embedding;
mod gather;
mod indexing;
mod interpolate;
mod join;
mod math;
mod movement;
mod normalization;
mod pooling;
mod random;
mod reduction;
mod scans;
mod sets;
mod softmax;
mod sorting;
mod splitting;
mod views;

use frazil_runtime::Registry;
use frazil_runtime::op::{Form, ProgramFn};
use frazil_runtime::pointwise::Pointwise;

/// A row of a pointwise table.
type PointwiseRow = (&'static str, Pointwise);

/// A row of a table of programs.
type ProgramRow = (Form, &'static str, ProgramFn);

/// Adds the tensor operators.
pub(crate) fn register(registry: &mut Registry) {
    for (name, entry) in [arithmetic::POINTWISE, math::POINTWISE, activation::POINTWISE]
        .into_iter()
        .flatten()
    {
        registry.pointwise(name, *entry);
    }
    let programs = [
        complex::PROGRAMS,
        contraction::PROGRAMS,
        convert::PROGRAMS,
        convolution::PROGRAMS,
        create::PROGRAMS,
        gather::PROGRAMS,
        einsum::PROGRAMS,
        interpolate::PROGRAMS,
        join::PROGRAMS,
        movement::PROGRAMS,
        normalization::PROGRAMS,
        pooling::PROGRAMS,
        reduction::PROGRAMS,
        softmax::PROGRAMS,
        splitting::PROGRAMS,
        views::PROGRAMS,
    ];
    for (form, name, build) in programs.into_iter().flatten() {
        registry.program(*form, name, *build);
    }
    registry.kernels(complex::KERNELS);
    registry.kernels(convert::KERNELS);
    registry.kernels(create::KERNELS);
    registry.kernels(embedding::KERNELS);
    registry.kernels(indexing::KERNELS);
    registry.kernels(movement::KERNELS);
    registry.kernels(random::KERNELS);
    registry.kernels(scans::KERNELS);
    registry.kernels(sets::KERNELS);
    registry.kernels(sorting::KERNELS);
    registry.kernels(views::KERNELS);
    for names in [embedding::FIXED_SIZES, indexing::FIXED_SIZES, sorting::FIXED_SIZES] {
        registry.fixed_sizes(names);
    }
    registry.eager(convert::EAGER);
    registry.eager(indexing::EAGER);
    registry.eager(complex::EAGER);
    registry.eager(convert::EAGER);
    registry.eager(create::EAGER);
    registry.eager(normalization::EAGER);
    registry.eager(views::EAGER);
}
