//! Direct convolution with a register tile of output columns × vectors of output channels. Inputs are broadcast from where they are stored.
//!
//! There is no padded copy of the input. The bounds of the loop over the kernel's rows exclude rows above and below the input. Tiles with taps to the left or
//! right of the input are emitted separately, without the multiply-adds that would read there.

mod units;

use super::winograd;
use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::epilogue::{self, Position};
use crate::emit::family::EmitKernel;
use crate::emit::function::{Condition, KernelFunction, image_task, prefetch_parts};
use crate::emit::window::{RowTile, for_each_overlapping, for_each_tile, taps};
use frazil_planner::kernel::{ActivationLayout, Axis, Conv, EpilogueOperand, Grouping, RowTiling, channels_of_group};
use std::ops::Range;
use units::{channel_loop, unit};

/// Maximum number of border tiles that are emitted separately. If there are more, one loop with bounds checks computes all tiles of a row.
const MAX_BORDER_TILES: usize = 6;

/// Strides and extents for the emitter, all in elements.
struct Geometry<'c> {
    conv: Conv<Int<'c>>,
    /// Whether the rows of the image are joined, and divided again to suit the tiles.
    has_joined_rows: bool,
    /// The number of columns of a tile, and the division of rows whose length is an argument.
    tiling: RowTiling,
    /// Numbers of rows and columns of the input, see [`Conv::rows_and_columns`].
    input: [Int<'c>; 2],
    /// Numbers of rows and columns of the output, see [`Conv::rows_and_columns`].
    output: [Int<'c>; 2],
    /// Distance between channel blocks of the input.
    block_stride: Int<'c>,
    /// Distance between rows of the input.
    row_stride: Int<'c>,
    /// Distance between columns of the input.
    column_stride: i64,
    /// Distance between channels of a block of the input.
    channel_stride: Int<'c>,
    /// Distance between images of the input.
    batch_stride: Int<'c>,
    /// Number of output channels of a tile.
    width: i64,
    /// Distance between channel blocks of the output.
    plane: Int<'c>,
    /// Distance between rows of the output.
    output_row: Int<'c>,
    /// Distance between columns of the output.
    output_column: i64,
    /// The assignment of input channels to the lanes of a tile of output channels.
    grouping: Grouping,
    /// Numbers of input and output channels if there are several groups: they are constants then.
    channels_of_group: (i64, i64),
    /// Number of channels in a block of the input; a plain input is one block.
    input_block: i64,
    /// A power of two that divides the number of input channels and of a block.
    channel_step: i64,
    /// Number of tiles of output channels.
    channel_tiles: Int<'c>,
    /// Number of units of a tile.
    units: Int<'c>,
    /// Number of groups of units. The sums of one group are accumulated in registers.
    groups: Int<'c>,
}

impl<'c> Geometry<'c> {
    /// Returns the geometry for code that serves `conv` and other kernels. `numbers` is the convolution with its integers as constants or arguments of the
    /// code.
    fn new(e: &mut Emitter<'c>, conv: &Conv, numbers: Conv<Int<'c>>) -> Geometry<'c> {
        let s = &numbers.shape;
        let has_joined_rows = conv.has_joined_rows();
        let [input, output] = match has_joined_rows {
            true => [pointwise_rows(e, &numbers, conv.row_tiling().width); 2],
            false => [s.input, s.output],
        };
        let pixels = e.mul(s.input[0], s.input[1]);
        let b = conv.block;
        let (block_stride, row_stride, column_stride, channel_stride, batch_stride) = match numbers.input {
            ActivationLayout::Plain => (Int::Const(0), input[1], 1, pixels, e.mul(pixels, s.in_channels)),
            ActivationLayout::Blocked { batch_stride } => {
                (e.mul(pixels, b), e.mul(input[1], b), b, Int::Const(1), batch_stride)
            }
        };
        let grouping = conv.grouping();
        let units = match grouping {
            Grouping::One { block, .. } => e.div_ceil(s.in_channels, block),
            Grouping::Side { .. } | Grouping::Apart { .. } => Int::Const(grouping.units()),
        };
        let width = b * conv.tile.vectors;
        let output_row = match conv.output.is_dense() {
            // Rows may be joined.
            true => output[1],
            false => e.mul(numbers.output.image[1], conv.output.step[0]),
        };
        let plane = e.mul(numbers.output.image[0], numbers.output.image[1]);
        Geometry {
            has_joined_rows,
            tiling: conv.row_tiling(),
            input,
            output,
            block_stride,
            row_stride,
            column_stride,
            channel_stride,
            batch_stride,
            width,
            plane: e.mul(plane, b),
            output_row: e.mul(output_row, b),
            output_column: conv.output.step[1] * b,
            grouping,
            channels_of_group: channels_of_group(&conv.shape),
            input_block: conv.input_block(),
            channel_step: match s.in_channels.known() {
                Some(_) => conv.channel_step(),
                None => conv.channel_step_of_arguments(),
            },
            channel_tiles: e.div_ceil(s.out_channels, width),
            units,
            groups: match units {
                Int::Const(1) => units,
                _ => e.div_ceil(units, numbers.tile.channel_blocks),
            },
            conv: numbers,
        }
    }

    fn rows(&self) -> Axis<Int<'c>> {
        self.axis(0)
    }

    fn columns(&self) -> Axis<Int<'c>> {
        self.axis(1)
    }

    fn axis(&self, i: usize) -> Axis<Int<'c>> {
        Axis {
            input: self.input[i],
            output: self.output[i],
            ..Axis::of(&self.conv.shape, i)
        }
    }

    /// Returns the maximum number of columns by which a tile may start before its row.
    fn columns_before(&self) -> i64 {
        match self.output[1] {
            Int::Dyn(_) if self.has_joined_rows => self.tiling.width,
            _ => 0,
        }
    }

    /// Returns whether the tasks of a block of rows are adjacent, rather than those of a tile of channels. A thread then has the same rows as in the kernels before
    /// and after, so that they are in its cache, but it reads all weights.
    fn rows_first(&self, e: &mut Emitter<'c>) -> Condition<'c> {
        let s = &self.conv.shape;
        let channels = e.div(s.in_channels, s.groups.max(1));
        let weights = e.mul(s.out_channels, channels);
        let weights = e.mul(weights, s.kernel[0] * s.kernel[1]);
        let activations = e.mul(s.input[0], s.input[1]);
        let activations = e.mul(activations, s.batch);
        match (e.mul(activations, s.in_channels), weights) {
            (Int::Const(activations), Int::Const(weights)) => Condition::Known(weights <= activations),
            (activations, weights) => Condition::Dyn(e.compare("sge", activations, weights)),
        }
    }
}

