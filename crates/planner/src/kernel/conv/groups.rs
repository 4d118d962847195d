//! Grouped convolutions: the input channels that a tile of output channels reads, and the lanes of the tile to which each of them contributes.

use crate::kernel::ConvShape;
use crate::kernel::sizes::div_ceil;

/// Assignment of input channels to the lanes of a tile of output channels.
///
/// A lane must not multiply channels of another group, not even with a weight of zero: zero times infinity is NaN. The input channels of a tile are divided
/// into *units* of a few channels. The kernel processes one unit after the other, and their weights are stored in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// There is one group. The units are the channel blocks of the input, and all lanes read all channels of a unit.
    One {
        /// Number of channel blocks of the input.
        blocks: i64,
        /// Number of channels of a block.
        block: i64,
    },
    /// Packed groups: a tile consists of whole groups, and their input channels are in one block of the input, which is the only unit. In one step, each lane
    /// reads the first channel of its own group, in the next step the second channel, and so on.
    Side {
        /// Number of input channels of all groups of the tile; divides a block.
        span: i64,
        /// Number of input channels of a group.
        channels: i64,
    },
    /// Serial groups: the groups of a tile are processed one after the other, each channel only for the lanes of its group. A unit consists of the channels of
    /// a group that are in one block of the input.
    Apart {
        /// Maximum number of groups of a tile.
        groups: i64,
        /// Maximum number of input blocks that contain channels of one group.
        pieces: i64,
        /// Maximum number of channels of a group in one block.
        channels: i64,
    },
}

impl Grouping {
    /// Returns the grouping for tiles of `width` output channels and an input with blocks of `block` channels. If `plain` is true, the input is NCHW, so that
    /// vectors of its channels cannot be loaded.
    pub fn of(shape: &ConvShape, width: i64, block: i64, plain: bool) -> Grouping {
        if shape.groups <= 1 {
            return Grouping::One {
                blocks: div_ceil(shape.in_channels, block),
                block,
            };
        }
        let (ci, co) = channels_of_group(shape);
        let (width, block) = (width.max(1), block.max(1));
        let span = width / co * ci;
        if !plain && width >= 2 * co && width % co == 0 && span >= 2 && block % span == 0 {
            return Grouping::Side { span, channels: ci };
        }
        let tiles = div_ceil(shape.out_channels, width);
        let groups_of = |t: i64| {
            let last = ((t + 1) * width).min(shape.out_channels) - 1;
            last / co - t * width / co + 1
        };
        let groups = match co % width {
            0 => 1,
            _ => (0..tiles).map(groups_of).max().unwrap_or(1),
        };
        let pieces_of = |g: i64| div_ceil((g + 1) * ci, block) - g * ci / block;
        let pieces = match ci % block {
            0 => ci / block,
            _ => (0..shape.groups).map(pieces_of).max().unwrap_or(1),
        };
        Grouping::Apart {
            groups,
            pieces,
            channels: ci.min(block),
        }
    }

    /// Returns the number of units of a tile.
    pub fn units(&self) -> i64 {
        match *self {
            Grouping::One { blocks, .. } => blocks,
            Grouping::Side { .. } => 1,
            Grouping::Apart { groups, pieces, .. } => groups * pieces,
        }
    }

    /// Returns the number of rows of weights that a unit has for each tap. A row has one weight for each output channel of the tile.
    pub fn channels(&self) -> i64 {
        match *self {
            Grouping::One { block, .. } => block,
            Grouping::Side { channels, .. } | Grouping::Apart { channels, .. } => channels,
        }
    }

    /// Returns the maximum number of columns of a tile with `vectors` vectors of output channels for which the accumulators, weights and inputs fit into
    /// `registers` vector registers.
    pub fn most_columns(&self, registers: i64, vectors: i64) -> i64 {
        match *self {
            // One register for the broadcast input, and one for each vector of weights.
            Grouping::One { .. } => (registers - vectors - 1) / vectors,
            // Registers for the weights, and for shuffle indices or the vectors that are blended.
            Grouping::Side { channels, .. } => registers - channels - channels.min(4) - 2,
            Grouping::Apart { groups: 1, .. } => (registers - vectors - 2) / vectors,
            // Registers for a few inputs with masked lanes.
            Grouping::Apart { .. } => (registers - vectors - 5) / vectors,
        }
    }
}

/// Returns the position of a weight among the weights of its tile: the index of the unit, and the index of the channel in the unit. The weight is that of
/// output channel `o` and of input channel `i`, counted from the first channel of the group. Tiles have `width` output channels, and blocks of the input
/// `block` channels.
pub fn place_of_weight(
    shape: &ConvShape,
    grouping: Grouping,
    (width, block): (i64, i64),
    o: i64,
    i: i64,
) -> (i64, i64) {
    let (ci, co) = channels_of_group(shape);
    match grouping {
        Grouping::One { block, .. } => (i / block, i % block),
        Grouping::Side { .. } => (0, i),
        Grouping::Apart { pieces, .. } => {
            let (group, first) = (o / co, o / width * width / co);
            let channel = group * ci + i;
            let piece = channel / block - group * ci / block;
            let from = (channel / block * block).max(group * ci);
            ((group - first) * pieces + piece, channel - from)
        }
    }
}

/// Returns the numbers of input and output channels of a group.
pub fn channels_of_group(shape: &ConvShape) -> (i64, i64) {
    let groups = shape.groups.max(1);
    (
        (shape.in_channels / groups).max(1),
        (shape.out_channels / groups).max(1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(groups: i64, ci: i64, co: i64) -> ConvShape {
        ConvShape {
            batch: 1,
            in_channels: groups * ci,
            out_channels: groups * co,
            groups,
            input: [8, 8],
            output: [8, 8],
            kernel: [3, 3],
            stride: [1, 1],
            padding: [1, 1],
            dilation: [1, 1],
        }
    }

    #[test]
    fn narrow_groups_side_by_side() {
        let side = |g, ci, co| Grouping::of(&shape(g, ci, co), 16, 16, false);
        assert_eq!(side(32, 4, 4), Grouping::Side { span: 16, channels: 4 });
        assert_eq!(side(32, 1, 2), Grouping::Side { span: 8, channels: 1 });
        let apart = |groups, pieces, channels| Grouping::Apart {
            groups,
            pieces,
            channels,
        };
        assert_eq!(side(32, 8, 4), apart(4, 1, 8));
        assert_eq!(side(4, 24, 24), apart(2, 2, 16));
        assert_eq!(side(2, 32, 32), apart(1, 2, 16));
        assert_eq!(side(3, 5, 7), apart(3, 1, 5));
        assert_eq!(Grouping::of(&shape(2, 2, 8), 16, 4, true), apart(2, 1, 2));
    }

    #[test]
    fn weights_have_places_of_their_own() {
        for (g, ci, co) in [
            (32, 4, 4),
            (32, 8, 4),
            (4, 24, 24),
            (3, 5, 7),
            (5, 17, 33),
            (2, 32, 64),
            (1, 40, 20),
        ] {
            let s = shape(g, ci, co);
            let grouping = Grouping::of(&s, 16, 16, false);
            let mut taken = std::collections::HashSet::new();
            for o in 0..s.out_channels {
                for i in 0..ci {
                    let (unit, channel) = place_of_weight(&s, grouping, (16, 16), o, i);
                    assert!((0..grouping.units()).contains(&unit) && (0..grouping.channels()).contains(&channel));
                    assert!(taken.insert((o, unit, channel)), "{s:?}: {o} {i}");
                }
            }
        }
    }
}
