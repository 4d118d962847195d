//! Tiling of chains of kernels over the batch dimension, if their intermediate results are larger than a core's cache. Attention, for example, computes the
//! scores of a few heads, their softmax and the matmul with the values, and then continues with the next heads. So the scores stay in the cache.

use crate::kernel::{EpilogueOperand, Gemm, GemmB, KernelSpec, Loops, Place};
use crate::options::LowerOptions;
use crate::schedule::{BufferId, Home, Schedule, Slice, Step};
use frazil_runtime::expr::ExprOp;
use frazil_runtime::structured::Affine;

/// Tiles such chains in `schedule`: a batched matmul whose operands are not constants, loops over the rows of its result, and another such matmul.
pub(crate) fn slice_chains(schedule: &mut Schedule, options: &LowerOptions) {
    let machine = options.target.machine;
    let resident = machine.partition.resident_bytes;
    let mut uses = vec![0usize; schedule.buffers.len()];
    for slice in schedule.steps.iter().flat_map(|s| &s.buffers) {
        if let Some(count) = uses.get_mut(slice.buffer as usize) {
            *count += 1;
        }
    }
    let steps = std::mem::take(&mut schedule.steps);
    let mut at = 0;
    while let Some(step) = steps.get(at) {
        match steps
            .get(at..at + 3)
            .and_then(|three| Chain::find(schedule, &uses, three, resident))
        {
            Some(chain) => {
                chain.emit(schedule, options);
                at += 3;
            }
            None => {
                schedule.steps.push(step.clone());
                at += 1;
            }
        }
    }
}

