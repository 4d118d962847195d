//! The units ([`Grouping`]) that a tile of output channels reads, and the multiply-adds with them.

use super::{Geometry, Task};
use crate::emit::builder::{Emitter, Int, Val};
use frazil_planner::kernel::Grouping;
use frazil_planner::target::Machine;
use std::ops::Range;

/// Maximum number of channels of a group for which shuffling vectors is fast: it takes one instruction within 128 bits.
const IN_ORDER: i64 = 4;

/// A unit of the current task's input.
pub(super) struct Unit<'c> {
    /// Offset of the unit's first channel in the image, in elements.
    pub(super) input: Int<'c>,
    /// Number of channels of the unit.
    channels: Int<'c>,
    /// Number of channels that an iteration processes.
    unroll: i64,
    /// The lanes to which the channels contribute; `None` means all lanes.
    mask: Option<Val<'c>>,
}

/// Returns the unit of `task` with the index `number`.
pub(super) fn unit<'c>(e: &mut Emitter<'c>, g: &Geometry<'c>, task: &Task<'c>, number: Int<'c>) -> Unit<'c> {
    match g.grouping {
        Grouping::One { .. } => {
            let (channels, unroll) = channels_of_block(e, g, number);
            Unit {
                input: e.mul(number, g.block_stride),
                channels,
                unroll,
                mask: None,
            }
        }
        Grouping::Side { span, channels } => {
            let channel = e.mul(task.tile, span);
            Unit {
                input: place_of_channel(e, g, channel),
                channels: Int::Const(channels),
                unroll: 1,
                mask: None,
            }
        }
        Grouping::Apart { groups, pieces, .. } => {
            let at = e.delinearize(number, &[groups, pieces]);
            part_of_group(e, g, task, (at[0], at[1]), pieces)
        }
    }
}

/// Returns the unit with those channels of a group that are in one block of the input. `group` is the index of the group in the tile, `piece` the index of the
/// block among the blocks of the group. The unit may have no channels.
fn part_of_group<'c>(
    e: &mut Emitter<'c>,
    g: &Geometry<'c>,
    task: &Task<'c>,
    (group, piece): (Int<'c>, Int<'c>),
    pieces: i64,
) -> Unit<'c> {
    let (ib, (ci, co)) = (g.input_block, g.channels_of_group);
    let outputs = co * g.conv.shape.groups;
    let first_output = e.mul(task.tile, g.width);
    let first_group = e.div(first_output, co);
    let group = e.add(first_group, group);
    let first = e.mul(group, ci);
    let (mut from, mut channels) = (first, Int::Const(ci));
    if ci % ib == 0 {
        from = e.linear([(1, first), (ib, piece)], 0);
        channels = Int::Const(ib);
    } else if pieces > 1 {
        let block = e.div(first, ib);
        let block = e.add(block, piece);
        let (begin, end) = (e.mul(block, ib), e.linear([(ib, block)], ib));
        let end_of_group = e.add(first, ci);
        let end = e.min(end, end_of_group);
        from = e.max(first, begin);
        channels = e.sub(end, from);
    }
    let mut mask = None;
    if co % g.width != 0 {
        let lane = e.mul(group, co);
        let lane = e.sub(lane, first_output);
        mask = Some(e.mask_from(lane, co, g.width));
        if g.width % co != 0 || outputs % g.width != 0 {
            // Some tiles have fewer groups.
            let last = e.add(first_output, g.width - 1);
            let last = e.min(last, outputs - 1);
            let last = e.div(last, co);
            let left = e.sub(last, group);
            let left = e.linear([(ci, left)], ci);
            channels = e.min(channels, left);
        }
    }
    Unit {
        input: place_of_channel(e, g, from),
        channels,
        unroll: common_divisor(ci, ib, e.target.machine),
        mask,
    }
}

/// Returns the offset of an input channel in its image, in elements.
fn place_of_channel<'c>(e: &mut Emitter<'c>, g: &Geometry<'c>, channel: Int<'c>) -> Int<'c> {
    let ib = g.input_block;
    let (block, lane) = (e.div(channel, ib), e.rem(channel, ib));
    e.linear([(g.block_stride, block), (g.channel_stride, lane)], 0)
}

/// Returns the number of channels that exist in block `block`, and the number of channels that an iteration processes.
fn channels_of_block<'c>(e: &mut Emitter<'c>, g: &Geometry<'c>, block: Int<'c>) -> (Int<'c>, i64) {
    let ib = g.input_block;
    if g.conv.shape.in_channels.known() == Some(ib) || g.channel_step == ib {
        return (Int::Const(ib), e.target.machine.conv.unroll.max(1));
    }
    let done = e.mul(block, ib);
    let left = e.sub(g.conv.shape.in_channels, done);
    (e.min(left, ib), common_divisor(g.channel_step, ib, e.target.machine))
}

