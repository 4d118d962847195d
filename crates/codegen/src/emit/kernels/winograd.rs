//! Winograd convolution. A task transforms the input of a few tiles, multiplies it with the transformed weights position by position, and transforms the
//! products back, one tile of output channels after the other. Everything but the weights stays in the cache.
//!
//! The transforms propagate an infinite or NaN input to outputs that do not depend on it, and differences of infinities are NaN. So a tile whose results are
//! not all finite is computed again without transforms of the input, with weights that are transformed back.

use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::epilogue::{self, Position};
use crate::emit::family::EmitKernel;
use crate::emit::function::KernelFunction;
use frazil_planner::kernel::{ActivationLayout, Conv, EpilogueOperand, Winograd, WinogradWeights};

/// The kernel, with values that all parts of the emitter use.
struct Plan<'a, 'c> {
    conv: &'a Conv<Int<'c>>,
    /// Number of channels in the last block of the input if it is not full, otherwise 0.
    tail: i64,
    /// Number of channel blocks of the input.
    input_blocks: Int<'c>,
    w: Winograd,
    /// Distances between rows and between channel blocks of the input, in elements.
    input: [Int<'c>; 2],
    /// Distances between rows and between channel blocks of the output, in elements.
    output: [Int<'c>; 2],
    buffers: &'a [Val<'c>],
    /// Address of the transformed input: [position][input block][tile][lane].
    transformed: Val<'c>,
    /// Address of the products: [position][tile][vector][lane].
    products: Val<'c>,
    /// Address of a vector of zeros, which is read in place of the input outside of the image.
    zeros: Val<'c>,
}

/// Emits all tasks of code that serves `example` and other kernels. `conv` is the convolution with its integers as constants or arguments of the code.
pub(super) fn emit<'c>(kernel: &mut KernelFunction<'c>, (example, conv): (&Conv, &Conv<Int<'c>>), w: Winograd) {
    let e = &mut kernel.e;
    let (s, lanes) = (&conv.shape, conv.block);
    let positions = w.inputs() * w.inputs();
    let input_blocks = e.div_ceil(s.in_channels, lanes);
    let transformed = e.mul(input_blocks, positions * w.columns * lanes * 4);
    let transformed = e.stack(transformed);
    let products = e.stack(positions * w.columns * w.vectors * lanes * 4);
    let zeros = e.stack(lanes * 4);
    let zero = e.f32_constant(0.0, Some(lanes));
    e.store(zero, zeros, 4);
    let mut strides = |[height, width]: [Int<'c>; 2]| {
        let row = e.mul(width, lanes);
        [row, e.mul(row, height)]
    };
    let (input, output) = (strides(s.input), strides(s.output));
    let [rows, columns] = s.output.map(|n| e.div_ceil(n, w.outputs));
    let tiles = e.mul(rows, columns);
    let tiles = e.mul(tiles, s.batch);
    let groups = e.div_ceil(tiles, w.columns);
    let all = e.div_ceil(s.out_channels, w.vectors * lanes);
    let part = e.div_ceil(all, conv.channel_parts);
    kernel.for_each_task(|e, buffers, task| {
        let p = Plan {
            conv,
            tail: example.shape.in_channels % lanes,
            input_blocks,
            w,
            input,
            output,
            buffers,
            transformed,
            products,
            zeros,
        };
        let at = e.delinearize(task, &[groups, conv.channel_parts]);
        let first = e.mul(at[0], w.columns);
        let left = e.sub(tiles, first);
        let count = match Int::Const(w.columns).divides(tiles) {
            true => Int::Const(w.columns),
            false => e.min(left, w.columns),
        };
        e.for_each(0, count, 1, |e, tile| p.transform_input(e, first, tile));
        let begin = e.mul(at[1], part);
        let end = e.add(begin, part);
        let end = e.min(end, all);
        e.for_each(begin, end, 1, |e, channels| {
            p.multiply(e, channels);
            e.for_each(0, count, 1, |e, tile| p.transform_output(e, first, tile, channels));
        });
    });
}

impl EmitKernel for WinogradWeights {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        let spec = self.map(&mut |n| function.number(*n));
        emit_weights(function, &spec);
    }
}

