//! Loop nests as [`Loops`] kernels: resolves strides, joins loops over contiguous memory, and chooses tasks.

use super::kept;
use crate::kernel::{Guard, Local, Loops, Place, Read, Stage, Write};
use crate::target::{LoopParameters, Machine};
use frazil_runtime::expr::{Expr, ExprOp, Number};
use frazil_runtime::structured::{Access, Affine, Dims, OutOfBounds, Structured, TensorId};
use frazil_tensor_ir::affine::{linear, stays_within};
use frazil_tensor_ir::graph::{TensorGraph, accesses};

/// Returns the kernel that computes the nests `members`, whose first `outer` loops are fused. The last nest computes the kernel's result. The results of the
/// others are kept in scratch memory, one row at a time. Also returns the kernel's arguments except the last, which is the result: each tensor that it reads,
/// and the index of the first element that is passed.
pub(super) fn kernel(
    graph: &TensorGraph,
    members: &[TensorId],
    outer: usize,
    machine: &Machine,
) -> (Loops, Vec<(TensorId, u64)>) {
    let nests: Vec<&Structured> = members.iter().filter_map(|&m| graph.as_nest(m)).collect();
    let inner = &members[..members.len().saturating_sub(1)];
    let mut tensors: Vec<TensorId> = Vec::new();
    for access in nests.iter().flat_map(|s| accesses(s)) {
        if !inner.contains(&access.tensor) && !tensors.contains(&access.tensor) {
            tensors.push(access.tensor);
        }
    }
    let place = |t: TensorId| {
        let argument = || Place::Argument(tensors.iter().position(|&u| u == t).unwrap_or(tensors.len()) as u32);
        match inner.iter().position(|&m| m == t) {
            Some(local) => Place::Local(local as u32),
            None => argument(),
        }
    };
    let mut loops = Loops {
        outer: Dims::new(),
        arguments: tensors.iter().map(|&t| graph.shape(t).dtype).collect(),
        locals: Vec::new(),
        stages: Vec::new(),
        lanes: machine.vector.lanes,
    };
    for (&member, s) in members.iter().zip(&nests) {
        let (rank, parallel) = (s.domain.len(), s.parallel_rank());
        let read = |a: &Access| {
            let mut read = read_of(graph, a, &s.domain, place(a.tensor));
            if let Place::Local(_) = read.place {
                // What is in scratch memory is the row that the first coordinates name. The others may depend on the shared loops as well: a
                // diagonal's do.
                let sizes = &graph.shape(a.tensor).sizes;
                read.index = linear(&a.map[outer..], &sizes[outer..], s.domain.len());
            }
            read
        };
        let result: Vec<Affine> = (0..parallel).map(|l| Affine::index(rank, l)).collect();
        let mut index = linear(&result, &s.domain[..parallel], rank);
        if inner.contains(&member) {
            index.coefficients[..outer].fill(0);
            loops.locals.push(Local {
                dtype: s.output.dtype,
                elements: s.domain[outer..parallel].iter().product(),
            });
        } else {
            loops.arguments.push(s.output.dtype);
            loops.outer = s.domain[..outer].into();
        }
        loops.stages.push(Stage {
            inner: s.domain[outer..parallel].into(),
            reduction: s.domain[parallel..].into(),
            inputs: s.inputs.iter().map(read).collect(),
            kept: None,
            body: s.body.clone(),
            combine: s.combine,
            accumulate: s.accumulate,
            finish: s.finish.clone(),
            finish_inputs: s.finish_inputs.iter().map(read).collect(),
            indices: (0..index_count(s)).map(|l| Affine::index(rank, l)).collect(),
            output: Write {
                place: place(member),
                index,
            },
        });
    }
    loops.stages.iter_mut().for_each(|s| join_loops(s, outer));
    kept::keep_rows(&mut loops);
    // A nest by itself has no loops to share.
    if let ([stage], 0) = (loops.stages.as_mut_slice(), outer) {
        loops.outer = choose_tasks(stage, &machine.loops);
    }
    let starts: Vec<u64> = (0..tensors.len()).map(|i| take_start(&mut loops.stages, i)).collect();
    (loops, tensors.into_iter().zip(starts).collect())
}

