//! Depthwise convolution. A register tile consists of adjacent output columns of one channel block; weights and inputs are loaded as vectors of channels.

use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::epilogue::{self, Position};
use crate::emit::family::EmitKernel;
use crate::emit::function::{Condition, KernelFunction, image_task};
use crate::emit::window::{RowTile, for_each_tile, strides, taps};
use frazil_planner::kernel::{Axis, Depthwise, EpilogueOperand, RowTiling};

/// Maximum number of border tiles that are emitted separately. If there are more, all columns of a row are computed one by one.
const MAX_BORDER_TILES: usize = 6;

/// Addresses of the current task's operands.
struct Task<'c> {
    input: Val<'c>,
    weights: Val<'c>,
    output: Val<'c>,
    operands: Vec<Val<'c>>,
}

/// The kernel, with values that all parts of the emitter use.
struct Plan<'c> {
    spec: Depthwise<Int<'c>>,
    /// Division of a row of outputs into tiles.
    tiling: RowTiling,
    /// Row stride and channel-block stride of the input, in elements.
    input: [Int<'c>; 2],
    /// Row stride and channel-block stride of the output, in elements.
    output: [Int<'c>; 2],
}

impl EmitKernel for Depthwise {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        let spec = self.map(&mut |n| function.number(*n));
        let e = &mut function.e;
        let plan = Plan {
            input: strides(e, &spec.input_shape()),
            output: strides(e, &spec.output_shape()),
            tiling: self.row_tiling(),
            spec,
        };
        emit(function, &plan);
    }
}

/// Emits all tasks.
fn emit<'c>(kernel: &mut KernelFunction<'c>, plan: &Plan<'c>) {
    let spec = &plan.spec;
    let (input, output) = (spec.input_shape(), spec.output_shape());
    let s = &spec.shape;
    let row_blocks = kernel.e.div_ceil(output.height, spec.rows);
    let channel_blocks = kernel.e.div_ceil(output.channels, output.block);
    let counts = [s.batch, channel_blocks, row_blocks];
    kernel.for_each_task(|e, buffers, task| {
        let at = image_task(e, task, counts, Condition::Known(true));
        let from = e.linear([(input.batch_stride, at[0]), (plan.input[1], at[1])], 0);
        let to = e.linear([(output.batch_stride, at[0]), (plan.output[1], at[1])], 0);
        let weights = e.mul(at[1], s.kernel[0] * s.kernel[1] * spec.block);
        let last = buffers.len() - 1;
        let channel = e.mul(at[1], spec.block);
        let operands = spec
            .epilogue
            .operands
            .iter()
            .zip(&buffers[2..last])
            .map(|(kind, &base)| match kind {
                EpilogueOperand::Channel => e.f32_offset(base, channel),
                EpilogueOperand::Elementwise => e.f32_offset(base, to),
                EpilogueOperand::Scalar | EpilogueOperand::Row => base,
            });
        let operands = operands.collect();
        let task = Task {
            input: e.f32_offset(buffers[0], from),
            weights: e.f32_offset(buffers[1], weights),
            output: e.f32_offset(buffers[last], to),
            operands,
        };
        let first = e.mul(at[2], spec.rows);
        let end = e.add(first, spec.rows);
        let end = e.min(end, output.height);
        e.for_each(first, end, 1, |e, y| row(e, plan, &task, y));
    });
}

fn row<'c>(e: &mut Emitter<'c>, plan: &Plan<'c>, task: &Task<'c>, y: Int<'c>) {
    let spec = &plan.spec;
    let columns = Axis::of(&spec.shape, 1);
    let kh = taps(e, &Axis::of(&spec.shape, 0), y);
    let tiles = (plan.tiling, MAX_BORDER_TILES);
    if for_each_tile(e, &columns, tiles, |e, t| tile(e, plan, task, y, kh, &t)) {
        return;
    }
    // Wide windows on narrow rows: the columns one by one, with loops over the taps.
    e.for_each(0, spec.shape.output[1], 1, |e, x| {
        let kw = taps(e, &columns, x);
        let zero = e.f32_constant(0.0, Some(spec.block));
        let acc = e.for_loop(kh.0, kh.1, 1, &[zero], |e, kh, acc| {
            e.for_loop(kw.0, kw.1, 1, acc, |e, kw, acc| {
                let (input, weights) = tap_addresses(e, plan, task, (y, x), kh, kw);
                let (v, w) = (e.load_vector(input, spec.block), e.load_vector(weights, spec.block));
                vec![e.fma(v, w, acc[0])]
            })
        });
        store(e, plan, task, (y, x), Int::Const(0), &acc);
    });
}

