//! Loop nests as [`Loops`] kernels: strides resolved, loops joined where memory runs on, tasks chosen.

use crate::affine::{linear, stays_within};
use crate::graph::{TensorGraph, accesses};
use crate::kernel::{Guard, Loops, Place, Read, Stage, Write};
use frazil_runtime::expr::{Expr, ExprOp, Number};
use frazil_runtime::structured::{Access, Affine, Dims, OutOfBounds, Structured, TensorId};

/// Scalar iterations below which work is not split into tasks.
const SMALL: i64 = 1 << 15;
/// Scalar iterations of a task.
const TASK: i64 = 1 << 13;

/// The kernel that computes `s` from dense row-major tensors into a dense row-major result, and the tensors that it reads: its
/// arguments but the last, which is the result.
pub(super) fn plain(graph: &TensorGraph, s: &Structured, lanes: i64) -> (Loops, Vec<TensorId>) {
    let mut tensors: Vec<TensorId> = Vec::new();
    for access in accesses(s) {
        if !tensors.contains(&access.tensor) {
            tensors.push(access.tensor);
        }
    }
    let place = |t: TensorId| Place::Argument(tensors.iter().position(|&u| u == t).unwrap_or(0) as u32);
    let read = |a: &Access| read_of(graph, a, &s.domain, place(a.tensor));
    let parallel = s.parallel_rank();
    let rank = s.domain.len();
    let result: Vec<Affine> = (0..parallel).map(|l| Affine::index(rank, l)).collect();
    let stage = Stage {
        inner: s.domain[..parallel].into(),
        reduction: s.domain[parallel..].into(),
        inputs: s.inputs.iter().map(read).collect(),
        body: s.body.clone(),
        combine: s.combine,
        accumulate: s.accumulate,
        finish: s.finish.clone(),
        finish_inputs: s.finish_inputs.iter().map(read).collect(),
        indices: (0..index_count(s)).map(|l| Affine::index(rank, l)).collect(),
        output: Write {
            place: Place::Argument(tensors.len() as u32),
            index: linear(&result, &s.output.sizes, rank),
        },
    };
    let dtypes = tensors.iter().map(|&t| graph.shape(t).dtype);
    let arguments = dtypes.chain([s.output.dtype]).collect();
    (single(stage, arguments, lanes), tensors)
}

/// A kernel of one stage whose parallel loops are all in `inner`: joins loops and chooses tasks.
pub(super) fn single(stage: Stage, arguments: Vec<frazil_ir::DType>, lanes: i64) -> Loops {
    let mut loops = Loops {
        outer: Dims::new(),
        arguments,
        locals: Vec::new(),
        stages: vec![stage],
        lanes,
    };
    if let [stage] = loops.stages.as_mut_slice() {
        join_loops(stage);
        loops.outer = choose_tasks(stage);
    }
    loops
}

fn index_count(s: &Structured) -> usize {
    let count = |e: &Expr| {
        let indices = e.nodes().iter().filter_map(|n| match n.op {
            ExprOp::Index(i) => Some(i as usize + 1),
            _ => None,
        });
        indices.max().unwrap_or(0)
    };
    count(&s.body).max(s.finish.as_ref().map_or(0, count))
}

/// `access` with its operand's row-major strides resolved, and a guard for each coordinate that may leave the operand.
pub(super) fn read_of(graph: &TensorGraph, access: &Access, domain: &[i64], place: Place) -> Read {
    let sizes = &graph.shape(access.tensor).sizes;
    let mut read = Read::new(place, linear(&access.map, sizes, domain.len()));
    if let OutOfBounds::Value(fill) = access.out_of_bounds {
        for (map, &extent) in access.map.iter().zip(sizes) {
            if !stays_within(map, domain, extent) {
                read.guards.push(Guard {
                    index: map.clone(),
                    extent,
                });
            }
        }
        read.fill = if read.guards.is_empty() { Number::Int(0) } else { fill };
    }
    read
}

/// Every affine function of the stage's loops.
fn affines(stage: &mut Stage) -> Vec<&mut Affine> {
    let mut all: Vec<&mut Affine> = Vec::new();
    for read in stage.inputs.iter_mut().chain(&mut stage.finish_inputs) {
        all.push(&mut read.index);
        all.extend(read.guards.iter_mut().map(|g| &mut g.index));
    }
    all.extend(&mut stage.indices);
    all.push(&mut stage.output.index);
    all
}

