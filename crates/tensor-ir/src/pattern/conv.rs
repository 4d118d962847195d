//! Recognition of convolutions.

use super::nest::{EpilogueClass, Nest};
use super::window::{Images, Window};
use crate::affine::as_loop;
use crate::graph::TensorGraph;
use frazil_runtime::expr::{ExprOp, Number};
use frazil_runtime::structured::{Access, OutOfBounds, TensorId};

/// Sizes of a two-dimensional convolution; height before width. A one-dimensional one has height 1.
///
/// The window of output row y starts at input row y · stride − padding. Elements outside of the input are zero. Padding at the bottom and right
/// follows from `output`.
///
/// `N` is the type of sizes that can be arguments of the code. It is `i64` in plans, and a constant or an emitted value in the code generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvShape<N = i64> {
    /// Number of images.
    pub batch: N,
    /// Input channels, of all groups.
    pub in_channels: N,
    /// Output channels, of all groups.
    pub out_channels: N,
    /// Number of groups; divides both channel counts.
    pub groups: i64,
    /// Input height and width.
    pub input: [N; 2],
    /// Output height and width.
    pub output: [N; 2],
    /// Kernel height and width.
    pub kernel: [i64; 2],
    /// Stride.
    pub stride: [i64; 2],
    /// Zero rows above, zero columns to the left.
    pub padding: [i64; 2],
    /// Dilation.
    pub dilation: [i64; 2],
}

impl<N> ConvShape<N> {
    /// Returns the shape with `f` applied to the numbers of images and channels and to the sizes of the images, in one order for all shapes. Groups and windows
    /// stay the same.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> ConvShape<M> {
        ConvShape {
            batch: f(&self.batch),
            in_channels: f(&self.in_channels),
            out_channels: f(&self.out_channels),
            groups: self.groups,
            input: self.input.each_ref().map(&mut *f),
            output: self.output.each_ref().map(f),
            kernel: self.kernel,
            stride: self.stride,
            padding: self.padding,
            dilation: self.dilation,
        }
    }
}

impl ConvShape {
    /// True for a 1×1 kernel at stride 1 without padding.
    pub fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1] && self.padding == [0, 0] && self.input == self.output
    }

    /// True when each output channel reads exactly the input channel of the same number.
    pub fn is_depthwise(&self) -> bool {
        self.groups == self.in_channels && self.groups == self.out_channels && self.groups > 1
    }

    /// Multiply-adds of the convolution, padding included.
    pub fn macs(&self) -> i64 {
        let out = self.batch * self.out_channels * self.output[0] * self.output[1];
        out * (self.in_channels / self.groups.max(1)) * self.kernel[0] * self.kernel[1]
    }
}

/// A two-dimensional (or one-dimensional, as height 1) convolution with constant weights.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvClass {
    /// Sizes.
    pub shape: ConvShape,
    /// The images, `[batch][in_channels][height][width]`.
    pub input: TensorId,
    /// The weights.
    pub weight: TensorId,
    /// Strides of the row-major weights, in elements: of the group, the output channel and the input channel within a group, the kernel row, the
    /// kernel column.
    pub weight_strides: [i64; 5],
    /// Offset of the first element of the weights.
    pub weight_offset: i64,
    /// The epilogue of the sums.
    pub epilogue: EpilogueClass,
    /// Zero insertion (input dilation) of the images, as in a transposed convolution.
    pub spread: Option<Spread>,
}

/// One phase of a convolution with zero insertion: the results at regular distances.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The convolution of the images without inserted zeros.
    pub conv: ConvClass,
    /// Row and column of its first result.
    pub first: [i64; 2],
    /// Distance of its results, in rows and in columns.
    pub step: [i64; 2],
}

