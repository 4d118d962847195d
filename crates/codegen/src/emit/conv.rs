//! Direct convolution: a register tile of output columns × vectors of output channels, the input broadcast in place.
//!
//! There is no padded copy of the input. Rows above and below it are left out by the bounds of the loop over the kernel's rows;
//! columns to the left and right by emitting the tiles that touch them separately, without the multiply-adds that would
//! read there.

use super::builder::{Emitter, Int, Val};
use super::epilogue::{self, Position};
use super::window::Axis;
use super::{Kernel, prefetch_parts};
use crate::kernel::{ActivationLayout, Conv, EpilogueOperand};
use std::ops::Range;

/// Input channels that one iteration of the innermost loop does. More gains nothing and makes LLVM spill.
const UNROLL: i64 = 4;
/// Elements of weights that are prefetched ahead: far enough for weights that come from memory.
const PREFETCH: i64 = 2048;
/// Weights that are not worth fetching before they are needed.
const FEW_WEIGHTS: i64 = 1 << 16;
/// Tiles at the border that are emitted separately; with more, one tile with checks serves them all.
const MAX_BORDER_TILES: usize = 6;

/// Strides and extents that the emitter works with, all in elements.
struct Geometry {
    conv: Conv,
    /// Rows, columns of input and output: [`Conv::rows_and_columns`].
    input: [i64; 2],
    output: [i64; 2],
    /// Input: distance of channel blocks, rows, columns, channels of a block.
    block_stride: i64,
    row_stride: i64,
    column_stride: i64,
    channel_stride: i64,
    batch_stride: i64,
    /// Output channels of a tile.
    width: i64,
    /// Output: distance of channel blocks, rows, columns.
    plane: i64,
    output_row: i64,
    output_column: i64,
    blocks: i64,
    /// Groups of channel blocks whose sums are kept in registers.
    groups: i64,
}

impl Geometry {
    fn new(conv: &Conv) -> Geometry {
        let s = &conv.shape;
        let (input, output) = (conv.rows_and_columns(s.input), conv.rows_and_columns(s.output));
        let pixels = s.input[0] * s.input[1];
        let b = conv.block;
        let (block_stride, row_stride, column_stride, channel_stride, batch_stride) = match conv.input {
            ActivationLayout::Plain => (0, input[1], 1, pixels, s.in_channels * pixels),
            ActivationLayout::Blocked { batch_stride } => (pixels * b, input[1] * b, b, 1, batch_stride),
        };
        let blocks = conv.blocks_read();
        let output_row = match conv.lattice.is_dense() {
            // Rows may be joined.
            true => output[1],
            false => conv.lattice.step[0] * conv.lattice.image[1],
        };
        Geometry {
            conv: conv.clone(),
            input,
            output,
            block_stride,
            row_stride,
            column_stride,
            channel_stride,
            batch_stride,
            width: b * conv.tile.vectors,
            plane: conv.lattice.image[0] * conv.lattice.image[1] * b,
            output_row: output_row * b,
            output_column: conv.lattice.step[1] * b,
            blocks,
            groups: div_ceil(blocks, conv.tile.channel_blocks),
        }
    }

    fn rows(&self) -> Axis {
        self.axis(0)
    }

    fn columns(&self) -> Axis {
        self.axis(1)
    }

    fn axis(&self, i: usize) -> Axis {
        let s = &self.conv.shape;
        Axis {
            kernel: s.kernel[i],
            stride: s.stride[i],
            padding: s.padding[i],
            dilation: s.dilation[i],
            input: self.input[i],
            output: self.output[i],
        }
    }
}

/// The current task's operands.
struct Task<'c> {
    input: Val<'c>,
    weights: Val<'c>,
    output: Val<'c>,
    operands: Vec<Val<'c>>,
    /// First of the blocks that the task reads.
    first_block: Int<'c>,
    first_row: Int<'c>,
    end_row: Int<'c>,
    partial: Option<Val<'c>>,
}