/// Drops loops of one iteration and joins neighbours that run like one loop everywhere.
fn join_loops(stage: &mut Stage) {
    let parallel = stage.inner.len();
    let mut extents: Dims = stage.inner.iter().chain(&stage.reduction).copied().collect();
    let mut kinds: Vec<bool> = (0..extents.len()).map(|l| l < parallel).collect();
    let mut maps = affines(stage);
    let mut l = 0;
    while l < extents.len() {
        let next = l + 1 < extents.len() && kinds[l] == kinds[l + 1];
        let runs_on = |m: &&mut Affine| m.coefficients[l] == m.coefficients[l + 1] * extents[l + 1];
        if extents[l] == 1 {
            // A coefficient of a loop that stands still means nothing.
        } else if next && extents[l + 1] != 1 && maps.iter().all(runs_on) {
            extents[l + 1] *= extents[l];
        } else if next && extents[l + 1] == 1 {
            // The neighbour goes first, then this one meets the one behind.
            extents.remove(l + 1);
            kinds.remove(l + 1);
            for m in &mut maps {
                m.coefficients.remove(l + 1);
            }
            continue;
        } else {
            l += 1;
            continue;
        }
        extents.remove(l);
        kinds.remove(l);
        for m in &mut maps {
            m.coefficients.remove(l);
        }
        // What stood before may now run on into this loop.
        l = l.saturating_sub(1);
    }
    let parallel = kinds.iter().filter(|p| **p).count();
    stage.inner = extents[..parallel].into();
    stage.reduction = extents[parallel..].into();
}

/// Moves leading loops out of the stage to be the kernel's tasks, and splits the last one when it is long.
fn choose_tasks(stage: &mut Stage) -> Dims {
    let reduction: i64 = stage.reduction.iter().product();
    let work = |inner: &[i64]| inner.iter().product::<i64>().saturating_mul(reduction.max(1));
    let mut outer = Dims::new();
    if work(&stage.inner) <= SMALL {
        return outer;
    }
    while stage.inner.len() > 1 && work(&stage.inner) > TASK {
        outer.push(stage.inner.remove(0));
    }
    if work(&stage.inner) > SMALL
        && let Some(&extent) = stage.inner.last()
        && let Some(chunk) = divisor(extent, (TASK / reduction.max(1)).max(1))
    {
        let at = outer.len();
        for m in affines(stage) {
            let c = m.coefficients[at];
            m.coefficients.insert(at, c * chunk);
        }
        outer.push(extent / chunk);
        stage.inner[0] = chunk;
    }
    outer
}

/// The largest divisor of `n` not above `most` and worth a task; a multiple of 16 if there is one.
fn divisor(n: i64, most: i64) -> Option<i64> {
    let candidates = |step: i64| (1..=most / step).rev().map(move |k| k * step).find(|d| n % d == 0);
    candidates(16).or_else(|| candidates(1)).filter(|&d| d > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::DType;

    fn affine(coefficients: &[i64]) -> Affine {
        Affine {
            coefficients: coefficients.into(),
            offset: 0,
        }
    }

    fn copy(inner: &[i64], from: &[i64], to: &[i64]) -> Stage {
        Stage {
            inner: inner.into(),
            reduction: Dims::new(),
            inputs: vec![Read::new(Place::Argument(0), affine(from))],
            body: Expr::identity(DType::Float),
            combine: None,
            accumulate: DType::Float,
            finish: None,
            finish_inputs: Vec::new(),
            indices: Vec::new(),
            output: Write {
                place: Place::Argument(1),
                index: affine(to),
            },
        }
    }

    #[test]
    fn dense_loops_become_one() {
        let mut s = copy(&[2, 1, 3, 4], &[12, 7, 4, 1], &[12, 12, 4, 1]);
        join_loops(&mut s);
        assert_eq!(s.inner.as_slice(), [24]);
        assert_eq!(s.output.index, affine(&[1]));
    }

    #[test]
    fn a_transpose_keeps_its_loops() {
        let mut s = copy(&[2, 3, 4], &[1, 8, 2], &[12, 4, 1]);
        join_loops(&mut s);
        assert_eq!(s.inner.as_slice(), [2, 12]);
        assert_eq!(s.inputs[0].index, affine(&[1, 2]));
    }

    #[test]
    fn long_loops_are_split() {
        let mut s = copy(&[1 << 20], &[1], &[1]);
        let outer = choose_tasks(&mut s);
        assert_eq!(outer.as_slice(), [128]);
        assert_eq!(s.inner.as_slice(), [TASK]);
        assert_eq!(s.inputs[0].index, affine(&[TASK, 1]));
    }
}