/// Returns the numbers of rows and columns of a pointwise convolution whose tiles have `columns` columns, see [`Conv::rows_and_columns`].
fn pointwise_rows<'c>(e: &mut Emitter<'c>, conv: &Conv<Int<'c>>, columns: i64) -> [Int<'c>; 2] {
    let pixels = e.mul(conv.shape.output[0], conv.shape.output[1]);
    let tiles = e.div_ceil(pixels, columns);
    let tiles = e.max(tiles, 1);
    let of_row = e.div_ceil(tiles, conv.pointwise_rows.max(1));
    let rows = e.div_ceil(tiles, of_row);
    let width = e.mul(of_row, columns);
    match rows {
        Int::Const(1) => [rows, pixels],
        Int::Const(_) => [rows, width],
        _ => {
            let is_one = e.compare("eq", rows, 1);
            let (pixels, width) = (e.int(pixels), e.int(width));
            [rows, Int::Dyn(e.select(is_one, pixels, width))]
        }
    }
}

/// Addresses of the current task's operands, and the outputs that it computes.
struct Task<'c> {
    input: Val<'c>,
    weights: Val<'c>,
    output: Val<'c>,
    operands: Vec<Val<'c>>,
    /// Index of the task's tile of output channels.
    tile: Int<'c>,
    first_row: Int<'c>,
    end_row: Int<'c>,
    partial: Option<Val<'c>>,
}

impl EmitKernel for Conv {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        let numbers = self
            .map(&mut |n| function.number(*n))
            .with_channels(self.constant_channels());
        match self.winograd {
            None => emit(function, self, numbers),
            Some(form) => winograd::emit(function, (self, &numbers), form),
        }
    }
}