/// Emits all tasks of `conv`.
pub fn emit(kernel: &mut Kernel<'_>, conv: &Conv) {
    let g = Geometry::new(conv);
    let tile = conv.tile;
    let partial = (g.groups > 1).then(|| kernel.e.stack(tile.rows * g.output[1] * g.width * 4));
    kernel.for_each_task(|e, buffers, task| {
        let row_blocks = div_ceil(g.output[0], tile.rows);
        let at = e.delinearize(task, &[conv.shape.batch, conv.channel_tiles(), row_blocks]);
        let task = locate(e, &g, buffers, [at[0], at[1], at[2]], partial);
        e.for_each(0, g.groups, 1, |e, group| {
            e.for_each(task.first_row, task.end_row, 1, |e, y| row(e, &g, &task, group, y));
        });
    });
}

fn locate<'c>(
    e: &mut Emitter<'c>,
    g: &Geometry,
    buffers: &[Val<'c>],
    [image, tile, row_block]: [Int<'c>; 3],
    partial: Option<Val<'c>>,
) -> Task<'c> {
    let (conv, s) = (&g.conv, &g.conv.shape);
    let [kh, kw] = s.kernel;
    let first_block = first_block(e, conv, tile);
    let input = e.linear([(g.batch_stride, image), (g.block_stride, first_block)], 0);
    let weights = e.mul(tile, g.blocks * kh * kw * conv.input_block() * g.width);
    let output = e.linear(
        [(conv.output_batch_stride, image), (conv.tile.vectors * g.plane, tile)],
        0,
    );
    let last = buffers.len() - 1;
    let operands = conv
        .epilogue
        .operands
        .iter()
        .zip(&buffers[2..last])
        .map(|(kind, &base)| match kind {
            EpilogueOperand::Channel => {
                let channel = e.mul(tile, g.width);
                e.f32_offset(base, channel)
            }
            EpilogueOperand::Elementwise => e.f32_offset(base, output),
            EpilogueOperand::Scalar | EpilogueOperand::Row => base,
        });
    let operands = operands.collect();
    let first_row = e.mul(row_block, conv.tile.rows);
    let end = e.add(first_row, conv.tile.rows);
    let end_row = if g.output[0] % conv.tile.rows == 0 {
        end
    } else {
        e.min(end, g.output[0])
    };
    Task {
        input: e.f32_offset(buffers[0], input),
        weights: e.f32_offset(buffers[1], weights),
        output: e.f32_offset(buffers[last], output),
        operands,
        first_block,
        first_row,
        end_row,
        partial,
    }
}

/// [`Conv::first_block`] while running.
fn first_block<'c>(e: &mut Emitter<'c>, conv: &Conv, tile: Int<'c>) -> Int<'c> {
    let s = &conv.shape;
    if s.groups == 1 || matches!(conv.input, ActivationLayout::Plain) {
        return Int::Const(0);
    }
    let (ci, co) = (s.in_channels / s.groups, s.out_channels / s.groups);
    let channel = e.mul(tile, conv.block * conv.tile.vectors);
    let group = e.div(channel, co);
    let channel = e.mul(group, ci);
    let block = e.div(channel, conv.input_block());
    e.min(block, div_ceil(s.in_channels, conv.input_block()) - conv.blocks_read())
}

/// One output row, for one group of channel blocks.
fn row<'c>(e: &mut Emitter<'c>, g: &Geometry, task: &Task<'c>, group: Int<'c>, y: Int<'c>) {
    let s = &g.conv.shape;
    let kh = g.rows().taps(e, y);
    let columns = g.conv.tile.columns.min(g.output[1]);
    let (interior, border) = g.columns().tiles(columns);
    let at = |x: Int<'c>| At {
        group,
        y,
        x,
        kh: (kh.0, kh.1),
    };
    if border.len() > MAX_BORDER_TILES {
        let taps = vec![Tap {
            kw: 0..s.kernel[1],
            columns: 0..columns,
        }];
        let checked = |e: &mut Emitter<'c>, x| tile(e, g, task, at(x), columns, &taps, true);
        let (full, tail) = (g.output[1] / columns, g.output[1] % columns);
        e.for_each(0, full * columns, columns, checked);
        if tail > 0 {
            let taps = vec![Tap {
                kw: 0..s.kernel[1],
                columns: 0..tail,
            }];
            tile(e, g, task, at(Int::Const(full * columns)), tail, &taps, true);
        }
        return;
    }
    e.for_each(interior.start, interior.end, columns, |e, x| {
        let taps = vec![Tap {
            kw: 0..s.kernel[1],
            columns: 0..columns,
        }];
        tile(e, g, task, at(x), columns, &taps, false);
    });
    for (x, columns) in border {
        tile(e, g, task, at(Int::Const(x)), columns, &taps_of(g, x, columns), false);
    }
}