/// Emits all tasks of the transformation of weights, U = G w Gᵀ, for one vector of output channels at a time.
fn emit_weights<'c>(kernel: &mut KernelFunction<'c>, spec: &WinogradWeights<Int<'c>>) {
    let (lanes, width, channels) = (spec.block, spec.width(), spec.in_channels);
    let positions = spec.form.inputs() * spec.form.inputs();
    let [_, g, _, _] = spec.form.matrices();
    let e = &mut kernel.e;
    let tiles = e.div_ceil(spec.out_channels, width);
    let of_position = e.mul(channels, width);
    let of_tile = e.mul(of_position, positions);
    kernel.for_each_task(|e, buffers, task| {
        let at = e.delinearize(task, &[tiles, channels]);
        let from = e.mul(task, 9 * width);
        let to = e.linear([(of_tile, at[0]), (Int::Const(width), at[1])], 0);
        let (from, to) = (e.f32_offset(buffers[0], from), e.f32_offset(buffers[1], to));
        e.for_each(0, width, lanes, |e, lane| {
            let (from, to) = (e.f32_offset(from, lane), e.f32_offset(to, lane));
            let w: Vec<_> = (0..9)
                .map(|tap| {
                    let address = e.f32_offset(from, tap * width);
                    e.load_vector(address, lanes)
                })
                .collect();
            for (position, u) in transform(e, &g, &w, lanes).into_iter().enumerate() {
                let offset = e.mul(of_position, position as i64);
                let address = e.f32_offset(to, offset);
                e.store(u, address, 4);
            }
        });
    });
}

