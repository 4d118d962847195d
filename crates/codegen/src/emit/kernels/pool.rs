//! Pooling: interior columns in tiles with unrolled taps, border columns one by one with loops over the taps.

use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::epilogue::{self, Position};
use crate::emit::family::EmitKernel;
use crate::emit::function::KernelFunction;
use crate::emit::window::{for_each_overlapping, interior, known, strides, taps};
use frazil_planner::kernel::{Axis, BlockedShape, EpilogueOperand, Pool, PoolKind};

/// Maximum width of a window whose taps are unrolled.
const MAX_UNROLLED: i64 = 16;

/// Addresses of the current task's operands, and its row.
struct Task<'c> {
    input: Val<'c>,
    output: Val<'c>,
    operands: Vec<Val<'c>>,
    y: Int<'c>,
}

/// The kernel, with values that all parts of the emitter use.
struct Plan<'c> {
    spec: Pool<Int<'c>>,
    /// Distances between rows and between channel blocks of the input, in elements.
    input: [Int<'c>; 2],
    /// Distances between rows and between channel blocks of the output, in elements.
    output: [Int<'c>; 2],
}

impl EmitKernel for Pool {
    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        let spec = self
            .map(&mut |n| function.number(*n))
            .with_kernel(self.constant_kernel());
        let e = &mut function.e;
        let plan = Plan {
            input: strides(e, &spec.input),
            output: strides(e, &spec.output),
            spec,
        };
        emit(function, &plan);
    }
}

/// Emits all tasks.
fn emit<'c>(kernel: &mut KernelFunction<'c>, plan: &Plan<'c>) {
    let spec = &plan.spec;
    let (input, output) = (&spec.input, &spec.output);
    let channel_blocks = kernel.e.div_ceil(input.channels, input.block);
    kernel.for_each_task(|e, buffers, task| {
        let at = e.delinearize(task, &[input.batch, channel_blocks, output.height]);
        let from = e.linear([(input.batch_stride, at[0]), (plan.input[1], at[1])], 0);
        let to = e.linear([(output.batch_stride, at[0]), (plan.output[1], at[1])], 0);
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
        row(e, plan, &task);
    });
}

fn axis<'c>(spec: &Pool<Int<'c>>, i: usize) -> Axis<Int<'c>> {
    let extent = |s: &BlockedShape<Int<'c>>| if i == 0 { s.height } else { s.width };
    Axis {
        kernel: spec.kernel[i],
        stride: spec.stride[i],
        padding: spec.padding[i],
        dilation: spec.dilation[i],
        input: extent(&spec.input),
        output: extent(&spec.output),
    }
}

fn row<'c>(e: &mut Emitter<'c>, plan: &Plan<'c>, task: &Task<'c>) {
    let spec = &plan.spec;
    let columns = axis(spec, 1);
    let kh = taps(e, &axis(spec, 0), task.y);
    let taps = spec.kernel[1].known().filter(|taps| *taps <= MAX_UNROLLED);
    let (start, end) = match taps {
        Some(_) => interior(e, &columns),
        None => (Int::Const(0), Int::Const(0)),
    };
    let width = e.target.machine.window.pool_columns.max(1);
    single_columns(e, plan, task, kh, (Int::Const(0), start));
    let taps = taps.unwrap_or(0);
    if let (Int::Const(start), Int::Const(end)) = (start, end) {
        let full = start + (end - start) / width * width;
        let none = Int::Const(0);
        e.for_each(start, full, width, |e, x| {
            tile(e, plan, task, (kh, taps), (x, none), width);
        });
        if full < end {
            tile(e, plan, task, (kh, taps), (Int::Const(full), none), end - full);
        }
        return single_columns(e, plan, task, kh, (Int::Const(end), columns.output));
    }
    // Fewer columns than a tile has are computed one by one.
    let count = e.sub(end, start);
    let fill_a_tile = e.compare("sge", count, width);
    let [start_value, end_value] = [start, end].map(|n| e.int(n));
    let end = Int::Dyn(e.select(fill_a_tile, end_value, start_value));
    for_each_overlapping(e, (start, end), width, |e, x, stored| {
        tile(e, plan, task, (kh, taps), (x, stored), width);
    });
    single_columns(e, plan, task, kh, (end, columns.output));
}

fn identity<'c>(e: &mut Emitter<'c>, spec: &Pool<Int<'c>>) -> Val<'c> {
    let start = if matches!(spec.kind, PoolKind::Max) {
        f32::NEG_INFINITY
    } else {
        0.0
    };
    e.f32_constant(start, Some(spec.input.block))
}

fn combine<'c>(e: &mut Emitter<'c>, spec: &Pool<Int<'c>>, acc: Val<'c>, value: Val<'c>) -> Val<'c> {
    match spec.kind {
        PoolKind::Max => e.nan_select("ogt", acc, value, Some(spec.input.block)),
        PoolKind::Average { .. } => e.binary("arith.addf", acc, value),
    }
}