/// Returns the largest supported number of channels per iteration that divides both `a` and `b`.
fn common_divisor(a: i64, b: i64, machine: &Machine) -> i64 {
    let (unroll, divides) = (machine.conv.unroll, |u: &i64| *u > 0 && a % u == 0 && b % u == 0);
    [unroll, unroll / 2].into_iter().find(divides).unwrap_or(1)
}

/// Emits the multiply-adds of one tap: for each channel of the unit, multiplies the vectors of weights with the input of each column. Returns the accumulators.
#[expect(clippy::too_many_arguments, reason = "the innermost loop depends on all of them")]
pub(super) fn channel_loop<'c>(
    e: &mut Emitter<'c>,
    g: &Geometry<'c>,
    input: Val<'c>,
    (weights, next): (Val<'c>, Option<(Val<'c>, i64)>),
    unit: &Unit<'c>,
    columns: Range<i64>,
    acc: &[Val<'c>],
    check: Option<Int<'c>>,
) -> Vec<Val<'c>> {
    let (lanes, vectors) = (g.conv.block, g.conv.tile.vectors);
    let step = g.conv.shape.stride[1] * g.column_stride;
    if let Grouping::Side { span, channels } = g.grouping {
        return side_by_side(e, g, (input, weights), (span, channels), columns, acc, check);
    }
    let zero = unit.mask.map(|_| e.f32_constant(0.0, Some(lanes)));
    let machine = e.target.machine;
    let (parameters, line_elements) = (&machine.conv, machine.caches.line_elements());
    let (first_channel, ahead) = (input, lines_ahead(g, unit, &columns, machine));
    let body = |e: &mut Emitter<'c>, c: Int<'c>, count: i64, acc: &[Val<'c>]| {
        let offset = e.mul(c, g.channel_stride);
        let input = e.f32_offset(input, offset);
        let offset = e.mul(c, g.width);
        let weights = e.f32_offset(weights, offset);
        let mut acc = acc.to_vec();
        if parameters.prefetch > 0 {
            for line in 0..(count * g.width).div_euclid(line_elements) {
                let address = e.f32_offset(weights, parameters.prefetch + line * line_elements);
                e.prefetch(address, 3);
            }
        }
        if let Some((next, parts)) = next {
            let offset = e.mul(c, g.width / parts);
            let next = e.f32_offset(next, offset);
            for line in 0..(count * g.width / line_elements / parts).max(1) {
                let address = e.f32_offset(next, line * line_elements);
                e.prefetch(address, 2);
            }
        }
        if let Some(lines) = ahead {
            let part = e.mul(c, step / parameters.unroll.max(1) * lines);
            let units = e.mul(g.block_stride, parameters.units_ahead);
            let offset = e.add(part, units);
            let ahead = e.f32_offset(first_channel, offset);
            for line in 0..lines {
                let address = e.f32_offset(ahead, line * step);
                e.prefetch(address, 3);
            }
        }
        for c in 0..count {
            let mut w = Vec::new();
            for v in 0..vectors {
                let address = e.f32_offset(weights, c * g.width + v * lanes);
                w.push(e.load_vector(address, lanes));
            }
            // A constant distance is added to the addresses as a displacement.
            let (input, channel) = match e.mul(g.channel_stride, c) {
                Int::Const(channel) => (input, channel),
                channel => (e.f32_offset(input, channel), 0),
            };
            for j in columns.clone() {
                let offset = j * step + channel;
                let x = match check {
                    None => {
                        let address = e.f32_offset(input, offset);
                        e.load_broadcast(address, lanes)
                    }
                    Some(column) => {
                        let x = checked_load(e, g, (input, offset), None, column, j);
                        e.broadcast(x, lanes)
                    }
                };
                // Lanes of other groups get zero, whose product with their zero weights is zero.
                let x = match (unit.mask, zero) {
                    (Some(mask), Some(zero)) => e.select(mask, x, zero),
                    _ => x,
                };
                for v in 0..vectors {
                    let i = (j * vectors + v) as usize;
                    acc[i] = e.fma(x, w[v as usize], acc[i]);
                }
            }
        }
        acc
    };
    let unroll = unit.unroll;
    match unit.channels {
        Int::Const(n) => {
            let full = n / unroll * unroll;
            let acc = e.for_loop(0, full, unroll, acc, |e, c, acc| body(e, c, unroll, acc));
            if n > full {
                body(e, Int::Const(full), n - full, &acc)
            } else {
                acc
            }
        }
        n => e.for_loop(0, n, unroll, acc, |e, c, acc| body(e, c, unroll, acc)),
    }
}