/// Emits all tasks of code that serves `conv` and other kernels. `numbers` is the convolution with its integers as constants or arguments of the code.
fn emit<'c>(kernel: &mut KernelFunction<'c>, conv: &Conv, numbers: Conv<Int<'c>>) {
    let e = &mut kernel.e;
    let g = Geometry::new(e, conv, numbers);
    let tile = g.conv.tile;
    let partial = (g.groups.known() != Some(1)).then(|| {
        let row = e.mul(tile.rows, g.output[1]);
        // The last tile of a joined row may start in the previous row.
        let columns = e.add(row, g.columns_before());
        let bytes = e.mul(columns, g.width * 4);
        let bytes = match g.groups {
            Int::Const(_) => bytes,
            groups => {
                // One group has no partial sums.
                let are_several = e.compare("sgt", groups, 1);
                let (none, bytes) = (e.int(0), e.int(bytes));
                Int::Dyn(e.select(are_several, bytes, none))
            }
        };
        let partial = e.stack(bytes);
        e.f32_offset(partial, g.columns_before() * g.width)
    });
    let row_blocks = e.div_ceil(g.output[0], tile.rows);
    let counts = [g.conv.shape.batch, g.channel_tiles, row_blocks];
    let rows_first = g.rows_first(e);
    kernel.for_each_task(|e, buffers, task| {
        let at = image_task(e, task, counts, rows_first);
        let task = locate(e, &g, buffers, at, partial);
        e.for_each(0, g.groups, 1, |e, group| {
            e.for_each(task.first_row, task.end_row, 1, |e, y| row(e, &g, &task, group, y));
        });
    });
}

fn locate<'c>(
    e: &mut Emitter<'c>,
    g: &Geometry<'c>,
    buffers: &[Val<'c>],
    [image, tile, row_block]: [Int<'c>; 3],
    partial: Option<Val<'c>>,
) -> Task<'c> {
    let (conv, s) = (&g.conv, &g.conv.shape);
    let [kh, kw] = s.kernel;
    let input = e.mul(image, g.batch_stride);
    let weights = e.mul(g.units, kh * kw * g.grouping.channels() * g.width);
    let weights = e.mul(tile, weights);
    let tile_stride = e.mul(g.plane, conv.tile.vectors);
    let output = e.linear([(conv.output_batch_stride, image), (tile_stride, tile)], 0);
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
    let end_row = match conv.tile.rows.divides(g.output[0]) {
        true => end,
        false => e.min(end, g.output[0]),
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

/// Emits one output row, for one group of units.
fn row<'c>(e: &mut Emitter<'c>, g: &Geometry<'c>, task: &Task<'c>, group: Int<'c>, y: Int<'c>) {
    let s = &g.conv.shape;
    let kh = taps(e, &g.rows(), y);
    let columns = g.tiling.width;
    let at = |x: Int<'c>, stored: Int<'c>| At {
        group,
        y,
        x,
        stored,
        kh,
    };
    let pixels = e.mul(s.output[0], s.output[1]);
    if g.has_joined_rows {
        let looped = e.mul(g.output[0], g.output[1]);
        if pixels
            .known()
            .zip(looped.known())
            .is_none_or(|(pixels, looped)| pixels < looped)
        {
            return joined_row(e, g, task, (pixels, y), at);
        }
    }
    let emitted = for_each_tile(e, &g.columns(), (g.tiling, MAX_BORDER_TILES), |e, t| {
        tile(e, g, task, at(t.x, t.stored), t.width, &taps_of(g, &t), false);
    });
    if emitted {
        return;
    }
    let checked = |e: &mut Emitter<'c>, (x, stored): (Int<'c>, Int<'c>), columns: i64| {
        let taps = [Tap::all(s.kernel[1], columns)];
        tile(e, g, task, at(x, stored), columns, &taps, true);
    };
    let Int::Const(output) = g.output[1] else {
        return for_each_overlapping(e, (Int::Const(0), g.output[1]), columns, |e, x, stored| {
            checked(e, (x, stored), columns);
        });
    };
    let (full, tail) = (output / columns, output % columns);
    let none = Int::Const(0);
    e.for_each(0, full * columns, columns, |e, x| checked(e, (x, none), columns));
    if tail > 0 {
        checked(e, (Int::Const(full * columns), none), tail);
    }
}

