//! Depthwise convolution: a tile of output columns of one channel block, weights and inputs as vectors.

use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::epilogue::{self, Position};
use crate::emit::family::EmitKernel;
use crate::emit::function::{KernelFunction, image_task};
use crate::emit::window::{Axis, Tiles};
use frazil_planner::kernel::{Depthwise, EpilogueOperand};

/// Tiles at the border that are emitted separately; with more, border columns are done one by one.
const MAX_BORDER_TILES: usize = 6;

/// The current task's operands.
struct Task<'c> {
    input: Val<'c>,
    weights: Val<'c>,
    output: Val<'c>,
    operands: Vec<Val<'c>>,
}

impl EmitKernel for Depthwise {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        emit(function, self);
    }
}

/// Emits all tasks.
fn emit(kernel: &mut KernelFunction<'_>, spec: &Depthwise) {
    let (input, output) = (spec.input_shape(), spec.output_shape());
    let s = &spec.shape;
    kernel.for_each_task(|e, buffers, task| {
        let row_blocks = (output.height + spec.rows - 1) / spec.rows;
        let at = image_task(e, task, [s.batch, output.channel_blocks(), row_blocks], true);
        let from = e.linear([(input.batch_stride, at[0]), (input.plane_elements(), at[1])], 0);
        let to = e.linear([(output.batch_stride, at[0]), (output.plane_elements(), at[1])], 0);
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
        e.for_each(first, end, 1, |e, y| row(e, spec, &task, y));
    });
}

fn axis(spec: &Depthwise, i: usize) -> Axis {
    let s = &spec.shape;
    Axis {
        kernel: s.kernel[i],
        stride: s.stride[i],
        padding: s.padding[i],
        dilation: s.dilation[i],
        input: s.input[i],
        output: s.output[i],
    }
}

fn row<'c>(e: &mut Emitter<'c>, spec: &Depthwise, task: &Task<'c>, y: Int<'c>) {
    let columns = axis(spec, 1);
    let kh = axis(spec, 0).taps(e, y);
    let all = |_: i64, _: i64| true;
    if let Some(Tiles { interior, border }) = columns.tiles(spec.columns, MAX_BORDER_TILES) {
        e.for_each(interior.start, interior.end, spec.columns, |e, x| {
            tile(e, spec, task, (y, x), kh, spec.columns, &all);
        });
        for (x0, count) in border {
            let inside = |j: i64, kw: i64| columns.is_inside(x0 + j, kw);
            tile(e, spec, task, (y, Int::Const(x0)), kh, count, &inside);
        }
        return;
    }
    // Wide windows on narrow rows: column by column, with the taps as a loop.
    e.for_each(0, spec.shape.output[1], 1, |e, x| {
        let kw = columns.taps(e, x);
        let zero = e.f32_constant(0.0, Some(spec.block));
        let acc = e.for_loop(kh.0, kh.1, 1, &[zero], |e, kh, acc| {
            e.for_loop(kw.0, kw.1, 1, acc, |e, kw, acc| {
                let (input, weights) = tap_addresses(e, spec, task, (y, x), kh, kw);
                let (v, w) = (e.load_vector(input, spec.block), e.load_vector(weights, spec.block));
                vec![e.fma(v, w, acc[0])]
            })
        });
        store(e, spec, task, (y, x), &acc);
    });
}

/// The input and weights that tap (kh, kw) of output (y, x) reads.
fn tap_addresses<'c>(
    e: &mut Emitter<'c>,
    spec: &Depthwise,
    task: &Task<'c>,
    (y, x): (Int<'c>, Int<'c>),
    kh: Int<'c>,
    kw: Int<'c>,
) -> (Val<'c>, Val<'c>) {
    let s = &spec.shape;
    let y_in = e.linear([(s.stride[0], y), (s.dilation[0], kh)], -s.padding[0]);
    let x_in = e.linear([(s.stride[1], x), (s.dilation[1], kw)], -s.padding[1]);
    let offset = e.linear([(s.input[1] * spec.block, y_in), (spec.block, x_in)], 0);
    let weight = e.linear([(s.kernel[1] * spec.block, kh), (spec.block, kw)], 0);
    (e.f32_offset(task.input, offset), e.f32_offset(task.weights, weight))
}

/// `count` columns at (y, x). Each input vector is loaded once a row, and used by all taps that want it.
fn tile<'c>(
    e: &mut Emitter<'c>,
    spec: &Depthwise,
    task: &Task<'c>,
    (y, x): (Int<'c>, Int<'c>),
    kh: (Int<'c>, Int<'c>),
    count: i64,
    inside: &dyn Fn(i64, i64) -> bool,
) {
    let s = &spec.shape;
    let (b, kernel, stride, dilation) = (spec.block, s.kernel[1], s.stride[1], s.dilation[1]);
    let zero = e.f32_constant(0.0, Some(b));
    let acc = e.for_loop(kh.0, kh.1, 1, &vec![zero; count as usize], |e, kh, acc| {
        let (input, weights) = tap_addresses(e, spec, task, (y, x), kh, Int::Const(0));
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
                if from_tap % stride != 0 || !(0..count).contains(&j) || !inside(j, kw) {
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
    store(e, spec, task, (y, x), &acc);
}

fn store<'c>(e: &mut Emitter<'c>, spec: &Depthwise, task: &Task<'c>, (y, x): (Int<'c>, Int<'c>), acc: &[Val<'c>]) {
    let base = e.linear([(spec.shape.output[1] * spec.block, y), (spec.block, x)], 0);
    let position = |e: &mut Emitter<'c>, j: Int<'c>, _: i64| Position {
        row: Int::Const(0),
        channel: Int::Const(0),
        element: e.linear([(1, base), (spec.block, j)], 0),
        mask: None,
    };
    let to = (task.operands.as_slice(), task.output);
    epilogue::finish(e, &spec.epilogue, to, (acc, 1, spec.block), position);
}
