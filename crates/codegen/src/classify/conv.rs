//! Recognition of convolutions.

use super::window::{Images, Window};
use super::{EpilogueClass, Nest};
use crate::kernel::ConvShape;
use frazil_ir::TensorData;
use frazil_runtime::expr::Number;
use frazil_runtime::structured::{Access, OutOfBounds, TensorId};

/// A two-dimensional (or one-dimensional, as height 1) convolution with constant weights.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvClass {
    /// Sizes.
    pub shape: ConvShape,
    /// The images, `[batch][in_channels][height][width]`.
    pub input: TensorId,
    /// The weights.
    pub weight: TensorId,
    /// Where weight (output channel of the group, input channel of the group, kernel row, kernel column) of group g lies
    /// in the row-major weights: group, output channel, input channel, row, column.
    pub weight_strides: [i64; 5],
    /// First element of the weights.
    pub weight_offset: i64,
    /// What is done to the sums.
    pub epilogue: EpilogueClass,
}

impl ConvClass {
    /// The weights as `[out_channels][in_channels / groups][kh][kw]`.
    pub fn gather_weights(&self, weight: &TensorData) -> Vec<f32> {
        let bytes = weight.to_bytes();
        let values: Vec<f32> = bytemuck::pod_collect_to_vec(&bytes);
        let s = &self.shape;
        let (ci, co) = (s.in_channels / s.groups, s.out_channels / s.groups);
        let [gs, os, cs, ys, xs] = self.weight_strides;
        let mut out = Vec::with_capacity(values.len());
        for o in 0..s.out_channels {
            for c in 0..ci {
                for y in 0..s.kernel[0] {
                    for x in 0..s.kernel[1] {
                        let at = self.weight_offset + (o / co) * gs + (o % co) * os + c * cs + y * ys + x * xs;
                        out.push(values.get(at as usize).copied().unwrap_or(0.0));
                    }
                }
            }
        }
        out
    }
}

/// Recognises a convolution: one factor slides over images, the other is constant.
pub(super) fn recognise(nest: &Nest<'_>) -> Option<ConvClass> {
    let [a, b] = nest.factors()?;
    with_roles(nest, a, b).or_else(|| with_roles(nest, b, a))
}

fn with_roles(nest: &Nest<'_>, x: &Access, w: &Access) -> Option<ConvClass> {
    nest.graph.as_constant(w.tensor)?;
    if nest.can_leave(w) || !pads_with_zero(nest, x) {
        return None;
    }
    let images = Images::of(nest, x)?;
    let weights = nest.strided(w);
    let [rows, columns] = &images.windows;

    // What is left after images, rows, columns and taps are loops over channels.
    let taken = [
        images.batch_loop,
        rows.position,
        rows.tap,
        columns.position,
        columns.tap,
    ];
    let channel_map = x.map.get(1)?;
    let (mut group, mut output, mut input) = (None, None, None);
    for l in nest.loops().filter(|&l| !taken.contains(&Some(l))) {
        let in_x = channel_map.coefficients[l] != 0;
        let slot = match (nest.is_reduction(l), in_x, weights.strides[l] != 0) {
            (true, true, true) => &mut input,
            (false, true, true) => &mut group,
            (false, false, true) => &mut output,
            _ => return None,
        };
        if slot.replace(l).is_some() {
            return None;
        }
    }
    let extent = |l: Option<usize>| l.map_or(1, |l| nest.extent(l));
    let (groups, group_out, group_in) = (extent(group), extent(output), extent(input));
    let coefficient = |l: Option<usize>| l.map(|l| channel_map.coefficients[l]);
    let reads_all = groups * group_in == images.channels && channel_map.offset == 0;
    if !reads_all || !matches!(coefficient(input), None | Some(1)) || coefficient(group).is_some_and(|c| c != group_in)
    {
        return None;
    }
    // Taps must go through the weights, and images and positions must not.
    let stride = |l: Option<usize>| l.map_or(0, |l| weights.strides[l]);
    let fixed = [images.batch_loop, rows.position, columns.position];
    if fixed.iter().any(|&l| stride(l) != 0)
        || untouched_tap(rows, &weights.strides)
        || untouched_tap(columns, &weights.strides)
    {
        return None;
    }
    let shape = ConvShape {
        batch: images.batch,
        in_channels: images.channels,
        out_channels: groups * group_out,
        groups,
        input: images.both(|w| w.input),
        output: images.both(|w| w.output),
        kernel: images.both(|w| w.taps),
        stride: images.both(|w| w.stride),
        padding: images.both(|w| w.padding),
        dilation: images.both(|w| w.dilation),
    };
    // The result must be [batch][group][channel][row][column] in memory.
    let [oh, ow] = shape.output;
    let plane = oh * ow;
    let expected = [
        (images.batch_loop, shape.out_channels * plane),
        (group, group_out * plane),
        (output, plane),
        (rows.position, ow),
        (columns.position, 1),
    ];
    if expected.iter().any(|&(l, t)| l.is_some_and(|l| nest.result[l] != t)) {
        return None;
    }
    let mut channel = vec![0; nest.parallel];
    if let Some(l) = group {
        channel[l] = group_out;
    }
    if let Some(l) = output {
        channel[l] = 1;
    }
    Some(ConvClass {
        shape,
        input: x.tensor,
        weight: w.tensor,
        weight_strides: [
            stride(group),
            stride(output),
            stride(input),
            stride(rows.tap),
            stride(columns.tap),
        ],
        weight_offset: weights.offset,
        epilogue: nest.epilogue(&channel, None)?,
    })
}

fn untouched_tap(window: &Window, weight_strides: &[i64]) -> bool {
    window.tap.is_some_and(|l| weight_strides[l] == 0)
}

/// True when reads outside of the operand, if there are any, give 0.
fn pads_with_zero(nest: &Nest<'_>, x: &Access) -> bool {
    match x.out_of_bounds {
        OutOfBounds::Value(Number::Int(0) | Number::Float(0.0)) => true,
        _ => !nest.can_leave(x),
    }
}
