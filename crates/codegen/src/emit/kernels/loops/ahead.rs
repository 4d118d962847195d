//! Prefetching of rows for the next task.
//!
//! The first stage of a kernel with several stages reads the task's row. The other stages compute and leave the memory idle, and the processor's prefetchers do
//! not detect the next row before it is read.

use super::{Nest, Point, Vectorised};
use crate::emit::builder::{Emitter, Int, Val};
use frazil_planner::kernel::{Place, Read, Stage};

/// Returns the rows of the task after `task` that the loop of the nest's stage prefetches: the address and the element size in bytes of each row that the stages
/// before it read. Empty unless the stage is the first one after stage 0 with a vectorised loop of constant extent.
pub(super) fn rows<'c>(e: &mut Emitter<'c>, nest: &Nest<'_, 'c>, task: Int<'c>) -> Vec<(Val<'c>, i64)> {
    let (spec, number) = (nest.spec, nest.number);
    let hosts = |n: usize| {
        let inner = Nest {
            number: n,
            stage: &spec.stages[n],
            ahead: Vec::new(),
            ..*nest
        };
        let kind = inner.vectorised();
        inner.vector_extent().filter(|_| kind != Vectorised::No)
    };
    let first = (1..spec.stages.len()).find_map(|n| Some((n, hosts(n)?)));
    let Some((_, extent)) = first.filter(|(n, _)| *n == number) else {
        return Vec::new();
    };
    let mut rows: Vec<&Read<Int<'c>>> = Vec::new();
    for stage in &spec.stages[..number] {
        for read in stage
            .inputs
            .iter()
            .filter(|r| is_row(r, stage, spec.outer.len(), extent))
        {
            if !rows.iter().any(|r| r.place == read.place) {
                rows.push(read);
            }
        }
    }
    let task = e.add(task, 1);
    let outer = e.delinearize(task, &spec.outer);
    rows.into_iter()
        .map(|read| {
            let mut at = outer.clone();
            at.resize(read.index.coefficients.len(), Int::Const(0));
            let point = Point {
                at,
                vector: None,
                mask: None,
            };
            let address = nest.address(e, read.place, &read.index, &point, Int::Const(0));
            (address, nest.dtype(read.place).size() as i64)
        })
        .collect()
}

/// Returns true if each task reads `extent` contiguous elements of a buffer, and the previous task does not read them.
fn is_row(read: &Read<Int<'_>>, stage: &Stage<Int<'_>>, outer: usize, extent: i64) -> bool {
    let loops = stage.inner.iter().chain(&stage.reduction).map(|n| n.known());
    let (before, inside) = read.index.coefficients.split_at(outer);
    matches!(read.place, Place::Argument(_))
        && loops.eq([Some(extent)])
        && inside.iter().map(|n| n.known()).eq([Some(1)])
        && before
            .last()
            .is_some_and(|c| c.known().is_none_or(|c| c.abs() >= extent))
        && read.guards.is_empty()
        && read.indirect.is_empty()
}

/// Emits prefetches of elements `i..i + width` of each row.
pub(super) fn fetch<'c>(e: &mut Emitter<'c>, rows: &[(Val<'c>, i64)], i: Int<'c>, width: i64) {
    let machine = e.target.machine;
    for &(row, size) in rows {
        let start = e.offset(row, i, size);
        for byte in (0..width * size).step_by(machine.caches.line.max(1) as usize) {
            let line = e.offset(start, byte, 1);
            e.prefetch(line, machine.loops.row_locality);
        }
    }
}
