//! Reads through a window that slides over rows and columns, in convolutions and pooling.

use super::nest::Nest;
use crate::affine::range;
use frazil_runtime::structured::{Access, Affine};

/// One sliding dimension: the coordinate is `stride · position − padding + dilation · tap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The parallel loop over positions; none when there is one position.
    pub position: Option<usize>,
    /// The reduction loop over taps; none when there is one tap.
    pub tap: Option<usize>,
    /// Number of positions.
    pub output: i64,
    /// Number of taps.
    pub taps: i64,
    /// Extent of the operand's dimension.
    pub input: i64,
    /// Step of the window.
    pub stride: i64,
    /// Step of the taps.
    pub dilation: i64,
    /// Padding: the first window starts this many positions before the first element of the operand.
    pub padding: i64,
}

impl Window {
    /// Recognises a window in the coordinate map of a dimension of extent `input`.
    pub(super) fn of(nest: &Nest<'_>, map: &Affine, input: i64) -> Option<Window> {
        let mut w = Window {
            position: None,
            tap: None,
            output: 1,
            taps: 1,
            input,
            stride: 1,
            dilation: 1,
            padding: -map.offset,
        };
        for l in nest.loops() {
            let c = map.coefficients[l];
            match (c, nest.is_reduction(l)) {
                (0, _) => {}
                (c, false) if c > 0 && w.position.is_none() => {
                    (w.position, w.output, w.stride) = (Some(l), nest.extent(l), c);
                }
                (c, true) if c > 0 && w.tap.is_none() => {
                    (w.tap, w.taps, w.dilation) = (Some(l), nest.extent(l), c);
                }
                _ => return None,
            }
        }
        (w.padding >= 0).then_some(w)
    }

    /// A dimension of extent 1 that is read at 0: the missing height of one-dimensional data.
    fn unit() -> Window {
        Window {
            position: None,
            tap: None,
            output: 1,
            taps: 1,
            input: 1,
            stride: 1,
            dilation: 1,
            padding: 0,
        }
    }
}

/// The images that a window slides over: batch, channels, and one or two spatial dimensions (height 1 for one).
pub(super) struct Images {
    /// Number of images.
    pub batch: i64,
    /// The parallel loop over images; none when there is one image.
    pub batch_loop: Option<usize>,
    /// Channels of the operand.
    pub channels: i64,
    /// Rows, columns.
    pub windows: [Window; 2],
}

impl Images {
    /// Recognises the images that `access` reads. The dimensions of its operand are batch, channels and the spatial ones. The caller has to check the map of
    /// the channels.
    pub(super) fn of(nest: &Nest<'_>, access: &Access) -> Option<Images> {
        let sizes = nest.sizes(access);
        let (&[batch, channels], spatial) = sizes.split_first_chunk::<2>()?;
        let batch_map = access.map.first()?;
        let batch_loop = loop_of(nest, batch_map)?;
        if batch_loop.map_or(1, |l| nest.extent(l)) != batch {
            return None;
        }
        let window = |i: usize| Window::of(nest, access.map.get(2 + i)?, *spatial.get(i)?);
        let windows = match spatial.len() {
            1 => [Window::unit(), window(0)?],
            2 => [window(0)?, window(1)?],
            _ => return None,
        };
        Some(Images {
            batch,
            batch_loop,
            channels,
            windows,
        })
    }

    /// Returns `f` of the window over rows and of the window over columns.
    pub(super) fn both(&self, f: impl Fn(&Window) -> i64) -> [i64; 2] {
        [f(&self.windows[0]), f(&self.windows[1])]
    }
}

/// Returns the parallel loop whose index `map` is, as `Some(Some(l))`; `Some(None)` if the map is always 0; `None` for any other map.
pub(super) fn loop_of(nest: &Nest<'_>, map: &Affine) -> Option<Option<usize>> {
    let (low, high) = range(map, &nest.s.domain);
    if (low, high) == (0, 0) {
        return Some(None);
    }
    let mut used = nest.loops().filter(|&l| map.coefficients[l] != 0);
    match (used.next(), used.next()) {
        (Some(l), None) if map.coefficients[l] == 1 && map.offset == 0 && !nest.is_reduction(l) => Some(Some(l)),
        _ => None,
    }
}