/// Taps of a kernel row that serve the same columns of a tile.
struct Tap {
    kw: Range<i64>,
    columns: Range<i64>,
}

/// The taps of the tile at `x`: runs that serve all columns together, each other tap by itself. Two taps that serve different columns
/// never share a loop body: LLVM would merge their loads and spill.
fn taps_of(g: &Geometry, x: i64, columns: i64) -> Vec<Tap> {
    let mut taps: Vec<Tap> = Vec::new();
    for kw in 0..g.conv.shape.kernel[1] {
        let valid = g.columns().valid(x, columns, kw);
        match taps.last_mut() {
            Some(last) if last.columns == valid => last.kw.end = kw + 1,
            _ => taps.push(Tap {
                kw: kw..kw + 1,
                columns: valid,
            }),
        }
    }
    taps.retain(|t| !t.columns.is_empty());
    taps
}

/// Where a tile is.
struct At<'c> {
    group: Int<'c>,
    y: Int<'c>,
    x: Int<'c>,
    kh: (Int<'c>, Int<'c>),
}

fn tile<'c>(e: &mut Emitter<'c>, g: &Geometry, task: &Task<'c>, at: At<'c>, columns: i64, taps: &[Tap], checked: bool) {
    let conv = &g.conv;
    let s = &conv.shape;
    let [kernel_h, kernel_w] = s.kernel;
    let (lanes, ib) = (conv.block, conv.input_block());
    let zero = e.f32_constant(0.0, Some(lanes));
    let accumulators = vec![zero; (columns * conv.tile.vectors) as usize];
    let first = e.mul(at.group, conv.tile.channel_blocks);
    let end = e.add(first, conv.tile.channel_blocks);
    let end = if g.blocks % conv.tile.channel_blocks == 0 {
        end
    } else {
        e.min(end, g.blocks)
    };
    let iy = e.linear([(s.stride[0], at.y)], -s.padding[0]);
    let ix = e.linear([(s.stride[1], at.x)], -s.padding[1]);
    let next = next_group(e, g, task, &at);
    let acc = e.for_loop(first, end, 1, &accumulators, |e, block, acc| {
        let channels = block_channels(e, g, task, block);
        e.for_loop(at.kh.0, at.kh.1, 1, acc, |e, kh, acc| {
            let y_in = e.linear([(1, iy), (s.dilation[0], kh)], 0);
            let input = e.linear(
                [(g.block_stride, block), (g.row_stride, y_in), (g.column_stride, ix)],
                0,
            );
            let weights = e.linear([(kernel_h, block), (1, kh)], 0);
            let weights = e.mul(weights, kernel_w * ib * g.width);
            let next = next.map(|(address, parts)| {
                let block = e.sub(block, first);
                let row = e.linear([(kernel_h, block), (1, kh)], 0);
                let offset = e.mul(row, kernel_w * ib * g.width / parts);
                (e.f32_offset(address, offset), parts)
            });
            let mut acc = acc.to_vec();
            for tap in taps {
                acc = e.for_loop(tap.kw.start, tap.kw.end, 1, &acc, |e, kw, acc| {
                    let input = e.linear([(1, input), (s.dilation[1] * g.column_stride, kw)], 0);
                    let input = e.f32_offset(task.input, input);
                    let weights = e.linear([(1, weights), (ib * g.width, kw)], 0);
                    let weights = e.f32_offset(task.weights, weights);
                    let next = next.map(|(address, parts)| {
                        let offset = e.mul(kw, ib * g.width / parts);
                        (e.f32_offset(address, offset), parts)
                    });
                    let check = checked.then(|| e.linear([(1, ix), (s.dilation[1], kw)], 0));
                    channel_loop(e, g, input, (weights, next), channels, tap.columns.clone(), acc, check)
                });
            }
            acc
        })
    });
    finish(e, g, task, &at, &acc);
}