/// Three steps, and the properties of their batch dimension.
struct Chain<'s> {
    steps: [&'s Step; 3],
    products: [&'s Gemm; 2],
    rows: &'s Loops,
    /// The batch loop of each matmul, and that of the loops over rows.
    batch: [usize; 2],
    outer: usize,
    /// For each argument of the loops over rows, the distance between successive elements of the batch, in elements.
    moves: Vec<i64>,
    /// The buffers between the steps, and the bytes of each for one element of the batch.
    between: [(BufferId, i64); 2],
    /// Number of elements of the batch: in total, and per tile.
    extent: i64,
    part: i64,
}

impl<'s> Chain<'s> {
    fn find(schedule: &Schedule, uses: &[usize], steps: &'s [Step], resident: i64) -> Option<Chain<'s>> {
        let [one, two, three] = steps else { return None };
        let (first, rows, second) = (
            one.spec.get::<Gemm>()?,
            two.spec.get::<Loops>()?,
            three.spec.get::<Gemm>()?,
        );
        let products = [first, second];
        // What is packed once for all, and operands of the result, have no part for each element of the batch.
        let simple = |g: &&Gemm| {
            let operands = &g.epilogue.operands;
            matches!(g.b, GemmB::Strided { .. }) && operands.iter().all(|o| *o == EpilogueOperand::Scalar)
        };
        if !products.iter().all(simple) {
            return None;
        }
        let (scores, weights) = (*one.buffers.get(one.output)?, *two.buffers.get(two.output)?);
        let read = two.buffers.iter().position(|s| *s == scores)?;
        let private = |s: Slice| s.offset == 0 && uses.get(s.buffer as usize) == Some(&2);
        if scores == weights || !private(scores) || !private(weights) || three.buffers.first() != Some(&weights) {
            return None;
        }
        let batch = [first, second].map(|g| g.batch.iter().position(|b| b.extent > 1));
        let batch = [batch[0]?, batch[1]?];
        let outer = rows.outer.iter().position(|&n| n > 1)?;
        let (along, across) = (first.batch[batch[0]], second.batch[batch[1]]);
        let extent = along.extent;
        if across.extent != extent || rows.outer[outer] != extent {
            return None;
        }
        let moves = moves(rows, outer)?;
        if *moves.get(read)? != along.c || *moves.get(two.output)? != across.a {
            return None;
        }
        let bytes = |s: Slice, step: i64| match schedule.home(s) {
            Home::Workspace { bytes } if 4 * step * extent == bytes as i64 => Some((s.buffer, 4 * step)),
            _ => None,
        };
        let between = [bytes(scores, along.c)?, bytes(weights, across.a)?];
        let largest = between[0].1.max(between[1].1);
        let part = (1..=extent)
            .rev()
            .find(|&p| extent % p == 0 && (p == 1 || p * largest <= resident))?;
        if part == extent || extent * largest <= 2 * resident {
            return None;
        }
        Some(Chain {
            steps: [one, two, three],
            products,
            rows,
            batch,
            outer,
            moves,
            between,
            extent,
            part,
        })
    }

    fn emit(&self, schedule: &mut Schedule, options: &LowerOptions) {
        let [one, two, three] = self.steps;
        for (buffer, bytes) in self.between {
            if let Some(home) = schedule.buffers.get_mut(buffer as usize) {
                *home = Home::Workspace {
                    bytes: (bytes * self.part) as usize,
                };
            }
        }
        let product = |which: usize| {
            let mut gemm = self.products[which].clone();
            gemm.batch[self.batch[which]].extent = self.part;
            let sizes = [gemm.m, gemm.n, gemm.k];
            gemm.tile = options.gemm_tile(gemm.batch_count(), sizes, gemm.is_packed());
            KernelSpec::from(gemm)
        };
        let mut rows = self.rows.clone();
        rows.outer[self.outer] = self.part;
        let specs = [product(0), rows.into(), product(1)];
        let mut from = 0;
        while from < self.extent {
            for (which, (step, spec)) in [one, two, three].into_iter().zip(&specs).enumerate() {
                let moved = step
                    .buffers
                    .iter()
                    .enumerate()
                    .map(|(i, slice)| match self.is_between(*slice) {
                        true => *slice,
                        false => slice.at((self.bytes_between(which, i) * from) as u64),
                    });
                schedule.steps.push(Step {
                    spec: spec.clone(),
                    buffers: moved.collect(),
                    ..step.clone()
                });
            }
            from += self.part;
        }
    }

    fn is_between(&self, slice: Slice) -> bool {
        self.between.iter().any(|(buffer, _)| *buffer == slice.buffer)
    }

    /// Returns the distance in bytes between successive elements of the batch in buffer `i` of step `which`.
    fn bytes_between(&self, which: usize, i: usize) -> i64 {
        let product = |which: usize| {
            let step = self.products[which].batch[self.batch[which]];
            match i {
                0 => 4 * step.a,
                1 => 4 * step.b,
                // The operands of the result are scalars.
                _ if i + 1 == self.steps[2 * which].buffers.len() => 4 * step.c,
                _ => 0,
            }
        };
        match which {
            0 => product(0),
            1 => {
                let argument = self.moves.get(i).zip(self.rows.arguments.get(i));
                argument.map_or(0, |(elements, dtype)| elements * dtype.size() as i64)
            }
            _ => product(1),
        }
    }
}

/// For each argument, the elements by which one iteration of the outer loop `outer` advances; `None` if the loop has another effect too.
fn moves(rows: &Loops, outer: usize) -> Option<Vec<i64>> {
    let along = |index: &Affine| index.coefficients.get(outer).copied().unwrap_or(0);
    let mut moves: Vec<Option<i64>> = vec![None; rows.arguments.len()];
    for stage in &rows.stages {
        let reads = || stage.inputs.iter().chain(&stage.finish_inputs);
        let guards = reads().flat_map(|r| &r.guards).map(|g| &g.index);
        let nodes = stage.expressions().flat_map(|e| e.nodes());
        let indices = nodes.filter_map(|node| match node.op {
            ExprOp::Index(n) => stage.indices.get(n as usize),
            _ => None,
        });
        if guards.chain(indices).any(|index| along(index) != 0) {
            return None;
        }
        let writes = stage.writes().map(|w| (w.place, &w.index));
        for (place, index) in reads().map(|r| (r.place, &r.index)).chain(writes) {
            match place {
                Place::Argument(n) => {
                    let known = moves.get_mut(n as usize)?;
                    if *known.get_or_insert(along(index)) != along(index) {
                        return None;
                    }
                }
                Place::Local(_) if along(index) != 0 => return None,
                Place::Local(_) => {}
            }
        }
    }
    // A part of an argument begins where the loop has come to.
    let moves: Vec<i64> = moves.into_iter().map(|m| m.unwrap_or(0)).collect();
    moves.iter().all(|&m| m >= 0).then_some(moves)
}
