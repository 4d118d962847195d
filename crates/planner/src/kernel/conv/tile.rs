//! Register tiles of convolutions.

use super::Grouping;
use crate::kernel::sizes::div_ceil;
use crate::kernel::{Axis, RowTiling};
use crate::target::Machine;
use frazil_tensor_ir::pattern::ConvShape;
use smallvec::SmallVec;

/// Register tile of a convolution, and the rows of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvTile<N = i64> {
    /// Number of output columns.
    pub columns: i64,
    /// Number of vectors of output channels.
    pub vectors: i64,
    /// Number of channel blocks, or units of groups, that are accumulated in registers before their sum is added to the partial result in memory.
    pub channel_blocks: N,
    /// Number of output rows of a task.
    pub rows: N,
}

impl ConvTile {
    /// Returns the tile with the least estimated time for `shape`. If `flat` is true, rows may be joined.
    pub(super) fn choose(shape: &ConvShape, plain_input: bool, flat: bool, machine: &Machine) -> ConvTile {
        let best = ConvTile::estimates(shape, plain_input, flat, machine).min_by(|a, b| a.0.total_cmp(&b.0));
        let (_, columns, vectors) = best.unwrap_or((0.0, 1, 1));
        ConvTile::of(shape, plain_input, flat, machine, columns, vectors)
    }

    /// Returns a tile as [`ConvTile::choose`] does, but one of a few register tiles. Its number of channels does not depend on the size of images. Sums are
    /// bit-equal.
    pub(super) fn for_any_size(shape: &ConvShape, plain_input: bool, flat: bool, machine: &Machine) -> ConvTile {
        let own = ConvTile::choose(shape, plain_input, flat, machine);
        let vectors = ConvTile::vectors_for_any_size(shape, plain_input, flat, machine);
        let (columns, _) = ConvTile::columns_for_any_size(shape, plain_input, flat, machine, vectors);
        ConvTile {
            channel_blocks: own.channel_blocks,
            ..ConvTile::of(shape, plain_input, flat, machine, columns, vectors)
        }
    }

    /// Returns the number of vectors of output channels with the least estimated time for images of several sizes, relative to the best for each size. The same
    /// channels of tiles suit all of them: packed weights depend on it, and are shared by all sizes.
    fn vectors_for_any_size(shape: &ConvShape, plain_input: bool, flat: bool, machine: &Machine) -> i64 {
        // The sides of the outputs of networks on images, of which the smallest waste most. Images with plain channels are large.
        let sides = if plain_input { &[LARGE][..] } else { &[7, 14, 28, LARGE] };
        let numbers = ConvTile::numbers_of_vectors(shape, machine);
        let mut totals: SmallVec<[(f64, i64); 4]> = numbers.map(|vectors| (0.0, vectors)).collect();
        if let [(_, only)] = totals[..] {
            return only;
        }
        for side in sides {
            let shape = with_side(shape, *side);
            let time = |vectors| ConvTile::columns_for_any_size(&shape, plain_input, flat, machine, vectors).1;
            let times: SmallVec<[f64; 4]> = totals.iter().map(|(_, vectors)| time(*vectors)).collect();
            let least = times.iter().copied().fold(f64::INFINITY, f64::min);
            for ((total, _), time) in totals.iter_mut().zip(times) {
                *total += time / least;
            }
        }
        let best = totals.iter().min_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or(1, |(_, vectors)| *vectors)
    }

    /// Returns the number of columns of a tile with `vectors` vectors of output channels, one of a few numbers, and the estimated time of a row of outputs.
    fn columns_for_any_size(
        shape: &ConvShape,
        plain_input: bool,
        flat: bool,
        machine: &Machine,
        vectors: i64,
    ) -> (i64, f64) {
        let length = |[height, width]: [i64; 2]| if flat { height * width } else { width };
        let row = Axis {
            input: length(shape.input),
            output: length(shape.output),
            ..Axis::of(shape, 1)
        };
        let grouping = ConvTile::grouping(shape, plain_input, machine.vector.lanes, vectors);
        let most = grouping.most_columns(machine.vector.registers, vectors);
        let most = most.min(machine.conv.tile_columns);
        let time = |columns: i64| tile_time(shape, machine, columns, vectors);
        let columns = RowTiling::choose(&row, most, time);
        let tiles = div_ceil(row.output.max(1), columns) * div_ceil(shape.out_channels, machine.vector.lanes * vectors);
        (columns, tiles as f64 * time(columns))
    }

