//! Direct convolution: a register tile of output columns × vectors of output channels, the input broadcast in place.
//!
//! There is no padded copy of the input. Rows above and below it are left out by the bounds of the loop over the kernel's rows;
//! columns to the left and right by emitting the tiles that touch them separately, without the multiply-adds that would
//! read there.

mod units;

use super::winograd;
use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::epilogue::{self, Position};
use crate::emit::family::EmitKernel;
use crate::emit::function::{KernelFunction, image_task, prefetch_parts};
use crate::emit::window::{Axis, Tiles};
use frazil_planner::kernel::{ActivationLayout, Conv, EpilogueOperand, Grouping};
use std::ops::Range;
use units::{channel_loop, unit};

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
    /// What a tile of output channels reads, and in how many units.
    grouping: Grouping,
    units: i64,
    /// Groups of units whose sums are kept in registers.
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
        let grouping = conv.grouping();
        let units = grouping.units();
        let output_row = match conv.output.is_dense() {
            // Rows may be joined.
            true => output[1],
            false => conv.output.step[0] * conv.output.image[1],
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
            plane: conv.output.image[0] * conv.output.image[1] * b,
            output_row: output_row * b,
            output_column: conv.output.step[1] * b,
            grouping,
            units,
            groups: div_ceil(units, conv.tile.channel_blocks),
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
    /// Number of its tile of output channels.
    tile: Int<'c>,
    first_row: Int<'c>,
    end_row: Int<'c>,
    partial: Option<Val<'c>>,
}

impl EmitKernel for Conv {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        match self.winograd {
            None => emit(function, self),
            Some(form) => winograd::emit(function, self, form),
        }
    }
}

/// Emits all tasks of `conv`.
fn emit(kernel: &mut KernelFunction<'_>, conv: &Conv) {
    let g = Geometry::new(conv);
    let tile = conv.tile;
    let partial = (g.groups > 1).then(|| kernel.e.stack(tile.rows * g.output[1] * g.width * 4));
    kernel.for_each_task(|e, buffers, task| {
        let row_blocks = div_ceil(g.output[0], tile.rows);
        let counts = [conv.shape.batch, conv.channel_tiles(), row_blocks];
        let at = image_task(e, task, counts, conv.rows_first());
        let task = locate(e, &g, buffers, at, partial);
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
    let input = e.mul(image, g.batch_stride);
    let weights = e.mul(tile, g.units * kh * kw * g.grouping.channels() * g.width);
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
        tile,
        first_row,
        end_row,
        partial,
    }
}

/// One output row, for one group of units.
fn row<'c>(e: &mut Emitter<'c>, g: &Geometry, task: &Task<'c>, group: Int<'c>, y: Int<'c>) {
    let s = &g.conv.shape;
    let kh = g.rows().taps(e, y);
    let columns = g.conv.tile.columns.min(g.output[1]);
    let at = |x: Int<'c>| At {
        group,
        y,
        x,
        kh: (kh.0, kh.1),
    };
    let pixels = s.output[0] * s.output[1];
    if g.conv.has_joined_rows() && pixels < g.output[0] * g.output[1] {
        return joined_row(e, g, task, (pixels, y), at);
    }
    let Some(Tiles { interior, border }) = g.columns().tiles(columns, MAX_BORDER_TILES) else {
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
    };
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