impl<'c> Plan<'_, 'c> {
    /// Returns the image, row and column of the tile with index `first + tile`.
    fn locate(&self, e: &mut Emitter<'c>, first: Int<'c>, tile: Int<'c>) -> [Int<'c>; 3] {
        let s = &self.conv.shape;
        let tile = e.add(first, tile);
        let [rows, columns] = s.output.map(|n| e.div_ceil(n, self.w.outputs));
        let at = e.delinearize(tile, &[s.batch, rows, columns]);
        let image = match s.batch {
            Int::Const(1) => Int::Const(0),
            _ => at[0],
        };
        [image, at[1], at[2]]
    }

    /// Emits V = Bᵀ d B for each block of input channels of a tile.
    fn transform_input(&self, e: &mut Emitter<'c>, first: Int<'c>, tile: Int<'c>) {
        let (s, lanes, n) = (&self.conv.shape, self.conv.block, self.w.inputs());
        let place = self.locate(e, first, tile);
        let (corner, [y, x]) = self.input_corner(e, place);
        let [_, plane] = self.input;
        // 0 <= y and y + n <= height, in one unsigned comparison; likewise x.
        let last = s.input.map(|extent| e.sub(extent, n));
        let inside_y = e.compare("ule", y, last[0]);
        let inside_x = e.compare("ule", x, last[1]);
        let is_small = |last: &Int<'c>| last.known().is_some_and(|last| last < 0);
        let mut inside = match last.iter().any(is_small) {
            false => e.binary("arith.andi", inside_y, inside_x),
            true => e.constant("0 : i1"),
        };
        for last in last.into_iter().filter(|last| last.known().is_none()) {
            let is_large = e.compare("sge", last, 0);
            inside = e.binary("arith.andi", inside, is_large);
        }
        let vector = e.f32_vector(lanes);
        e.for_each(0, self.input_blocks, 1, |e, block| {
            let base = e.linear([(Int::Const(1), corner), (plane, block)], 0);
            let base = e.f32_offset(self.buffers[0], base);
            let base = e.base(base);
            let input = e.if_else(
                inside,
                &vec![vector; (n * n) as usize],
                |e| {
                    let mut load = |i: i64| {
                        let address = self.input_address(e, base, i);
                        e.load_vector(address, lanes)
                    };
                    (0..n * n).map(&mut load).collect()
                },
                |e| self.load_at_border(e, base, [y, x], |e, address| e.load_vector(address, lanes)),
            );
            let [b, _, _, _] = self.w.matrices();
            let v = transform(e, &b, &input, lanes);
            let tiles = self.w.columns * lanes;
            let to = e.linear([(tiles, block), (lanes, tile)], 0);
            let to = e.f32_offset(self.transformed, to);
            let to = e.base(to);
            for (i, &v) in v.iter().enumerate() {
                let offset = e.mul(self.input_blocks, i as i64 * tiles);
                let address = e.f32_offset(to, offset);
                e.store(v, address, 4);
            }
        });
    }

    /// Returns the position of the first input of a tile: its offset in the first block of channels in elements, its row and its column.
    fn input_corner(&self, e: &mut Emitter<'c>, [image, ty, tx]: [Int<'c>; 3]) -> (Int<'c>, [Int<'c>; 2]) {
        let (s, lanes) = (&self.conv.shape, self.conv.block);
        let y = e.linear([(self.w.outputs, ty)], -s.padding[0]);
        let x = e.linear([(self.w.outputs, tx)], -s.padding[1]);
        let batch_stride = match self.conv.input {
            ActivationLayout::Blocked { batch_stride } => batch_stride,
            ActivationLayout::Plain => Int::Const(0),
        };
        let row = self.input[0];
        let corner = e.linear([(batch_stride, image), (row, y), (Int::Const(lanes), x)], 0);
        (corner, [y, x])
    }

    /// Returns the address of a tile's `i`-th input, counted row by row. The first input is at `base`.
    fn input_address(&self, e: &mut Emitter<'c>, base: Val<'c>, i: i64) -> Val<'c> {
        let n = self.w.inputs();
        let offset = e.linear([(self.input[0], Int::Const(i / n))], i % n * self.conv.block);
        e.f32_offset(base, offset)
    }

    /// Returns the inputs of a tile, loaded by `load`, with zeros outside of the image.
    fn load_at_border(
        &self,
        e: &mut Emitter<'c>,
        base: Val<'c>,
        [y, x]: [Int<'c>; 2],
        load: impl Fn(&mut Emitter<'c>, Val<'c>) -> Val<'c>,
    ) -> Vec<Val<'c>> {
        let (s, n) = (&self.conv.shape, self.w.inputs());
        let mut inside = |from: Int<'c>, extent: Int<'c>| -> Vec<Val<'c>> {
            let flag = |i: i64| {
                let at = e.add(from, i);
                e.compare("ult", at, extent)
            };
            (0..n).map(flag).collect()
        };
        let (rows, columns) = (inside(y, s.input[0]), inside(x, s.input[1]));
        let element = |i: i64| {
            let valid = e.binary("arith.andi", rows[(i / n) as usize], columns[(i % n) as usize]);
            let address = self.input_address(e, base, i);
            let address = e.select(valid, address, self.zeros);
            load(e, address)
        };
        (0..n * n).map(element).collect()
    }

    /// Emits M = U V for each position, for one tile of output channels.
    fn multiply(&self, e: &mut Emitter<'c>, channels: Int<'c>) {
        let (s, lanes, w) = (&self.conv.shape, self.conv.block, self.w);
        let (width, positions, tiles) = (lanes * w.vectors, w.inputs() * w.inputs(), w.columns * lanes);
        let of_tile = e.mul(s.in_channels, positions * width);
        let weights = e.mul(channels, of_tile);
        let weights = e.f32_offset(self.buffers[1], weights);
        let zero = e.f32_constant(0.0, Some(lanes));
        let start = vec![zero; (w.columns * w.vectors) as usize];
        e.for_each(0, positions, 1, |e, position| {
            let (full, tail) = (e.div(s.in_channels, lanes), self.tail);
            let mut acc = e.for_loop(0, full, 1, &start, |e, block, acc| {
                self.multiply_block(e, weights, position, block, lanes, acc)
            });
            if tail > 0 {
                acc = self.multiply_block(e, weights, position, full, tail, &acc);
            }
            let to = e.mul(position, tiles * w.vectors);
            let to = e.f32_offset(self.products, to);
            let to = e.base(to);
            for (i, &a) in acc.iter().enumerate() {
                let address = e.f32_offset(to, i as i64 * lanes);
                e.store(a, address, 4);
            }
        });
    }

    fn multiply_block(
        &self,
        e: &mut Emitter<'c>,
        weights: Val<'c>,
        position: Int<'c>,
        block: Int<'c>,
        channels: i64,
        acc: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let (s, lanes, w) = (&self.conv.shape, self.conv.block, self.w);
        let (width, tiles) = (lanes * w.vectors, w.columns * lanes);
        let of_position = e.mul(self.input_blocks, tiles);
        let from = e.linear([(of_position, position), (Int::Const(tiles), block)], 0);
        let from = e.f32_offset(self.transformed, from);
        let from = e.base(from);
        let of_position = e.mul(s.in_channels, width);
        let weight = e.linear([(of_position, position), (Int::Const(lanes * width), block)], 0);
        let weights = e.f32_offset(weights, weight);
        let weights = e.base(weights);
        let (parameters, line_elements) = (&e.target.machine.winograd, e.target.machine.caches.line_elements());
        let lines = |count: i64| match parameters.prefetch > 0 {
            true => count * width / line_elements,
            false => 0,
        };
        let steps = |e: &mut Emitter<'c>, c: Int<'c>, count: i64, acc: &[Val<'c>]| {
            let from = e.f32_offset(from, c);
            let offset = e.mul(c, width);
            let weights = e.f32_offset(weights, offset);
            for line in 0..lines(count) {
                let address = e.f32_offset(weights, parameters.prefetch + line * line_elements);
                e.prefetch(address, 3);
            }
            let mut acc = acc.to_vec();
            for c in 0..count {
                let u: Vec<_> = (0..w.vectors)
                    .map(|v| {
                        let address = e.f32_offset(weights, c * width + v * lanes);
                        e.load_vector(address, lanes)
                    })
                    .collect();
                for j in 0..w.columns {
                    let address = e.f32_offset(from, j * lanes + c);
                    let x = e.load_broadcast(address, lanes);
                    for (v, &u) in u.iter().enumerate() {
                        let i = (j * w.vectors) as usize + v;
                        acc[i] = e.fma(x, u, acc[i]);
                    }
                }
            }
            acc
        };
        let unroll = parameters.unroll.max(1);
        let full = channels / unroll * unroll;
        let acc = e.for_loop(0, full, unroll, acc, |e, c, acc| steps(e, c, unroll, acc));
        if channels > full {
            steps(e, Int::Const(full), channels - full, &acc)
        } else {
            acc
        }
    }

    /// Emits Y = Aᵀ M A, the epilogue, and the stores inside the output.
    fn transform_output(&self, e: &mut Emitter<'c>, first: Int<'c>, tile: Int<'c>, channels: Int<'c>) {
        let (conv, s, lanes, w) = (self.conv, &self.conv.shape, self.conv.block, self.w);
        let place = self.locate(e, first, tile);
        let [image, ty, tx] = place;
        let [row, plane] = self.output;
        let corner = [
            (conv.output_batch_stride, image),
            (e.mul(plane, w.vectors), channels),
            (e.mul(row, w.outputs), ty),
            (Int::Const(w.outputs * lanes), tx),
        ];
        let corner = e.linear(corner, 0);
        let channel = e.mul(channels, w.vectors * lanes);
        let last = self.buffers.len() - 1;
        let output = e.f32_offset(self.buffers[last], corner);
        let output = e.base(output);
        let operands = conv.epilogue.operands.iter().zip(&self.buffers[2..last]);
        let operands: Vec<Val<'c>> = operands
            .map(|(kind, &operand)| match kind {
                EpilogueOperand::Elementwise => {
                    let address = e.f32_offset(operand, corner);
                    e.base(address)
                }
                EpilogueOperand::Channel | EpilogueOperand::Scalar | EpilogueOperand::Row => operand,
            })
            .collect();
        let (y, x) = (e.mul(ty, w.outputs), e.mul(tx, w.outputs));
        let from = e.mul(tile, w.vectors * lanes);
        let from = e.f32_offset(self.products, from);
        let from = e.base(from);
        let [_, _, a, _] = w.matrices();
        e.for_each(0, w.vectors, 1, |e, v| {
            let lane = e.mul(v, lanes);
            let from = e.f32_offset(from, lane);
            let from = e.base(from);
            let load = |i: i64| {
                let address = e.f32_offset(from, i * w.columns * w.vectors * lanes);
                e.load_vector(address, lanes)
            };
            let m: Vec<_> = (0..w.inputs() * w.inputs()).map(load).collect();
            let result = transform(e, &a, &m, lanes);
            let odd = not_all_finite(e, &result, lanes);
            let odd = e.unlikely(odd);
            let types = vec![e.f32_vector(lanes); result.len()];
            let result = e.if_else(
                odd,
                &types,
                |e| self.direct(e, place, channels, lane),
                |_| result.clone(),
            );
            let channel = e.add(channel, lane);
            for (i, &value) in result.iter().enumerate() {
                let (dy, dx) = (i as i64 / w.outputs, i as i64 % w.outputs);
                let element = e.linear([(plane, v), (row, Int::Const(dy))], dx * lanes);
                let at = Position {
                    row: Int::Const(0),
                    channel,
                    element,
                    mask: None,
                };
                let store = |e: &mut Emitter<'c>| {
                    let value = epilogue::apply(e, &conv.epilogue, &operands, value, lanes, &at);
                    epilogue::store(e, value, output, element, None);
                };
                let mut condition = None;
                for (at, d, extent) in [(y, dy, s.output[0]), (x, dx, s.output[1])] {
                    // The first row and column of a tile always exist; others may not when the extent is no multiple.
                    if d > 0 && !Int::Const(w.outputs).divides(extent) {
                        let at = e.add(at, d);
                        let inside = e.compare("slt", at, extent);
                        condition = Some(condition.map_or(inside, |c| e.binary("arith.andi", c, inside)));
                    }
                }
                match condition {
                    None => store(e),
                    Some(c) => e.if_then(c, store),
                }
            }
        });
    }

    /// Returns the outputs of a tile as sums over all taps, for the vector of output channels that starts at `lane` of the channel tile `channels`.
    fn direct(&self, e: &mut Emitter<'c>, place: [Int<'c>; 3], channels: Int<'c>, lane: Int<'c>) -> Vec<Val<'c>> {
        let (s, lanes, w) = (&self.conv.shape, self.conv.block, self.w);
        let (width, positions, n) = (lanes * w.vectors, w.inputs() * w.inputs(), w.inputs());
        let (corner, at) = self.input_corner(e, place);
        let of_position = e.mul(s.in_channels, width);
        let of_tile = e.mul(of_position, positions);
        let weights = e.linear([(of_tile, channels), (Int::Const(1), lane)], 0);
        let weights = e.f32_offset(self.buffers[1], weights);
        let [_, _, _, back] = w.matrices();
        let zero = e.f32_constant(0.0, Some(lanes));
        let start = vec![zero; (w.outputs * w.outputs) as usize];
        e.for_loop(0, s.in_channels, 1, &start, |e, c, sums| {
            let (block, own) = (e.div(c, lanes), e.rem(c, lanes));
            let base = [(Int::Const(1), corner), (self.input[1], block), (Int::Const(1), own)];
            let base = e.linear(base, 0);
            let base = e.f32_offset(self.buffers[0], base);
            let from = e.mul(c, width);
            let from = e.f32_offset(weights, from);
            let load = |position: i64| {
                let offset = e.mul(of_position, position);
                let address = e.f32_offset(from, offset);
                e.load_vector(address, lanes)
            };
            let transformed: Vec<_> = (0..positions).map(load).collect();
            let taps = transform(e, &back, &transformed, lanes);
            // One input after the other, so that only the weights and sums need registers.
            let mut sums = sums.to_vec();
            let inputs = self.load_at_border(e, base, at, |e, address| e.load_broadcast(address, lanes));
            for (i, &input) in inputs.iter().enumerate() {
                for (j, sum) in sums.iter_mut().enumerate() {
                    let (y, x) = (i as i64 / n - j as i64 / w.outputs, i as i64 % n - j as i64 % w.outputs);
                    if (0..3).contains(&y) && (0..3).contains(&x) {
                        *sum = e.fma(input, taps[(3 * y + x) as usize], *sum);
                    }
                }
            }
            sums
        })
    }
}