    /// Returns the possible numbers of vectors of output channels.
    fn numbers_of_vectors(shape: &ConvShape, machine: &Machine) -> impl Iterator<Item = i64> + use<> {
        let block = machine.vector.lanes;
        let out_blocks = div_ceil(shape.out_channels, block);
        let (groups, co) = (shape.groups, shape.out_channels / shape.groups.max(1));
        let fits = move |vectors: &i64| {
            out_blocks % vectors == 0 && (groups <= 1 || *vectors == 1 || co % (vectors * block) == 0)
        };
        (1..=4).filter(fits)
    }

    /// Returns the estimated time with each register tile, and its numbers of columns and of vectors of output channels.
    pub(super) fn estimates(
        shape: &ConvShape,
        plain_input: bool,
        flat: bool,
        machine: &Machine,
    ) -> impl Iterator<Item = (f64, i64, i64)> {
        let (vector, parameters) = (machine.vector, machine.conv);
        let block = vector.lanes;
        let out_blocks = div_ceil(shape.out_channels, block);
        let width = match flat {
            true => shape.output[0] * shape.output[1],
            false => shape.output[1],
        };
        ConvTile::numbers_of_vectors(shape, machine).flat_map(move |vectors| {
            let grouping = ConvTile::grouping(shape, plain_input, block, vectors);
            let most = grouping
                .most_columns(vector.registers, vectors)
                .min(parameters.tile_columns)
                .min(width)
                .max(1);
            (1..=most).map(move |columns| {
                let time = |columns: i64| tile_time(shape, machine, columns, vectors);
                let (full, tail) = (width / columns, width % columns);
                let mut cost = full as f64 * time(columns);
                if tail > 0 {
                    cost = (cost + time(tail)) * parameters.second_tile;
                }
                (cost * (out_blocks / vectors) as f64, columns, vectors)
            })
        })
    }

    fn grouping(shape: &ConvShape, plain_input: bool, block: i64, vectors: i64) -> Grouping {
        let input_block = if plain_input { shape.in_channels } else { block };
        Grouping::of(shape, vectors * block, input_block, plain_input)
    }

    /// Returns the tile with `columns` columns and `vectors` vectors of output channels, and a suitable number of rows.
    pub(super) fn of(
        shape: &ConvShape,
        plain_input: bool,
        flat: bool,
        machine: &Machine,
        columns: i64,
        vectors: i64,
    ) -> ConvTile {
        let (block, parameters) = (machine.vector.lanes, &machine.conv);
        let out_blocks = div_ceil(shape.out_channels, block);
        let width = match flat {
            true => shape.output[0] * shape.output[1],
            false => shape.output[1],
        };
        let grouping = ConvTile::grouping(shape, plain_input, block, vectors);
        // Chains of more than about 4 · 16 · 9 multiply-adds lose accuracy compared with a pairwise sum.
        let taps = shape.kernel[0] * shape.kernel[1];
        let channels = grouping.channels() * taps;
        // The weights of a chain should stay in L1 for all tiles of a row.
        let in_l1 = parameters.l1_weight_bytes / (channel_bytes(taps, vectors * block) * block).max(1);
        let channel_blocks = match grouping {
            Grouping::One { .. } if plain_input => 1,
            Grouping::One { .. } => (36 / taps.max(1)).min(in_l1).clamp(1, 16),
            // Each lane multiplies the channels of one group only.
            Grouping::Side { .. } => 1,
            Grouping::Apart { groups, .. } => (36 * block / channels.max(1)).clamp(1, 16) * groups,
        };
        let channel_blocks = channel_blocks.min(grouping.units().max(1));
        let [height, width] = match flat {
            true => pointwise_rows(width, columns, parameters.pointwise_rows),
            false => shape.output,
        };
        // The partial sums of a task's rows should stay in L1. If the chain between two accesses to them is long, a cache further away is sufficient.
        let row_bytes = width * vectors * block * 4;
        let bytes = match taps > 1 {
            true => parameters.long_partial_bytes,
            false => parameters.partial_bytes,
        };
        let in_cache = bytes / row_bytes.max(1);
        // There should be enough tasks for a few threads; each block of rows reads all of its channels' weights again.
        let wanted = match mostly_weights(shape) || taps > 1 {
            true => parameters.heavy_tasks,
            false => parameters.tasks,
        };
        let for_threads = height * (out_blocks / vectors) * shape.batch / wanted.max(1);
        let rows = in_cache.min(for_threads).clamp(1, height.max(1));
        ConvTile {
            columns,
            vectors,
            channel_blocks,
            rows,
        }
    }
}