/// The weights that come after this group's, which its tiles fetch while they compute, each a part: where the part of the tile `at`
/// begins, and of how many it is one.
fn next_group<'c>(e: &mut Emitter<'c>, g: &Geometry, task: &Task<'c>, at: &At<'c>) -> Option<(Val<'c>, i64)> {
    let (conv, s) = (&g.conv, &g.conv.shape);
    let block = s.kernel[0] * s.kernel[1] * conv.input_block() * g.width;
    let group = block * conv.tile.channel_blocks.min(g.blocks);
    let columns = conv.tile.columns.min(g.output[1]).max(1);
    let across = div_ceil(g.output[1], columns);
    let parts = prefetch_parts(conv.tile.rows * across, UNROLL * g.width / 16);
    // Few weights stay in a cache by themselves.
    if parts < 2 || block * g.blocks * conv.channel_tiles() < FEW_WEIGHTS {
        return None;
    }
    let row = e.sub(at.y, task.first_row);
    let column = e.div(at.x, columns);
    let pass = e.linear([(across, row), (1, column)], 0);
    let part = e.rem(pass, parts);
    let next = e.linear([(group, at.group), (group / parts, part)], group);
    Some((e.f32_offset(task.weights, next), parts))
}

/// How many channels of `block` exist, and how many an iteration may do.
fn block_channels<'c>(e: &mut Emitter<'c>, g: &Geometry, task: &Task<'c>, block: Int<'c>) -> (Int<'c>, i64) {
    let ib = g.conv.input_block();
    let tail = g.conv.shape.in_channels % ib;
    if tail == 0 {
        return (Int::Const(ib), UNROLL);
    }
    let unroll = [4, 2, 1]
        .into_iter()
        .find(|u| tail % u == 0 && ib % u == 0)
        .unwrap_or(1);
    let block = e.add(task.first_block, block);
    let done = e.mul(block, ib);
    let left = e.sub(g.conv.shape.in_channels, done);
    (e.min(left, ib), unroll)
}