impl ConvClass {
    /// Splits the convolution into phases that read no inserted zeros. All results of one phase, which are `step` apart, use the same taps of the kernel.
    pub fn phases(&self) -> Vec<Phase> {
        let Some(spread) = &self.spread else {
            return vec![Phase {
                conv: self.clone(),
                first: [0, 0],
                step: [1, 1],
            }];
        };
        let step = spread.step;
        let firsts = (0..step[0]).flat_map(|y| (0..step[1]).map(move |x| [y, x]));
        let exists = |first: &[i64; 2]| (0..2).all(|i| first[i] < self.shape.output[i]);
        let phase = |first: [i64; 2]| {
            let mut conv = self.clone();
            conv.input = spread.source;
            conv.spread = None;
            for i in 0..2 {
                let s = &mut conv.shape;
                let at = |tap: i64| first[i] - s.padding[i] + tap * s.dilation[i];
                let taps: Vec<i64> = (0..s.kernel[i]).filter(|&t| at(t) % step[i] == 0).collect();
                let (tap, next) = (taps.first().copied().unwrap_or(0), taps.get(1).copied());
                let apart = next.map_or(1, |n| n - tap);
                let padding = -(at(tap) / step[i]);
                s.dilation[i] = next.map_or(1, |n| (at(n) - at(tap)) / step[i]);
                s.padding[i] = padding;
                s.kernel[i] = taps.len() as i64;
                s.input[i] = spread.size[i];
                s.output[i] = (s.output[i] - first[i] + step[i] - 1) / step[i];
                conv.weight_offset += tap * conv.weight_strides[3 + i];
                conv.weight_strides[3 + i] *= apart;
            }
            Phase { conv, first, step }
        };
        firsts.filter(exists).map(phase).collect()
    }
}

/// Recognises a convolution: a sum of products in which one factor is a sliding window over images and the other is constant.
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

    // The loops that are not over images, rows, columns or taps are over channels.
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
    // The weights depend on the taps, and not on images and positions.
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
        spread: Spread::of(nest.graph, x.tensor).filter(|_| shape.stride == [1, 1] && !shape.is_depthwise()),
    })
}

/// Zero insertion: images with zeros between their elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The nest that inserts the zeros.
    pub nest: TensorId,
    /// The images without inserted zeros.
    pub source: TensorId,
    /// Height and width without inserted zeros.
    pub size: [i64; 2],
    /// Distance of the original elements, in rows and in columns.
    pub step: [i64; 2],
}

impl Spread {
    /// Recognises zero insertion: a nest over `[batch][channels]` and two loops for each spatial dimension, over the elements and over the places from
    /// one element to the next. Only the first of these places is read from another tensor.
    fn of(graph: &TensorGraph, images: TensorId) -> Option<Spread> {
        let nest = graph.root(images);
        let s = graph.as_nest(nest)?;
        let [access] = s.inputs.as_slice() else { return None };
        let copies = matches!(s.body.nodes(), [n] if n.op == ExprOp::Input(0));
        let zero = matches!(
            access.out_of_bounds,
            OutOfBounds::Value(Number::Int(0) | Number::Float(0.0))
        );
        let identity = access.map.iter().enumerate().all(|(d, m)| as_loop(m) == Some(d));
        if s.combine.is_some() || !copies || !zero || !identity || s.domain != s.output.sizes {
            return None;
        }
        let (from, to) = (&graph.shape(access.tensor).sizes, &graph.shape(images).sizes);
        let (mut size, mut step) = ([1; 2], [1; 2]);
        let spatial = to.len().checked_sub(2).filter(|n| (1..=2).contains(n))?;
        if from.len() != s.domain.len() || from.len() != 2 + 2 * spatial || from[..2] != to[..2] {
            return None;
        }
        for i in 0..spatial {
            let (elements, places) = (s.domain[2 + 2 * i], s.domain[3 + 2 * i]);
            if from[2 + 2 * i..4 + 2 * i] != [elements, 1] || to[2 + i] != elements * places {
                return None;
            }
            (size[2 - spatial + i], step[2 - spatial + i]) = (elements, places);
        }
        Some(Spread {
            nest,
            source: access.tensor,
            size,
            step,
        })
    }
}

fn untouched_tap(window: &Window, weight_strides: &[i64]) -> bool {
    window.tap.is_some_and(|l| weight_strides[l] == 0)
}

/// Returns whether reads outside of the operand, if there are any, have the value 0.
fn pads_with_zero(nest: &Nest<'_>, x: &Access) -> bool {
    match x.out_of_bounds {
        OutOfBounds::Value(Number::Int(0) | Number::Float(0.0)) => true,
        _ => !nest.can_leave(x),
    }
}