/// Returns the estimated cycles of a tile for one tap and one input channel.
fn tile_time(shape: &ConvShape, machine: &Machine, columns: i64, vectors: i64) -> f64 {
    let (block, parameters) = (machine.vector.lanes, machine.conv);
    let taps = shape.kernel[0] * shape.kernel[1];
    // The weights of a step are loaded from a cache further away than L1 if there are more weights than inputs, or if the weights of one block of channels fill
    // L1. This is repeated for each tile of columns.
    let far = channel_bytes(taps, vectors * block) * block > parameters.l1_weight_bytes;
    let of_weights = match (mostly_weights(shape), far) {
        (true, _) => parameters.far_weight_cycles,
        (_, true) => parameters.l2_weight_cycles,
        _ => parameters.l1_weight_cycles,
    };
    let input = parameters.column_cycles * columns as f64;
    machine.ports.tile_step(columns, vectors) + input + of_weights * vectors as f64
}

/// The side of images so large that their size makes no difference to the choice of a tile.
const LARGE: i64 = 1 << 12;

/// Returns `shape` with images so large that their size makes no difference to the choice of a tile.
pub(super) fn large_images(shape: &ConvShape) -> ConvShape {
    with_side(shape, LARGE)
}

/// Returns `shape` with one image, whose output has `side` rows and columns. Dimensions of one row or column stay.
fn with_side(shape: &ConvShape, side: i64) -> ConvShape {
    let input = |i: usize| match shape.input[i] {
        1 => 1,
        _ => side * shape.stride[i],
    };
    let output = |i: usize| match shape.input[i] {
        1 => shape.output[i],
        _ => side,
    };
    ConvShape {
        batch: 1,
        input: [input(0), input(1)],
        output: [output(0), output(1)],
        ..*shape
    }
}

/// Returns the size of the weights of one input channel for `width` output channels, in bytes.
fn channel_bytes(taps: i64, width: i64) -> i64 {
    taps * width * 4
}

/// Returns true if there are more weights than input elements.
fn mostly_weights(shape: &ConvShape) -> bool {
    let weights = shape.macs() / (shape.batch * shape.output[0] * shape.output[1]).max(1);
    weights > shape.batch * shape.in_channels * shape.input[0] * shape.input[1]
}

/// Returns `[rows, columns]` for `pixels` pixels, with at most `most` rows. Each row consists of whole tiles of `tile_columns` columns. Only the last row may
/// have fewer columns, and end with a part of a tile.
pub(super) fn pointwise_rows(pixels: i64, tile_columns: i64, most: i64) -> [i64; 2] {
    let tiles = div_ceil(pixels, tile_columns.max(1)).max(1);
    let of_row = div_ceil(tiles, most.max(1));
    match div_ceil(tiles, of_row) {
        1 => [1, pixels],
        rows => [rows, of_row * tile_columns],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{AVX512, SAPPHIRE_RAPIDS};

    fn shape(channels: i64, kernel: i64, side: i64) -> ConvShape {
        ConvShape {
            batch: 1,
            in_channels: channels,
            out_channels: channels,
            groups: 1,
            input: [side; 2],
            output: [side; 2],
            kernel: [kernel; 2],
            stride: [1; 2],
            padding: [kernel / 2; 2],
            dilation: [1; 2],
        }
    }

    #[test]
    fn one_layout_of_weights_suits_images_of_all_sizes() {
        for machine in [&SAPPHIRE_RAPIDS, &AVX512] {
            for (channels, kernel) in [(64, 3), (256, 1), (512, 3), (48, 1)] {
                let flat = kernel == 1;
                let tile = |side| ConvTile::for_any_size(&shape(channels, kernel, side), false, flat, machine);
                let of_large = tile(500).vectors;
                assert!(
                    (2..100).all(|side| tile(side).vectors == of_large),
                    "{channels} channels"
                );
            }
            // Rows of 7 and 14 columns are whole tiles.
            for side in [7, 14] {
                let tile = ConvTile::for_any_size(&shape(512, 3, side), false, false, machine);
                assert_eq!(side % tile.columns, 0, "{tile:?}");
            }
        }
    }
}
