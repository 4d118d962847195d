//! Pooling: interior columns in tiles with the taps unrolled, border columns one by one with the taps as loops.

use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::epilogue::{self, Position};
use crate::emit::family::EmitKernel;
use crate::emit::function::KernelFunction;
use crate::emit::window::Axis;
use frazil_planner::kernel::{EpilogueOperand, Pool, PoolKind};

/// Widest window whose taps are unrolled.
const MAX_UNROLLED: i64 = 16;

/// The current task's operands.
struct Task<'c> {
    input: Val<'c>,
    output: Val<'c>,
    operands: Vec<Val<'c>>,
    y: Int<'c>,
}

impl EmitKernel for Pool {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        emit(function, self);
    }
}

/// Emits all tasks.
fn emit(kernel: &mut KernelFunction<'_>, spec: &Pool) {
    let (input, output) = (&spec.input, &spec.output);
    kernel.for_each_task(|e, buffers, task| {
        let at = e.delinearize(task, &[input.batch, input.channel_blocks(), output.height]);
        let from = e.linear([(input.batch_stride, at[0]), (input.plane_elements(), at[1])], 0);
        let to = e.linear([(output.batch_stride, at[0]), (output.plane_elements(), at[1])], 0);
        let last = buffers.len() - 1;
        let channel = e.mul(at[1], input.block);
        let operands = spec
            .epilogue
            .operands
            .iter()
            .zip(&buffers[1..last])
            .map(|(kind, &base)| match kind {
                EpilogueOperand::Channel => e.f32_offset(base, channel),
                EpilogueOperand::Elementwise => e.f32_offset(base, to),
                EpilogueOperand::Scalar | EpilogueOperand::Row => base,
            });
        let operands = operands.collect();
        let task = Task {
            input: e.f32_offset(buffers[0], from),
            output: e.f32_offset(buffers[last], to),
            operands,
            y: at[2],
        };
        row(e, spec, &task);
    });
}

fn axis(spec: &Pool, i: usize) -> Axis {
    let extent = |s: &frazil_planner::kernel::BlockedShape| if i == 0 { s.height } else { s.width };
    Axis {
        kernel: spec.kernel[i],
        stride: spec.stride[i],
        padding: spec.padding[i],
        dilation: spec.dilation[i],
        input: extent(&spec.input),
        output: extent(&spec.output),
    }
}

fn row<'c>(e: &mut Emitter<'c>, spec: &Pool, task: &Task<'c>) {
    let columns = axis(spec, 1);
    let kh = axis(spec, 0).taps(e, task.y);
    let interior = if spec.kernel[1] <= MAX_UNROLLED {
        columns.interior()
    } else {
        0..0
    };
    let tile_columns = e.target.machine.window.pool_columns.max(1);
    let full = interior.start + (interior.end - interior.start) / tile_columns * tile_columns;
    single_columns(e, spec, task, kh, 0..interior.start);
    e.for_each(interior.start, full, tile_columns, |e, x| {
        tile(e, spec, task, kh, x, tile_columns)
    });
    if full < interior.end {
        tile(e, spec, task, kh, Int::Const(full), interior.end - full);
    }
    single_columns(e, spec, task, kh, interior.end..columns.output);
}

fn identity<'c>(e: &mut Emitter<'c>, spec: &Pool) -> Val<'c> {
    let start = if spec.kind == PoolKind::Max {
        f32::NEG_INFINITY
    } else {
        0.0
    };
    e.f32_constant(start, Some(spec.input.block))
}

fn combine<'c>(e: &mut Emitter<'c>, spec: &Pool, acc: Val<'c>, value: Val<'c>) -> Val<'c> {
    match spec.kind {
        PoolKind::Max => e.nan_select("ogt", acc, value, Some(spec.input.block)),
        PoolKind::Average { .. } => e.binary("arith.addf", acc, value),
    }
}

/// Address of the input of tap (kh, kw) of column x.
fn tap<'c>(e: &mut Emitter<'c>, spec: &Pool, task: &Task<'c>, kh: Int<'c>, x: Int<'c>, kw: Int<'c>) -> Val<'c> {
    let y_in = e.linear([(spec.stride[0], task.y), (spec.dilation[0], kh)], -spec.padding[0]);
    let x_in = e.linear([(spec.stride[1], x), (spec.dilation[1], kw)], -spec.padding[1]);
    let offset = e.linear([(spec.input.row_elements(), y_in), (spec.input.block, x_in)], 0);
    e.f32_offset(task.input, offset)
}

