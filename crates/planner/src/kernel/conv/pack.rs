//! Packing of the weights of convolutions in tiles of output channels.

use crate::kernel::pack::{in_chunks, transpose};

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
    /// `read` copies the weights from an element on. It is called once for each tile, so that weights in a file are read, scaled and packed while they are in a
    /// cache, by several threads.
    pub(super) fn pack(
        &self,
        read: &(impl Fn(usize, &mut [f32]) + Sync),
        place: impl Fn(usize, usize) -> usize + Sync,
        packed: &mut [f32],
    ) {
        let of_channel = self.in_channels * self.taps;
        in_chunks(packed, self.elements, |tile, packed, weights| {
            let first = tile * self.width;
            let filled = self.out_channels.saturating_sub(first).min(self.width);
            weights.resize(filled * of_channel, 0.0);
            read(first * of_channel, weights);
            // Channels of one group have the same places.
            let distinct = if self.has_groups { filled } else { filled.min(1) };
            let together = filled.div_ceil(distinct.max(1));
            let taps = |place: usize| (0..self.taps).map(move |tap| place + tap * self.tap_stride);
            for o in 0..distinct {
                let places: Vec<usize> = (0..self.in_channels)
                    .flat_map(|i| taps(place(first + o, i) + o))
                    .collect();
                let weights = weights.get(o * of_channel..).unwrap_or_default();
                transpose(weights, of_channel, together, &places, packed);
            }
        });
    }
}