/// One row of a pointwise convolution of which the last row is shorter: whole tiles, and behind those of the last row a part of one.
fn joined_row<'c>(
    e: &mut Emitter<'c>,
    g: &Geometry,
    task: &Task<'c>,
    (pixels, y): (i64, Int<'c>),
    at: impl Fn(Int<'c>) -> At<'c>,
) {
    let ([rows, width], columns) = (g.output, g.conv.tile.columns);
    let whole = |columns: i64| {
        [Tap {
            kw: 0..1,
            columns: 0..columns,
        }]
    };
    let tail = pixels % columns;
    let before = e.mul(y, width);
    let left = e.sub(pixels - tail, before);
    let end = e.min(left, width);
    e.for_each(0, end, columns, |e, x| {
        tile(e, g, task, at(x), columns, &whole(columns), false)
    });
    if tail > 0 {
        let is_last = e.compare("eq", y, rows - 1);
        let x = Int::Const(pixels - tail - (rows - 1) * width);
        e.if_else(
            is_last,
            &[],
            |e| {
                tile(e, g, task, at(x), tail, &whole(tail), false);
                Vec::new()
            },
            |_| Vec::new(),
        );
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
    let (lanes, channels) = (conv.block, g.grouping.channels());
    let zero = e.f32_constant(0.0, Some(lanes));
    let accumulators = vec![zero; (columns * conv.tile.vectors) as usize];
    let first = e.mul(at.group, conv.tile.channel_blocks);
    let end = e.add(first, conv.tile.channel_blocks);
    let end = if g.units % conv.tile.channel_blocks == 0 {
        end
    } else {
        e.min(end, g.units)
    };
    let iy = e.linear([(s.stride[0], at.y)], -s.padding[0]);
    let ix = e.linear([(s.stride[1], at.x)], -s.padding[1]);
    let next = next_group(e, g, task, &at);
    let acc = e.for_loop(first, end, 1, &accumulators, |e, number, acc| {
        let unit = unit(e, g, task, number);
        e.for_loop(at.kh.0, at.kh.1, 1, acc, |e, kh, acc| {
            let y_in = e.linear([(1, iy), (s.dilation[0], kh)], 0);
            let input = e.linear([(1, unit.input), (g.row_stride, y_in), (g.column_stride, ix)], 0);
            let weights = e.linear([(kernel_h, number), (1, kh)], 0);
            let weights = e.mul(weights, kernel_w * channels * g.width);
            let next = next.map(|(address, parts)| {
                let unit = e.sub(number, first);
                let row = e.linear([(kernel_h, unit), (1, kh)], 0);
                let offset = e.mul(row, kernel_w * channels * g.width / parts);
                (e.f32_offset(address, offset), parts)
            });
            let mut acc = acc.to_vec();
            for tap in taps {
                acc = e.for_loop(tap.kw.start, tap.kw.end, 1, &acc, |e, kw, acc| {
                    let input = e.linear([(1, input), (s.dilation[1] * g.column_stride, kw)], 0);
                    let input = e.f32_offset(task.input, input);
                    let input = e.base(input);
                    let weights = e.linear([(1, weights), (channels * g.width, kw)], 0);
                    let weights = e.f32_offset(task.weights, weights);
                    let weights = e.base(weights);
                    let next = next.map(|(address, parts)| {
                        let offset = e.mul(kw, channels * g.width / parts);
                        (e.f32_offset(address, offset), parts)
                    });
                    let check = checked.then(|| e.linear([(1, ix), (s.dilation[1], kw)], 0));
                    channel_loop(e, g, input, (weights, next), &unit, tap.columns.clone(), acc, check)
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
    let unit = s.kernel[0] * s.kernel[1] * g.grouping.channels() * g.width;
    let group = unit * conv.tile.channel_blocks.min(g.units);
    let columns = conv.tile.columns.min(g.output[1]).max(1);
    let across = div_ceil(g.output[1], columns);
    let machine = e.target.machine;
    let lines = machine.conv.unroll * g.width / machine.caches.line_elements();
    let parts = prefetch_parts(machine, conv.tile.rows * across, lines);
    // Few weights stay in a cache by themselves.
    if parts < 2 || unit * g.units * conv.channel_tiles() < machine.conv.few_weights {
        return None;
    }
    let row = e.sub(at.y, task.first_row);
    let column = e.div(at.x, columns);
    let pass = e.linear([(across, row), (1, column)], 0);
    let part = e.rem(pass, parts);
    let next = e.linear([(group, at.group), (group / parts, part)], group);
    Some((e.f32_offset(task.weights, next), parts))
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