/// Returns the number of cache lines of a later unit's input that an unrolled iteration over channels prefetches; `None` if prefetching is not worthwhile. A
/// unit has one line for each column, and its iterations divide the lines among themselves. With several taps, prefetching is not worthwhile, because all taps
/// but the first find their input in the cache. With tiles of one vector, there are as many loads as multiply-adds, so further loads would take time.
fn lines_ahead(g: &Geometry<'_>, unit: &Unit<'_>, columns: &Range<i64>, machine: &Machine) -> Option<i64> {
    let unroll = machine.conv.unroll;
    // With fewer units, the loop ends before the prefetched lines are used.
    let few = 4 * machine.conv.units_ahead;
    let lanes = g.conv.block;
    let line_a_column = g.column_stride == lanes && lanes == machine.caches.line_elements();
    let one_tap = g.conv.shape.kernel == [1, 1] && matches!(g.grouping, Grouping::One { .. });
    let lines = ((columns.end - columns.start) * unroll + lanes - 1) / lanes;
    let has_time = g.conv.tile.vectors > 1;
    (line_a_column && one_tap && has_time && unit.unroll == unroll && g.units.known().is_none_or(|units| units >= few))
        .then_some(lines)
}

/// Emits multiply-adds as [`channel_loop`] does, for packed groups ([`Grouping::Side`]): in each step, each lane reads a channel of its own group. The vector
/// of inputs is shuffled from a vector with the channels of all groups, or blended from one channel of each group.
fn side_by_side<'c>(
    e: &mut Emitter<'c>,
    g: &Geometry<'c>,
    (input, weights): (Val<'c>, Val<'c>),
    (span, channels): (i64, i64),
    columns: Range<i64>,
    acc: &[Val<'c>],
    check: Option<Int<'c>>,
) -> Vec<Val<'c>> {
    let lanes = g.conv.block;
    let step = g.conv.shape.stride[1] * g.column_stride;
    let (_, co) = g.channels_of_group;
    let mut acc = acc.to_vec();
    let mut weight = |c: i64| {
        let address = e.f32_offset(weights, c * g.width);
        e.load_vector(address, lanes)
    };
    let w: Vec<_> = (0..channels).map(&mut weight).collect();
    let mut masks = Vec::new();
    if channels > IN_ORDER {
        masks = (1..lanes / co)
            .map(|group| e.mask_from(Int::Const(group * co), co, lanes))
            .collect();
    }
    for j in columns {
        let load = |e: &mut Emitter<'c>, channel: i64, count: Option<i64>| match check {
            None => {
                let address = e.f32_offset(input, j * step + channel);
                let ty = e.shaped("f32", count);
                e.load(address, ty, 4)
            }
            Some(column) => checked_load(e, g, (input, j * step + channel), count, column, j),
        };
        let at = &mut acc[j as usize];
        if channels <= IN_ORDER {
            let x = load(e, 0, Some(span));
            for (c, &w) in (0..).zip(&w) {
                let own = e.shuffle(x, x, (0..lanes).map(|lane| lane / co * channels + c));
                *at = e.fma(own, w, *at);
            }
            continue;
        }
        for (c, &w) in (0..).zip(&w) {
            let mut own = load(e, c, None);
            own = e.broadcast(own, lanes);
            for (group, mask) in (1..).zip(&masks) {
                let x = load(e, group * channels + c, None);
                let x = e.broadcast(x, lanes);
                own = e.select(*mask, x, own);
            }
            *at = e.fma(own, w, *at);
        }
    }
    acc
}

/// Loads the input of column `j`: one channel, or a vector of `lanes` channels. The value is zero if `column + j · stride` lies outside of the row.
fn checked_load<'c>(
    e: &mut Emitter<'c>,
    g: &Geometry<'c>,
    (input, offset): (Val<'c>, i64),
    lanes: Option<i64>,
    column: Int<'c>,
    j: i64,
) -> Val<'c> {
    let x = e.add(column, j * g.conv.shape.stride[1]);
    // One unsigned comparison tests both bounds.
    let inside = e.compare("ult", x, g.input[1]);
    let ty = e.shaped("f32", lanes);
    let value = e.if_else(
        inside,
        &[ty],
        |e| {
            let address = e.f32_offset(input, offset);
            vec![e.load(address, ty, 4)]
        },
        |e| vec![e.f32_constant(0.0, lanes)],
    );
    value[0]
}