/// The multiply-adds of one tap: for each channel of the block, the weights' vectors times each column's input.
#[expect(clippy::too_many_arguments, reason = "the innermost loop depends on all of them")]
fn channel_loop<'c>(
    e: &mut Emitter<'c>,
    g: &Geometry,
    input: Val<'c>,
    (weights, next): (Val<'c>, Option<(Val<'c>, i64)>),
    (channels, unroll): (Int<'c>, i64),
    columns: Range<i64>,
    acc: &[Val<'c>],
    check: Option<Int<'c>>,
) -> Vec<Val<'c>> {
    let (lanes, vectors) = (g.conv.block, g.conv.tile.vectors);
    let step = g.conv.shape.stride[1] * g.column_stride;
    let body = |e: &mut Emitter<'c>, c: Int<'c>, count: i64, acc: &[Val<'c>]| {
        let offset = e.mul(c, g.channel_stride);
        let input = e.f32_offset(input, offset);
        let offset = e.mul(c, g.width);
        let weights = e.f32_offset(weights, offset);
        let mut acc = acc.to_vec();
        for line in 0..(count * g.width).div_euclid(16) {
            let address = e.f32_offset(weights, PREFETCH + line * 16);
            e.prefetch(address, 3);
        }
        if let Some((next, parts)) = next {
            let offset = e.mul(c, g.width / parts);
            let next = e.f32_offset(next, offset);
            for line in 0..(count * g.width / 16 / parts).max(1) {
                let address = e.f32_offset(next, line * 16);
                e.prefetch(address, 2);
            }
        }
        for c in 0..count {
            let mut w = Vec::new();
            for v in 0..vectors {
                let address = e.f32_offset(weights, c * g.width + v * lanes);
                w.push(e.load_vector(address, lanes));
            }
            for j in columns.clone() {
                let offset = j * step + c * g.channel_stride;
                let x = match check {
                    None => {
                        let address = e.f32_offset(input, offset);
                        e.load_broadcast(address, lanes)
                    }
                    Some(column) => checked_load(e, g, input, offset, column, j),
                };
                for v in 0..vectors {
                    let i = (j * vectors + v) as usize;
                    acc[i] = e.fma(x, w[v as usize], acc[i]);
                }
            }
        }
        acc
    };
    match channels {
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

/// The input of column `j`, or zero when `column + j · stride` lies outside of the row.
fn checked_load<'c>(
    e: &mut Emitter<'c>,
    g: &Geometry,
    input: Val<'c>,
    offset: i64,
    column: Int<'c>,
    j: i64,
) -> Val<'c> {
    let x = e.add(column, j * g.conv.shape.stride[1]);
    // One unsigned comparison tests both ends.
    let inside = e.compare("ult", x, g.input[1]);
    let f32 = e.f32();
    let value = e.if_else(
        inside,
        &[f32],
        |e| {
            let address = e.f32_offset(input, offset);
            vec![e.load(address, f32, 4)]
        },
        |e| vec![e.f32_constant(0.0, None)],
    );
    e.broadcast(value[0], g.conv.block)
}

/// Adds the partial sums of earlier groups; after the last group, applies the epilogue and stores.
fn finish<'c>(e: &mut Emitter<'c>, g: &Geometry, task: &Task<'c>, at: &At<'c>, acc: &[Val<'c>]) {
    let Some(partial) = task.partial else {
        return store(e, g, task, at, acc);
    };
    let lanes = g.conv.block;
    let row = e.sub(at.y, task.first_row);
    let base = e.linear([(g.output[1], row), (1, at.x)], 0);
    let base = e.mul(base, g.width);
    let partial = e.f32_offset(partial, base);
    let is_first = e.compare("eq", at.group, 0);
    let types: Vec<_> = acc.iter().map(|_| e.f32_vector(lanes)).collect();
    let sums = e.if_else(
        is_first,
        &types,
        |_| acc.to_vec(),
        |e| {
            let mut sums = Vec::new();
            for (i, &a) in acc.iter().enumerate() {
                let address = e.f32_offset(partial, i as i64 * lanes);
                let before = e.load_vector(address, lanes);
                sums.push(e.binary("arith.addf", before, a));
            }
            sums
        },
    );
    let is_last = e.compare("eq", at.group, g.groups - 1);
    e.if_else(
        is_last,
        &[],
        |e| {
            store(e, g, task, at, &sums);
            Vec::new()
        },
        |e| {
            for (i, &sum) in sums.iter().enumerate() {
                let address = e.f32_offset(partial, i as i64 * lanes);
                e.store(sum, address, 4);
            }
            Vec::new()
        },
    );
}

fn store<'c>(e: &mut Emitter<'c>, g: &Geometry, task: &Task<'c>, at: &At<'c>, acc: &[Val<'c>]) {
    let (lanes, vectors) = (g.conv.block, g.conv.tile.vectors);
    let base = e.linear([(g.output_row, at.y), (g.output_column, at.x)], 0);
    let position = |e: &mut Emitter<'c>, j: Int<'c>, v: i64| Position {
        row: Int::Const(0),
        channel: Int::Const(v * lanes),
        element: e.linear([(1, base), (g.output_column, j)], v * g.plane),
        mask: None,
    };
    let to = (task.operands.as_slice(), task.output);
    epilogue::finish(e, &g.conv.epilogue, to, (acc, vectors, lanes), position);
}

fn div_ceil(a: i64, b: i64) -> i64 {
    (a + b - 1) / b.max(1)
}
