//! The function of a phase of a kernel, while it is emitted.

use super::builder::{Emitter, Int, Val};
use frazil_planner::target::Machine;

/// The function of one phase: its emitter, its buffers, its integers, and its range of tasks.
pub struct KernelFunction<'c> {
    /// The emitter, at the start of the function.
    pub e: Emitter<'c>,
    /// The address of each buffer.
    pub buffers: Vec<Val<'c>>,
    /// The kernel's integers that are arguments of the code; `None` for constants.
    pub(super) numbers: Vec<Option<Val<'c>>>,
    pub(super) next_number: usize,
    pub(super) begin: Val<'c>,
    pub(super) end: Val<'c>,
}

impl<'c> KernelFunction<'c> {
    /// Returns the kernel's next integer, whose value is `value`: as a constant of the code, or as an argument. Must be called in the order in which the
    /// kernel lists its integers.
    pub fn number(&mut self, value: i64) -> Int<'c> {
        let number = self.numbers.get(self.next_number).copied().flatten();
        self.next_number += 1;
        number.map_or(Int::Const(value), Int::Dyn)
    }

    /// Emits the loop over the tasks. `body` receives the index of the task.
    pub fn for_each_task(&mut self, body: impl FnOnce(&mut Emitter<'c>, &[Val<'c>], Int<'c>)) {
        let KernelFunction {
            e, buffers, begin, end, ..
        } = self;
        e.for_each(Int::Dyn(*begin), Int::Dyn(*end), 1, |e, task| body(e, buffers, task));
    }
}

/// A bool that may be known while emitting.
#[derive(Clone, Copy)]
pub(super) enum Condition<'c> {
    /// A constant.
    Known(bool),
    /// An `i1` value.
    Dyn(Val<'c>),
}

/// The number of parts of an image of `row_blocks` blocks of rows: the most that divide it, see [`image_task`].
fn image_parts<'c>(e: &mut Emitter<'c>, row_blocks: Int<'c>, rows_first: Condition<'c>) -> Int<'c> {
    let most = e.target.machine.partition.image_parts;
    let mut parts = match (row_blocks, rows_first) {
        (_, Condition::Known(false)) => return Int::Const(1),
        (Int::Const(n), Condition::Known(true)) => {
            let divides = |parts: &i64| n % parts == 0;
            return Int::Const((2..=most).rev().find(divides).unwrap_or(n));
        }
        _ => row_blocks,
    };
    for count in 2..=most {
        let rest = e.rem(row_blocks, count);
        let divides = e.compare("eq", rest, 0);
        let (count, fewer) = (e.int(Int::Const(count)), e.int(parts));
        parts = Int::Dyn(e.select(divides, count, fewer));
    }
    match rows_first {
        Condition::Known(_) => parts,
        Condition::Dyn(rows_first) => {
            let (parts, one) = (e.int(parts), e.int(Int::Const(1)));
            Int::Dyn(e.select(rows_first, parts, one))
        }
    }
}

/// Returns the image, tile of channels and block of rows of `task`. `[images, tiles, row_blocks]` are their numbers.
///
/// With `rows_first`, an image is divided into a few parts, and all channels of a part are computed before the next part. So with two, four, ... threads,
/// each thread has the same rows in consecutive kernels and finds them in its cache. More parts would read the weights more often.
pub(super) fn image_task<'c>(
    e: &mut Emitter<'c>,
    task: Int<'c>,
    [images, tiles, row_blocks]: [Int<'c>; 3],
    rows_first: Condition<'c>,
) -> [Int<'c>; 3] {
    let parts = image_parts(e, row_blocks, rows_first);
    let each = e.div(row_blocks, parts);
    let at = e.delinearize(task, &[images, parts, tiles, each]);
    let row_block = e.linear([(each, at[1]), (Int::Const(1), at[3])], 0);
    [at[0], at[2], row_block]
}

/// Returns the number of parts into which the next weights are split for prefetching: a power of two, 1 when prefetching is not worthwhile. Each of the
/// `passes` passes over the current weights prefetches one part; one step of a pass prefetches at most `lines` cache lines.
pub(super) fn prefetch_parts(machine: &Machine, passes: i64, lines: i64) -> i64 {
    let most = passes.min(lines).min(machine.partition.prefetch_parts).max(1);
    1 << most.ilog2()
}