/// Returns the address of the input that tap (kh, kw) of column `x` reads.
fn tap<'c>(e: &mut Emitter<'c>, plan: &Plan<'c>, task: &Task<'c>, kh: Int<'c>, x: Int<'c>, kw: Int<'c>) -> Val<'c> {
    let spec = &plan.spec;
    let y_in = e.linear([(spec.stride[0], task.y), (spec.dilation[0], kh)], -spec.padding[0]);
    let x_in = e.linear([(spec.stride[1], x), (spec.dilation[1], kw)], -spec.padding[1]);
    let offset = e.linear([(plan.input[0], y_in), (Int::Const(spec.input.block), x_in)], 0);
    e.f32_offset(task.input, offset)
}

fn single_columns<'c>(
    e: &mut Emitter<'c>,
    plan: &Plan<'c>,
    task: &Task<'c>,
    kh: (Int<'c>, Int<'c>),
    (start, end): (Int<'c>, Int<'c>),
) {
    let spec = &plan.spec;
    e.for_each(start, end, 1, |e, x| {
        let kw = taps(e, &axis(spec, 1), x);
        let start = identity(e, spec);
        let acc = e.for_loop(kh.0, kh.1, 1, &[start], |e, kh, acc| {
            e.for_loop(kw.0, kw.1, 1, acc, |e, kw, acc| {
                let address = tap(e, plan, task, kh, x, kw);
                let value = e.load_vector(address, spec.input.block);
                vec![combine(e, spec, acc[0], value)]
            })
        });
        store(e, plan, task, kh, x, 0, acc[0]);
    });
}

/// Emits `count` columns from `x` on, all of whose `taps` taps lie inside the rows of the input. Stores all but the first `stored` columns.
fn tile<'c>(
    e: &mut Emitter<'c>,
    plan: &Plan<'c>,
    task: &Task<'c>,
    (kh, taps): ((Int<'c>, Int<'c>), i64),
    (x, stored): (Int<'c>, Int<'c>),
    count: i64,
) {
    let spec = &plan.spec;
    let block = spec.input.block;
    let start = identity(e, spec);
    let acc = e.for_loop(kh.0, kh.1, 1, &vec![start; count as usize], |e, kh, acc| {
        let input = tap(e, plan, task, kh, x, Int::Const(0));
        let mut acc = acc.to_vec();
        for kw in 0..taps {
            for (j, a) in acc.iter_mut().enumerate() {
                let column = j as i64 * spec.stride[1] + kw * spec.dilation[1];
                let address = e.f32_offset(input, column * block);
                let value = e.load_vector(address, block);
                *a = combine(e, spec, *a, value);
            }
        }
        acc
    });
    epilogue::from_row(e, &acc, 1, stored, |e, j, _, a| store(e, plan, task, kh, x, j, a));
}

/// Divides the sum of column `x + j` if the pooling is an average, applies the epilogue, and stores the result.
fn store<'c>(
    e: &mut Emitter<'c>,
    plan: &Plan<'c>,
    task: &Task<'c>,
    kh: (Int<'c>, Int<'c>),
    x: Int<'c>,
    j: i64,
    acc: Val<'c>,
) {
    let spec = &plan.spec;
    let block = spec.input.block;
    let x = e.add(x, j);
    let value = match spec.kind {
        PoolKind::Max => acc,
        PoolKind::Average {
            count_include_pad,
            divisor,
        } => {
            let count = match divisor {
                Some(divisor) => divisor,
                None if count_include_pad => {
                    let rows = padded_extent(e, &axis(spec, 0), task.y);
                    let columns = padded_extent(e, &axis(spec, 1), x);
                    e.mul(rows, columns)
                }
                None => {
                    let rows = e.sub(kh.1, kh.0);
                    let kw = taps(e, &axis(spec, 1), x);
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
    let element = e.linear([(plan.output[0], task.y), (Int::Const(block), x)], 0);
    let at = Position {
        row: Int::Const(0),
        channel: Int::Const(0),
        element,
        mask: None,
    };
    let value = epilogue::apply(e, &spec.epilogue, &task.operands, value, block, &at);
    epilogue::store(e, value, task.output, element, None);
}

/// Returns the number of taps of output `y` that lie inside the input with its padding on both sides.
fn padded_extent<'c>(e: &mut Emitter<'c>, axis: &Axis<Int<'c>>, y: Int<'c>) -> Int<'c> {
    let fits = |a: Axis| (a.output - 1) * a.stride + a.kernel <= a.input + 2 * a.padding;
    if known(axis).is_some_and(fits) {
        return axis.kernel;
    }
    let start = e.mul(y, axis.stride);
    let end = e.add(axis.input, 2 * axis.padding);
    let left = e.sub(end, start);
    e.min(left, axis.kernel)
}