/// Returns whether an element of `vectors` is infinite or NaN. The product of zero and such an element is NaN.
fn not_all_finite<'c>(e: &mut Emitter<'c>, vectors: &[Val<'c>], lanes: i64) -> Val<'c> {
    let zero = e.f32_constant(0.0, Some(lanes));
    let sum = vectors.iter().fold(zero, |sum, &v| e.fma(v, zero, sum));
    let nan = e.cmpf("uno", sum, sum, Some(lanes));
    e.reduce_lanes("or", nan, false)
}

/// Returns T x Tᵀ for a square matrix `x` of vectors. All matrices are stored row by row. T may have more rows than columns, or fewer.
fn transform<'c>(e: &mut Emitter<'c>, t: &[Vec<f64>], x: &[Val<'c>], lanes: i64) -> Vec<Val<'c>> {
    let n = t.first().map_or(0, Vec::len);
    let half: Vec<Val<'c>> = t
        .iter()
        .flat_map(|row| {
            let columns: Vec<_> = (0..n)
                .map(|j| (0..n).map(|i| x[i * n + j]).collect::<Vec<_>>())
                .collect();
            columns.into_iter().map(|c| (row, c)).collect::<Vec<_>>()
        })
        .map(|(row, column)| weighted_sum(e, row, &column, lanes))
        .collect();
    let mut out = Vec::new();
    for row in half.chunks(n) {
        for weights in t {
            out.push(weighted_sum(e, weights, row, lanes));
        }
    }
    out
}

/// Returns Σ weights · values. Terms with weight 0 are omitted.
fn weighted_sum<'c>(e: &mut Emitter<'c>, weights: &[f64], values: &[Val<'c>], lanes: i64) -> Val<'c> {
    let mut sum: Option<Val<'c>> = None;
    // Positive terms first, so that a leading minus needs no negation.
    let terms = weights.iter().zip(values).filter(|(w, _)| **w > 0.0);
    let terms = terms.chain(weights.iter().zip(values).filter(|(w, _)| **w < 0.0));
    for (&w, &v) in terms {
        sum = Some(match (sum, w) {
            (None, 1.0) => v,
            (Some(s), 1.0) => e.binary("arith.addf", s, v),
            (Some(s), -1.0) => e.binary("arith.subf", s, v),
            (None, w) => {
                let w = e.f32_constant(w as f32, Some(lanes));
                e.binary("arith.mulf", w, v)
            }
            (Some(s), w) => {
                let w = e.f32_constant(w as f32, Some(lanes));
                e.fma(w, v, s)
            }
        });
    }
    match sum {
        Some(s) => s,
        None => e.f32_constant(0.0, Some(lanes)),
    }
}