/// Emits one row of a pointwise convolution whose last row is shorter than the others. The tiles of the last row are followed by a narrower tile, or, if sizes
/// are arguments, by a tile that overlaps the previous one.
fn joined_row<'c>(
    e: &mut Emitter<'c>,
    g: &Geometry<'c>,
    task: &Task<'c>,
    (pixels, y): (Int<'c>, Int<'c>),
    at: impl Fn(Int<'c>, Int<'c>) -> At<'c>,
) {
    let ([rows, width], columns) = (g.output, g.tiling.width);
    let whole = |columns: i64| [Tap::all(1, columns)];
    let before = e.mul(y, width);
    let (Int::Const(pixels), Int::Const(rows), Int::Const(width)) = (pixels, rows, width) else {
        let left = e.sub(pixels, before);
        let end = e.min(left, width);
        return for_each_overlapping(e, (Int::Const(0), end), columns, |e, x, stored| {
            tile(e, g, task, at(x, stored), columns, &whole(columns), false);
        });
    };
    let none = Int::Const(0);
    let tail = pixels % columns;
    let left = e.sub(pixels - tail, before);
    let end = e.min(left, width);
    e.for_each(0, end, columns, |e, x| {
        tile(e, g, task, at(x, none), columns, &whole(columns), false)
    });
    if tail > 0 {
        let is_last = e.compare("eq", y, rows - 1);
        let x = Int::Const(pixels - tail - (rows - 1) * width);
        e.if_else(
            is_last,
            &[],
            |e| {
                tile(e, g, task, at(x, none), tail, &whole(tail), false);
                Vec::new()
            },
            |_| Vec::new(),
        );
    }
}

/// Adjacent taps of a kernel row that contribute to the same columns of a tile.
struct Tap {
    kw: Range<i64>,
    columns: Range<i64>,
}

impl Tap {
    /// Returns `kernel` taps that contribute to all of `columns` columns.
    fn all(kernel: i64, columns: i64) -> Tap {
        Tap {
            kw: 0..kernel,
            columns: 0..columns,
        }
    }
}