/// Returns the smallest element offset of all reads of argument `argument`, and subtracts it from their offsets. The caller adds it to the argument's address.
/// So kernels that differ only in this offset become equal, such as those for the steps of a sequence. The result is 0 if a read has a guard.
fn take_start(stages: &mut [Stage], argument: usize) -> u64 {
    let place = Place::Argument(argument as u32);
    let reads = stages
        .iter_mut()
        .flat_map(|s| s.inputs.iter_mut().chain(&mut s.finish_inputs));
    let mut reads: Vec<&mut Read> = reads.filter(|r| r.place == place).collect();
    // Where a read may leave the operand its first element may not be there.
    let guarded = reads.iter().any(|r| !r.guards.is_empty());
    let first = reads.iter().map(|r| r.index.offset).min();
    let start = first.filter(|&first| first > 0 && !guarded).unwrap_or(0);
    reads.iter_mut().for_each(|r| r.index.offset -= start);
    start.unsigned_abs()
}

/// Returns a kernel of the single stage `stage`, whose parallel loops must all be in [`Stage::inner`]. Joins loops and chooses tasks.
pub(super) fn single(mut stage: Stage, arguments: Vec<frazil_ir::DType>, machine: &Machine) -> Loops {
    join_loops(&mut stage, 0);
    Loops {
        outer: choose_tasks(&mut stage, &machine.loops),
        arguments,
        locals: Vec::new(),
        stages: vec![stage],
        lanes: machine.vector.lanes,
    }
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

/// Returns the read for `access`, with the row-major strides of its operand resolved, and a guard for each coordinate that may be out of bounds.
fn read_of(graph: &TensorGraph, access: &Access, domain: &[i64], place: Place) -> Read {
    let sizes = &graph.shape(access.tensor).sizes;
    let mut read = Read::new(place, linear(&access.map, sizes, domain.len()));
    if domain.contains(&0) {
        // Nothing is read, and the first element may lie outside of the operand.
        read.index.offset = 0;
    }
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

/// Returns all affine functions of the loop indices in `stage`: those of accesses, guards and index expressions.
fn affines(stage: &mut Stage) -> Vec<&mut Affine> {
    let mut all: Vec<&mut Affine> = Vec::new();
    for read in stage.inputs.iter_mut().chain(&mut stage.finish_inputs) {
        all.push(&mut read.index);
        all.extend(read.guards.iter_mut().map(|g| &mut g.index));
    }
    all.extend(&mut stage.indices);
    all.extend(stage.kept.iter_mut().map(|k| &mut k.output.index));
    all.push(&mut stage.output.index);
    all
}

/// Removes loops of one iteration, and joins adjacent loops that are equivalent to one loop in every access. Does not change the first `outer` loops.
fn join_loops(stage: &mut Stage, outer: usize) {
    let mut extents: Dims = stage.inner.iter().chain(&stage.reduction).copied().collect();
    let mut parallel = stage.inner.len();
    let mut maps = affines(stage);
    let mut l = 0;
    while l < extents.len() {
        let (at, next) = (outer + l, l + 1);
        // Loops of one kind join; the reduction loops come last.
        let same_kind = next < extents.len() && (l < parallel) == (next < parallel);
        let runs_on = |m: &&mut Affine| m.coefficients[at] == m.coefficients[at + 1] * extents[next];
        let gone = if extents[l] == 1 {
            // A coefficient of a loop that stands still means nothing.
            l
        } else if same_kind && extents[next] == 1 {
            next
        } else if same_kind && maps.iter().all(runs_on) {
            extents[next] *= extents[l];
            l
        } else {
            l += 1;
            continue;
        };
        extents.remove(gone);
        parallel -= usize::from(gone < parallel);
        for m in &mut maps {
            m.coefficients.remove(outer + gone);
        }
        // What stood before may now run on into this loop.
        l = l.saturating_sub(1);
    }
    stage.inner = extents[..parallel].into();
    stage.reduction = extents[parallel..].into();
}

/// Removes leading loops from `stage` and returns their extents, whose product is the number of tasks. The last of these loops is split if tasks would become
/// too small.
fn choose_tasks(stage: &mut Stage, parameters: &LoopParameters) -> Dims {
    let task = parameters.task;
    let reduction: i64 = stage.reduction.iter().product();
    let work = |inner: &[i64]| inner.iter().product::<i64>().saturating_mul(reduction.max(1));
    let mut outer = Dims::new();
    if work(&stage.inner) <= parameters.small {
        return outer;
    }
    while let [first, rest @ ..] = stage.inner.as_slice()
        && work(&stage.inner) > task
    {
        let (first, below) = (*first, work(rest));
        if !rest.is_empty() && below >= task / 2 {
            outer.push(first);
            stage.inner.remove(0);
            continue;
        }
        if let Some(chunk) = divisor(first, (task / below.max(1)).max(1)) {
            let at = outer.len();
            for m in affines(stage) {
                let c = m.coefficients[at];
                m.coefficients.insert(at, c * chunk);
            }
            outer.push(first / chunk);
            stage.inner[0] = chunk;
        } else if !rest.is_empty() {
            outer.push(first);
            stage.inner.remove(0);
        }
        break;
    }
    outer
}

/// Returns the largest divisor of `n` in `2..=most` that is a multiple of 16, or, if there is none, the largest divisor in that range.
fn divisor(n: i64, most: i64) -> Option<i64> {
    let candidates = |step: i64| (1..=most / step).rev().map(move |k| k * step).find(|d| n % d == 0);
    candidates(16).or_else(|| candidates(1)).filter(|&d| d > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::SAPPHIRE_RAPIDS;
    use frazil_ir::DType;

    fn affine(coefficients: &[i64]) -> Affine {
        Affine {
            coefficients: coefficients.into(),
            offset: 0,
        }
    }

    fn copy(inner: &[i64], from: &[i64], to: &[i64]) -> Stage {
        let output = Write {
            place: Place::Argument(1),
            index: affine(to),
        };
        let input = Read::new(Place::Argument(0), affine(from));
        Stage::pointwise(inner.into(), vec![input], Expr::identity(DType::Float), output)
    }

    #[test]
    fn dense_loops_become_one() {
        let mut s = copy(&[2, 1, 3, 4], &[12, 7, 4, 1], &[12, 12, 4, 1]);
        join_loops(&mut s, 0);
        assert_eq!(s.inner.as_slice(), [24]);
        assert_eq!(s.output.index, affine(&[1]));
    }

    #[test]
    fn a_transpose_keeps_its_loops() {
        let mut s = copy(&[2, 3, 4], &[1, 8, 2], &[12, 4, 1]);
        join_loops(&mut s, 0);
        assert_eq!(s.inner.as_slice(), [2, 12]);
        assert_eq!(s.inputs[0].index, affine(&[1, 2]));
    }

    #[test]
    fn what_all_reads_skip_is_not_the_kernels() {
        let mut s = copy(&[4], &[1], &[1]);
        s.inputs[0].index.offset = 12;
        let mut further = s.inputs[0].clone();
        further.index.offset = 20;
        s.inputs.push(further);
        let mut stages = [s];
        assert_eq!(take_start(&mut stages, 0), 12);
        assert_eq!(
            stages[0].inputs.iter().map(|r| r.index.offset).collect::<Vec<_>>(),
            [0, 8]
        );
        let guard = Guard {
            index: affine(&[1]),
            extent: 4,
        };
        stages[0].inputs[1].guards.push(guard);
        stages[0].inputs[0].index.offset = 4;
        assert_eq!(take_start(&mut stages, 0), 0);
    }

    #[test]
    fn long_loops_are_split() {
        let mut s = copy(&[1 << 20], &[1], &[1]);
        let parameters = &SAPPHIRE_RAPIDS.loops;
        let outer = choose_tasks(&mut s, parameters);
        assert_eq!(outer.as_slice(), [128]);
        assert_eq!(s.inner.as_slice(), [parameters.task]);
        assert_eq!(s.inputs[0].index, affine(&[parameters.task, 1]));
    }
}