fn single_columns<'c>(
    e: &mut Emitter<'c>,
    spec: &Pool,
    task: &Task<'c>,
    kh: (Int<'c>, Int<'c>),
    columns: std::ops::Range<i64>,
) {
    e.for_each(columns.start, columns.end, 1, |e, x| {
        let kw = axis(spec, 1).taps(e, x);
        let start = identity(e, spec);
        let acc = e.for_loop(kh.0, kh.1, 1, &[start], |e, kh, acc| {
            e.for_loop(kw.0, kw.1, 1, acc, |e, kw, acc| {
                let address = tap(e, spec, task, kh, x, kw);
                let value = e.load_vector(address, spec.input.block);
                vec![combine(e, spec, acc[0], value)]
            })
        });
        store(e, spec, task, kh, x, 0, acc[0]);
    });
}

/// `count` columns at `x`, all of whose taps lie inside the rows that they touch.
fn tile<'c>(e: &mut Emitter<'c>, spec: &Pool, task: &Task<'c>, kh: (Int<'c>, Int<'c>), x: Int<'c>, count: i64) {
    let block = spec.input.block;
    let start = identity(e, spec);
    let acc = e.for_loop(kh.0, kh.1, 1, &vec![start; count as usize], |e, kh, acc| {
        let input = tap(e, spec, task, kh, x, Int::Const(0));
        let mut acc = acc.to_vec();
        for kw in 0..spec.kernel[1] {
            for (j, a) in acc.iter_mut().enumerate() {
                let column = j as i64 * spec.stride[1] + kw * spec.dilation[1];
                let address = e.f32_offset(input, column * block);
                let value = e.load_vector(address, block);
                *a = combine(e, spec, *a, value);
            }
        }
        acc
    });
    for (j, a) in acc.into_iter().enumerate() {
        store(e, spec, task, kh, x, j as i64, a);
    }
}

/// Finishes and stores column `x + j`.
fn store<'c>(
    e: &mut Emitter<'c>,
    spec: &Pool,
    task: &Task<'c>,
    kh: (Int<'c>, Int<'c>),
    x: Int<'c>,
    j: i64,
    acc: Val<'c>,
) {
    let block = spec.input.block;
    let x = e.add(x, j);
    let value = match spec.kind {
        PoolKind::Max => acc,
        PoolKind::Average {
            count_include_pad,
            divisor,
        } => {
            let count = match divisor {
                Some(d) => Int::Const(d),
                None if count_include_pad => {
                    let rows = padded_extent(e, &axis(spec, 0), task.y);
                    let columns = padded_extent(e, &axis(spec, 1), x);
                    e.mul(rows, columns)
                }
                None => {
                    let rows = e.sub(kh.1, kh.0);
                    let kw = axis(spec, 1).taps(e, x);
                    let columns = e.sub(kw.1, kw.0);
                    e.mul(rows, columns)
                }
            };
            let count = match count {
                Int::Const(n) => e.f32_constant(n as f32, Some(block)),
                count => {
                    let count = e.int(count);
                    let f32 = e.f32();
                    let count = e.op1("arith.sitofp", &[count], f32);
                    e.broadcast(count, block)
                }
            };
            e.binary("arith.divf", acc, count)
        }
    };
    let element = e.linear([(spec.output.row_elements(), task.y), (block, x)], 0);
    let at = Position {
        row: Int::Const(0),
        channel: Int::Const(0),
        element,
        mask: None,
    };
    let value = epilogue::apply(e, &spec.epilogue, &task.operands, value, block, &at);
    epilogue::store(e, value, task.output, element, None);
}

/// Taps of output `y` that lie inside the input with its padding on both sides.
fn padded_extent<'c>(e: &mut Emitter<'c>, axis: &Axis, y: Int<'c>) -> Int<'c> {
    if (axis.output - 1) * axis.stride + axis.kernel <= axis.input + 2 * axis.padding {
        return Int::Const(axis.kernel);
    }
    let start = e.mul(y, axis.stride);
    let left = e.sub(axis.input + 2 * axis.padding, start);
    e.min(left, axis.kernel)
}
