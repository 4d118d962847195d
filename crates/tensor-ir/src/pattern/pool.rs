//! Recognition of pooling.

use super::nest::{EpilogueClass, Nest};
use super::window::{Images, loop_of};
use frazil_runtime::structured::{Combine, OutOfBounds, TensorId};

/// The reduction of a window that slides over images. A mean is a sum with a division in the epilogue.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolClass {
    /// `Max` or `Add`.
    pub combine: Combine,
    /// The images, `[batch][channels][height][width]`.
    pub input: TensorId,
    /// Number of images.
    pub batch: i64,
    /// Number of channels.
    pub channels: i64,
    /// Input height and width.
    pub input_size: [i64; 2],
    /// Output height and width.
    pub output_size: [i64; 2],
    /// Window height and width.
    pub kernel: [i64; 2],
    /// Stride.
    pub stride: [i64; 2],
    /// Padding above and to the left.
    pub padding: [i64; 2],
    /// Dilation.
    pub dilation: [i64; 2],
    /// The epilogue.
    pub epilogue: EpilogueClass,
}

impl PoolClass {
    /// Returns whether a window of several elements has several positions; otherwise whole rows or images are reduced.
    pub fn slides(&self) -> bool {
        (0..2).any(|i| self.kernel[i] > 1 && (self.output_size[i] > 1 || self.padding[i] > 0))
    }
}

/// Recognises a maximum or a sum over windows.
pub(super) fn recognise(nest: &Nest<'_>) -> Option<PoolClass> {
    let x = nest.single_read()?;
    let combine = nest.s.combine.filter(|c| matches!(c, Combine::Max | Combine::Add))?;
    let neutral = match (x.out_of_bounds, combine) {
        (OutOfBounds::Value(v), Combine::Max) => v.as_f64() == f64::NEG_INFINITY,
        (OutOfBounds::Value(v), _) => v.as_f64() == 0.0,
        (OutOfBounds::Never, _) => true,
    };
    if !neutral && nest.can_leave(x) {
        return None;
    }
    let images = Images::of(nest, x)?;
    let channel_loop = loop_of(nest, x.map.get(1)?)?;
    if channel_loop.map_or(1, |l| nest.extent(l)) != images.channels {
        return None;
    }
    let [rows, columns] = &images.windows;
    let taken = [
        images.batch_loop,
        channel_loop,
        rows.position,
        rows.tap,
        columns.position,
        columns.tap,
    ];
    if nest.loops().any(|l| !taken.contains(&Some(l))) {
        return None;
    }
    let plane = rows.output * columns.output;
    let expected = [
        (images.batch_loop, images.channels * plane),
        (channel_loop, plane),
        (rows.position, columns.output),
        (columns.position, 1),
    ];
    if expected.iter().any(|&(l, t)| l.is_some_and(|l| nest.result[l] != t)) {
        return None;
    }
    let mut channel = vec![0; nest.parallel];
    if let Some(l) = channel_loop {
        channel[l] = 1;
    }
    Some(PoolClass {
        combine,
        input: x.tensor,
        batch: images.batch,
        channels: images.channels,
        input_size: images.both(|w| w.input),
        output_size: images.both(|w| w.output),
        kernel: images.both(|w| w.taps),
        stride: images.both(|w| w.stride),
        padding: images.both(|w| w.padding),
        dilation: images.both(|w| w.dilation),
        epilogue: nest.epilogue(&channel, None)?,
    })
}