/// Returns the addresses of the input and of the weights that tap (kh, kw) of output (y, x) reads.
fn tap_addresses<'c>(
    e: &mut Emitter<'c>,
    plan: &Plan<'c>,
    task: &Task<'c>,
    (y, x): (Int<'c>, Int<'c>),
    kh: Int<'c>,
    kw: Int<'c>,
) -> (Val<'c>, Val<'c>) {
    let (s, block) = (&plan.spec.shape, plan.spec.block);
    let y_in = e.linear([(s.stride[0], y), (s.dilation[0], kh)], -s.padding[0]);
    let x_in = e.linear([(s.stride[1], x), (s.dilation[1], kw)], -s.padding[1]);
    let offset = e.linear([(plan.input[0], y_in), (Int::Const(block), x_in)], 0);
    let weight = e.linear([(s.kernel[1] * block, kh), (block, kw)], 0);
    (e.f32_offset(task.input, offset), e.f32_offset(task.weights, weight))
}

/// Emits code that computes the output columns of `tile` in row `y`. Each input vector is loaded once per row of taps, for all taps that read it.
fn tile<'c>(
    e: &mut Emitter<'c>,
    plan: &Plan<'c>,
    task: &Task<'c>,
    y: Int<'c>,
    kh: (Int<'c>, Int<'c>),
    tile: &RowTile<'c>,
) {
    let s = &plan.spec.shape;
    let (b, kernel, stride, dilation) = (plan.spec.block, s.kernel[1], s.stride[1], s.dilation[1]);
    let (x, count) = (tile.x, tile.width);
    let valid: Vec<_> = (0..kernel).map(|kw| tile.valid(kw)).collect();
    let zero = e.f32_constant(0.0, Some(b));
    let acc = e.for_loop(kh.0, kh.1, 1, &vec![zero; count as usize], |e, kh, acc| {
        let (input, weights) = tap_addresses(e, plan, task, (y, x), kh, Int::Const(0));
        let weights: Vec<_> = (0..kernel)
            .map(|kw| {
                let address = e.f32_offset(weights, kw * b);
                e.load_vector(address, b)
            })
            .collect();
        let mut acc = acc.to_vec();
        for column in 0..(count - 1) * stride + (kernel - 1) * dilation + 1 {
            let mut value = None;
            for kw in 0..kernel {
                let from_tap = column - kw * dilation;
                let j = from_tap.div_euclid(stride);
                if from_tap % stride != 0 || !valid[kw as usize].contains(&j) {
                    continue;
                }
                let v = *value.get_or_insert_with(|| {
                    let address = e.f32_offset(input, column * b);
                    e.load_vector(address, b)
                });
                acc[j as usize] = e.fma(v, weights[kw as usize], acc[j as usize]);
            }
        }
        acc
    });
    store(e, plan, task, (y, x), tile.stored, &acc);
}

/// Applies the epilogue to the accumulators `acc` of the output columns from `x` on, one vector per column, and stores the results. The first `stored` columns
/// are not stored, because an earlier tile has stored them.
fn store<'c>(
    e: &mut Emitter<'c>,
    plan: &Plan<'c>,
    task: &Task<'c>,
    (y, x): (Int<'c>, Int<'c>),
    stored: Int<'c>,
    acc: &[Val<'c>],
) {
    let block = plan.spec.block;
    let base = e.linear([(plan.output[0], y), (Int::Const(block), x)], 0);
    let position = |e: &mut Emitter<'c>, j: Int<'c>, _: i64| Position {
        row: Int::Const(0),
        channel: Int::Const(0),
        element: e.linear([(1, base), (block, j)], 0),
        mask: None,
    };
    let to = (task.operands.as_slice(), task.output);
    epilogue::finish(e, &plan.spec.epilogue, to, (acc, 1, block), stored, position);
}
