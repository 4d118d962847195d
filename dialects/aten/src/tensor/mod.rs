//! Operators on tensors, one family a file.

mod activation;
mod arithmetic;
mod contraction;
mod convert;
mod convolution;
mod create;
mod embedding;
mod gather;
mod indexing;
mod interpolate;
mod join;
mod math;
mod movement;
mod normalization;
mod pooling;
mod reduction;
mod softmax;
mod sorting;
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
        contraction::PROGRAMS,
        convert::PROGRAMS,
        convolution::PROGRAMS,
        create::PROGRAMS,
        gather::PROGRAMS,
        interpolate::PROGRAMS,
        join::PROGRAMS,
        movement::PROGRAMS,
        normalization::PROGRAMS,
        pooling::PROGRAMS,
        reduction::PROGRAMS,
        softmax::PROGRAMS,
        views::PROGRAMS,
    ];
    for (form, name, build) in programs.into_iter().flatten() {
        registry.program(*form, name, *build);
    }
    registry.kernels(convert::KERNELS);
    registry.kernels(create::KERNELS);
    registry.kernels(embedding::KERNELS);
    registry.kernels(indexing::KERNELS);
    registry.kernels(movement::KERNELS);
    registry.kernels(sorting::KERNELS);
    registry.kernels(views::KERNELS);
    for names in [embedding::FIXED_SIZES, indexing::FIXED_SIZES, sorting::FIXED_SIZES] {
        registry.fixed_sizes(names);
    }
    registry.eager(convert::EAGER);
    registry.eager(indexing::EAGER);
    registry.eager(views::EAGER);
}
