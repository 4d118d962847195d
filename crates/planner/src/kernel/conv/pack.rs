//! Packing of the weights of convolutions in tiles of output channels.

use crate::kernel::pack::in_chunks;
use std::ops::{Deref, Range};

/// Number of weights of one output channel that are packed at a time. Their places in a tile are `width` elements apart. The cache lines of these places stay
/// in L1 until all output channels of the tile have been written.
const PART: usize = 64;

/// Layout of packed weights. Each tile contains the weights of `width` adjacent output channels: for each input channel and tap, a vector with one element per
/// output channel.
pub(super) struct TileLayout {
    /// Number of output channels.
    pub(super) out_channels: usize,
    /// Number of input channels of a group.
    pub(super) in_channels: usize,
    /// Number of taps of the window.
    pub(super) taps: usize,
    /// Number of output channels of a tile.
    pub(super) width: usize,
    /// Number of elements of a tile.
    pub(super) elements: usize,
    /// Distance from one tap of an input channel to the next, in elements.
    pub(super) tap_stride: usize,
    /// Whether the place of a weight in a tile depends on the group of its output channel.
    pub(super) has_groups: bool,
}

impl TileLayout {
    /// Packs weights `[out_channels][in_channels][taps]` into `packed`, which must be zero-initialised. `place(o, i)` returns the offset in the tile, in
    /// elements, of the vector with the weights of input channel `i` and the first tap. Input channel `i` is relative to the group of output channel `o`.
    ///
    /// `weights` returns a range of the weights. It is called once for each tile, so that weights in a file are read, scaled and packed while they are in a
    /// cache, by several threads.
    pub(super) fn pack<W: Deref<Target = [f32]>>(
        &self,
        weights: &(impl Fn(Range<usize>) -> W + Sync),
        place: impl Fn(usize, usize) -> usize + Sync,
        packed: &mut [f32],
    ) {
        let of_channel = self.in_channels * self.taps;
        in_chunks(packed, self.elements, |tile, packed| {
            let first = tile * self.width;
            let filled = self.out_channels.saturating_sub(first).min(self.width);
            let weights = weights(first * of_channel..(first + filled) * of_channel);
            let distinct = if self.has_groups { filled } else { filled.min(1) };
            let places = (0..distinct).flat_map(|o| (0..self.in_channels).map(move |i| (first + o, i)));
            let places: Vec<usize> = places.map(|(o, i)| place(o, i)).collect();
            let of_part = (PART / self.taps.max(1)).max(1);
            for start in (0..self.in_channels).step_by(of_part) {
                let part = start..(start + of_part).min(self.in_channels);
                for o in 0..filled {
                    let row = if self.has_groups { o * self.in_channels } else { 0 };
                    let places = places.get(row + part.start..row + part.end).unwrap_or_default();
                    let from = o * of_channel + part.start * self.taps;
                    let weights = weights.get(from..).unwrap_or_default().chunks(self.taps.max(1));
                    for (place, taps) in places.iter().zip(weights) {
                        let to = packed.get_mut(place + o..).unwrap_or_default();
                        for (to, w) in to.iter_mut().step_by(self.tap_stride.max(1)).zip(taps) {
                            *to = *w;
                        }
                    }
                }
            }
        });
    }
}
