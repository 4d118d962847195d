//! Division of the rows of a task into register tiles.

use super::{Task, div_ceil};
use crate::emit::builder::{Emitter, Int};
use frazil_planner::kernel::Gemm;

/// Emits the row tiles of a task: tiles of full height in a loop, then the other tiles, which only the last task of a column can have.
pub(super) fn for_row_tiles<'c>(
    e: &mut Emitter<'c>,
    gemm: &Gemm<Int<'c>>,
    task: &Task<'c>,
    body: impl Fn(&mut Emitter<'c>, Int<'c>, i64),
) {
    let height = gemm.tile.rows;
    let Some(last_rows) = last_rows(gemm) else {
        return for_any_rows(e, gemm, task.rows, &body);
    };
    let last = gemm.tile.row_tiles(last_rows);
    // A task's rows are a multiple of the height, or those of the last task.
    let last_full = last.full * height;
    let (full, is_last) = match task.rows {
        Int::Const(_) => (Int::Const(last_full), None),
        rows => {
            let is_last = e.compare("ne", rows, gemm.tile.m_task);
            let (in_last, in_others) = (e.int(Int::Const(last_full)), e.int(rows));
            (Int::Dyn(e.select(is_last, in_last, in_others)), Some(is_last))
        }
    };
    e.for_each(0, full, height, |e, row| body(e, row, height));
    let others = |e: &mut Emitter<'c>| {
        let end = last_full + last.shorter * (height - 1);
        e.for_each(last_full, end, height - 1, |e, row| body(e, row, height - 1));
        if last.rest > 0 {
            body(e, Int::Const(last_full), last.rest);
        }
    };
    match is_last {
        _ if last.shorter == 0 && last.rest == 0 => {}
        Some(is_last) => e.if_then(is_last, others),
        None => others(e),
    }
}

/// Emits the row tiles of a task with any number of rows, as [`AnyRows`](frazil_planner::kernel::AnyRows) divides them: full tiles in a loop, then smaller tiles
/// in a loop with code for each height.
fn for_any_rows<'c>(
    e: &mut Emitter<'c>,
    gemm: &Gemm<Int<'c>>,
    rows: Int<'c>,
    body: &impl Fn(&mut Emitter<'c>, Int<'c>, i64),
) {
    let division = gemm.tile.any_rows(e.target.machine);
    let all_full = e.round_down(rows, division.full);
    let rest = e.sub(rows, all_full);
    // Between 1 and `fewest - 1`: 0 becomes the largest unsigned integer.
    let before = e.sub(rest, 1);
    let is_few = e.compare("ult", before, division.fewest - 1);
    let fewer = e.sub(all_full, division.full);
    let fewer = e.max(fewer, 0);
    let (fewer, all_full) = (e.int(fewer), e.int(all_full));
    let full = Int::Dyn(e.select(is_few, fewer, all_full));
    e.for_each(0, full, division.full, |e, row| body(e, row, division.full));
    let rest = e.sub(rows, full);
    let tiles = e.div_ceil(rest, division.smaller);
    let divisor = e.max(tiles, 1);
    let (least, larger) = (e.div(rest, divisor), e.rem(rest, divisor));
    // The first `larger` tiles have one row more than the others.
    e.for_each(0, tiles, 1, |e, tile| {
        let more = e.min(tile, larger);
        let row = e.linear([(least, tile), (Int::Const(1), more), (Int::Const(1), full)], 0);
        let is_larger = e.compare("slt", tile, larger);
        let height = [1, 0].map(|n| e.int(Int::Const(n)));
        let height = Int::Dyn(e.select(is_larger, height[0], height[1]));
        let height = e.add(height, least);
        for known in 1..=division.smaller {
            let is_height = e.compare("eq", height, known);
            e.if_then(is_height, |e| body(e, row, known));
        }
    });
}

/// Returns the number of rows of the last task of a column, if it is a constant of the code.
pub(super) fn last_rows(gemm: &Gemm<Int<'_>>) -> Option<i64> {
    let (m, m_task) = (gemm.m.known()?, gemm.tile.m_task.known()?);
    Some(m - (div_ceil(m, m_task) - 1).max(0) * m_task)
}