/// Returns the taps of a tile: adjacent taps that contribute to the same columns are one item. Taps for different columns never share a loop body, because LLVM
/// would merge their loads and spill registers.
fn taps_of(g: &Geometry<'_>, tile: &RowTile<'_>) -> Vec<Tap> {
    if tile.border.is_none() {
        return vec![Tap::all(g.conv.shape.kernel[1], tile.width)];
    }
    let mut taps: Vec<Tap> = Vec::new();
    for kw in 0..g.conv.shape.kernel[1] {
        let valid = tile.valid(kw);
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

/// Position of a tile, and the rows of taps `kh` that lie inside the input.
struct At<'c> {
    group: Int<'c>,
    y: Int<'c>,
    x: Int<'c>,
    /// Number of leading columns that an earlier tile has stored.
    stored: Int<'c>,
    kh: (Int<'c>, Int<'c>),
}

fn tile<'c>(
    e: &mut Emitter<'c>,
    g: &Geometry<'c>,
    task: &Task<'c>,
    at: At<'c>,
    columns: i64,
    taps: &[Tap],
    checked: bool,
) {
    let conv = &g.conv;
    let s = &conv.shape;
    let [kernel_h, kernel_w] = s.kernel;
    let (lanes, channels) = (conv.block, g.grouping.channels());
    let zero = e.f32_constant(0.0, Some(lanes));
    let accumulators = vec![zero; (columns * conv.tile.vectors) as usize];
    let first = e.mul(at.group, conv.tile.channel_blocks);
    let end = e.add(first, conv.tile.channel_blocks);
    let end = match conv.tile.channel_blocks.divides(g.units) {
        true => end,
        false => e.min(end, g.units),
    };
    let iy = e.linear([(s.stride[0], at.y)], -s.padding[0]);
    let ix = e.linear([(s.stride[1], at.x)], -s.padding[1]);
    let next = next_group(e, g, task, &at);
    let acc = e.for_loop(first, end, 1, &accumulators, |e, number, acc| {
        let unit = unit(e, g, task, number);
        e.for_loop(at.kh.0, at.kh.1, 1, acc, |e, kh, acc| {
            let y_in = e.linear([(1, iy), (s.dilation[0], kh)], 0);
            let rows = (g.row_stride, y_in);
            let input = e.linear(
                [(Int::Const(1), unit.input), rows, (Int::Const(g.column_stride), ix)],
                0,
            );
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

/// Returns the part of the next group's weights that the tile `at` prefetches: its address, and the number of parts. Each tile of a group prefetches one part
/// while it computes. Returns `None` if prefetching is not worthwhile.
fn next_group<'c>(e: &mut Emitter<'c>, g: &Geometry<'c>, task: &Task<'c>, at: &At<'c>) -> Option<(Val<'c>, i64)> {
    let (conv, s) = (&g.conv, &g.conv.shape);
    let unit = s.kernel[0] * s.kernel[1] * g.grouping.channels() * g.width;
    let blocks = e.min(conv.tile.channel_blocks, g.units);
    let group = e.mul(blocks, unit);
    let columns = g.tiling.width;
    let across = e.div_ceil(g.output[1], columns);
    let machine = e.target.machine;
    let lines = machine.conv.unroll * g.width / machine.caches.line_elements();
    let passes = conv.tile.rows.known().zip(across.known());
    // If there are fewer passes than parts, the last parts are not prefetched.
    let passes = passes.map_or(lines, |(rows, across)| rows * across);
    let parts = prefetch_parts(machine, passes, lines);
    // Few weights stay in a cache without prefetching.
    let weights = e.mul(g.units, g.channel_tiles);
    let weights = e.mul(weights, unit);
    if parts < 2
        || weights
            .known()
            .is_some_and(|weights| weights < machine.conv.few_weights)
    {
        return None;
    }
    let row = e.sub(at.y, task.first_row);
    let column = e.div(at.x, columns);
    let pass = e.linear([(across, row), (Int::Const(1), column)], 0);
    let part = e.rem(pass, parts);
    let of_part = e.div(group, parts);
    let next = e.linear([(group, at.group), (of_part, part)], group);
    Some((e.f32_offset(task.weights, next), parts))
}

/// Adds the partial sums of earlier groups to `acc`. After the last group, applies the epilogue and stores the results; after other groups, stores the sums.
fn finish<'c>(e: &mut Emitter<'c>, g: &Geometry<'c>, task: &Task<'c>, at: &At<'c>, acc: &[Val<'c>]) {
    let Some(partial) = task.partial else {
        return store(e, g, task, at, acc);
    };
    let lanes = g.conv.block;
    let row = e.sub(at.y, task.first_row);
    let base = e.linear([(g.output[1], row), (Int::Const(1), at.x)], 0);
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
    let last = e.sub(g.groups, 1);
    let is_last = e.compare("eq", at.group, last);
    e.if_else(
        is_last,
        &[],
        |e| {
            store(e, g, task, at, &sums);
            Vec::new()
        },
        |e| {
            let vectors = g.conv.tile.vectors;
            epilogue::from_row(e, &sums, vectors, at.stored, |e, j, v, sum| {
                let address = e.f32_offset(partial, (j * vectors + v) * lanes);
                e.store(sum, address, 4);
            });
            Vec::new()
        },
    );
}

fn store<'c>(e: &mut Emitter<'c>, g: &Geometry<'c>, task: &Task<'c>, at: &At<'c>, acc: &[Val<'c>]) {
    let (lanes, vectors) = (g.conv.block, g.conv.tile.vectors);
    let base = e.linear([(g.output_row, at.y), (Int::Const(g.output_column), at.x)], 0);
    let position = |e: &mut Emitter<'c>, j: Int<'c>, v: i64| {
        let plane = e.mul(g.plane, v);
        Position {
            row: Int::Const(0),
            channel: Int::Const(v * lanes),
            element: e.linear([(1, base), (g.output_column, j)], plane),
            mask: None,
        }
    };
    let to = (task.operands.as_slice(), task.output);
    epilogue::finish(e, &g.conv.epilogue, to, (acc, vectors, lanes), at.stored, position);
}
