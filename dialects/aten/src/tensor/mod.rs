//! Operators on tensors, one family a file.

mod activation;
mod arithmetic;
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
use frazil_runtime::op::{Form, ProgramFn, ResultLayout};
use frazil_runtime::pointwise::Pointwise;
#[cfg(not(feature = "linalg"))]
use without_linalg as linalg;

/// A row of a pointwise table.
type PointwiseRow = (&'static str, Pointwise);

/// A row of a table of programs.
type ProgramRow = (Form, &'static str, ProgramFn);

/// Why `operator` cannot be run in this build.
#[cfg(any(test, not(all(feature = "fft", feature = "linalg"))))]
fn needs_feature(operator: &str, feature: &str) -> frazil_runtime::op::OpError {
    frazil_runtime::op::OpError::Unsupported(format!(
        "{operator}: this build of Frazil is without the feature `{feature}`"
    ))
}

/// What is computed place by place although no formula says so.
const ELEMENTWISE: &[&str] = &[
    "aten::addr",
    "aten::angle",
    "aten::div",
    "aten::flip",
    "aten::fliplr",
    "aten::flipud",
    "aten::index_put",
    "aten::put",
];

/// Operators on images, which keep their channels innermost.
const ON_IMAGES: &[&str] = &[
    "aten::_convolution",
    "aten::_upsample_bicubic2d_aa",
    "aten::_upsample_bilinear2d_aa",
    "aten::_upsample_lanczos2d_aa",
    "aten::_upsample_nearest_exact1d",
    "aten::_upsample_nearest_exact2d",
    "aten::_upsample_nearest_exact3d",
    "aten::adaptive_avg_pool1d",
    "aten::adaptive_avg_pool2d",
    "aten::adaptive_avg_pool3d",
    "aten::adaptive_max_pool1d",
    "aten::adaptive_max_pool2d",
    "aten::avg_pool1d",
    "aten::avg_pool2d",
    "aten::avg_pool3d",
    "aten::channel_shuffle",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::conv_transpose1d",
    "aten::conv_transpose2d",
    "aten::conv_transpose3d",
    "aten::convolution",
    "aten::max_pool1d",
    "aten::max_pool1d_with_indices",
    "aten::max_pool2d",
    "aten::max_pool2d_with_indices",
    "aten::max_pool2d_with_indices_backward",
    "aten::max_pool3d",
    "aten::max_pool3d_with_indices",
    "aten::max_unpool2d",
    "aten::native_channel_shuffle",
    "aten::pixel_shuffle",
    "aten::reflection_pad2d",
    "aten::replication_pad2d",
    "aten::upsample_bicubic2d",
    "aten::upsample_bilinear2d",
    "aten::upsample_linear1d",
    "aten::upsample_nearest1d",
    "aten::upsample_nearest2d",
    "aten::upsample_nearest3d",
    "aten::upsample_trilinear3d",
];

/// Other names of operators.
const ALIASES: &[(&str, &str)] = &[
    ("aten::_adaptive_avg_pool2d", "aten::adaptive_avg_pool2d"),
    ("aten::_adaptive_avg_pool3d", "aten::adaptive_avg_pool3d"),
    ("aten::_aminmax", "aten::aminmax"),
    ("aten::_index_put_impl", "aten::index_put"),
    ("aten::_logcumsumexp", "aten::logcumsumexp"),
    ("aten::_stack", "aten::stack"),
    ("aten::_unsafe_index", "aten::index"),
    ("aten::_unsafe_index_put", "aten::index_put"),
    ("aten::arctan2", "aten::atan2"),
    ("aten::det", "aten::linalg_det"),
    ("aten::divide", "aten::div"),
    ("aten::inverse", "aten::linalg_inv"),
    ("aten::linalg_matmul", "aten::matmul"),
    ("aten::matrix_exp", "aten::linalg_matrix_exp"),
    ("aten::multiply", "aten::mul"),
    ("aten::native_channel_shuffle", "aten::channel_shuffle"),
    ("aten::negative", "aten::neg"),
    ("aten::orgqr", "aten::linalg_householder_product"),
    ("aten::slogdet", "aten::linalg_slogdet"),
    ("aten::special_gammainc", "aten::igamma"),
    ("aten::special_gammaincc", "aten::igammac"),
    ("aten::special_i1", "aten::special_modified_bessel_i1"),
    ("aten::special_logsumexp", "aten::logsumexp"),
    ("aten::special_modified_bessel_i0", "aten::i0"),
    ("aten::special_multigammaln", "aten::mvlgamma"),
    ("aten::special_polygamma", "aten::polygamma"),
    ("aten::special_round", "aten::round"),
    ("aten::special_sinc", "aten::sinc"),
    ("aten::subtract", "aten::sub"),
    ("aten::true_divide", "aten::div"),
];

/// Adds the tensor operators.
pub(crate) fn register(registry: &mut Registry) {
    for (name, entry) in [arithmetic::POINTWISE, math::POINTWISE, activation::POINTWISE]
        .into_iter()
        .flatten()
    {
        registry.pointwise(name, entry.clone());
    }
    let programs = [
        arithmetic::PROGRAMS,
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
        padding::PROGRAMS,
        pooling::PROGRAMS,
        reduction::PROGRAMS,
        softmax::PROGRAMS,
        splitting::PROGRAMS,
        views::PROGRAMS,
        weight_norm::PROGRAMS,
    ];
    for (form, name, build) in programs.into_iter().flatten() {
        registry.program(*form, name, *build);
    }
    registry.kernels(complex::KERNELS);
    registry.kernels(contraction::KERNELS);
    registry.kernels(convert::KERNELS);
    registry.kernels(create::KERNELS);
    registry.kernels(embedding::KERNELS);
    registry.kernels(fft::KERNELS);
    registry.kernels(grouped::KERNELS);
    registry.kernels(indexing::KERNELS);
    for table in linalg::TABLES {
        registry.kernels(table);
    }
    registry.kernels(movement::KERNELS);
    registry.random_kernels(random::KERNELS);
    registry.kernels(ctc::KERNELS);
    registry.kernels(resample::KERNELS);
    registry.kernels(scans::KERNELS);
    registry.kernels(segments::KERNELS);
    registry.kernels(sets::KERNELS);
    registry.kernels(sorting::KERNELS);
    registry.kernels(special::KERNELS);
    registry.kernels(views::KERNELS);
    for names in [embedding::FIXED_SIZES, indexing::FIXED_SIZES, sorting::FIXED_SIZES] {
        registry.fixed_sizes(names);
    }
    // All of these modules: their results are as large as the operands and numbers say.
    let tables = [fft::KERNELS, grouped::KERNELS, special::KERNELS];
    for kernels in tables.iter().chain(linalg::TABLES) {
        registry.fixed_sizes(&kernels.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
    registry.aliases(ALIASES);
    registry.give_themselves(complex::GIVE_THEMSELVES);
    registry.give_themselves(views::GIVE_THEMSELVES);
    registry.fills(&["aten::fill_", "aten::zero_"]);
    registry.eager(arithmetic::EAGER);
    registry.eager(indexing::EAGER);
    registry.layouts(ResultLayout::Elementwise, ELEMENTWISE);
    // Fills a copy of self that is row-major.
    registry.layouts(ResultLayout::AsComputed, &["aten::masked_fill"]);
    registry.layouts(ResultLayout::ChannelsLast(3), ON_IMAGES);
    registry.layouts(ResultLayout::ChannelsLast(4), &["aten::batch_norm"]);
    registry.eager(complex::EAGER);
    registry.eager(convert::EAGER);
    registry.eager(create::EAGER);
    registry.eager(normalization::EAGER);
    registry.eager(resample::EAGER);
    registry.eager(views::EAGER);
}
