//! Epilogue fusion: elementwise consumers become the epilogue of the reduction that computes their operand.

use super::keeps_family;
use crate::affine::is_identity;
use crate::graph::TensorGraph;
use crate::pattern::classify;
use crate::transform::simplify::{converted, merge_equal_reads, with_unit_loops};
use frazil_runtime::expr::{Expr, ExprOp};
use frazil_runtime::structured::{Access, Affine, OutOfBounds, Structured, TensorId};

/// Returns the nest that computes the reduction behind `operand`, and applies the elementwise `consumer` to each result.
///
/// `None` if the reduction has other users, or the consumer reads its elements in another order. The consumer may read them through a reshape. The fused nest
/// has the producer's loops, which may split dimensions of the consumer's result.
pub(super) fn attempt(graph: &TensorGraph, consumer: &Structured, operand: TensorId) -> Option<Structured> {
    let producer = graph.root(operand);
    let p = graph.as_nest(producer)?;
    let alone = graph.use_count(producer) == 1 && graph.use_count(operand) == 1;
    if consumer.combine.is_some() || p.combine.is_none() || !alone {
        return None;
    }
    let mut reads = consumer.inputs.iter().enumerate().filter(|(_, a)| a.tensor == operand);
    let (position, access) = reads.next()?;
    if reads.next().is_some() || !is_identity(access, &graph.shape(operand).sizes, &consumer.domain) {
        return None;
    }
    let parallel = p.parallel_rank();
    let split = split_loops(&consumer.domain, &p.domain[..parallel])?;
    // The producer's result: its epilogue, converted to its dtype.
    let inner = match &p.finish {
        Some(finish) => converted(finish, p.output.dtype),
        None => converted(&Expr::identity(p.accumulate), p.output.dtype),
    };
    let (position, mine) = (position as u32, p.finish_inputs.len() as u32);
    let rest = |i: u32| if i < position { 1 + mine + i } else { mine + i };
    let body = with_split_indices(&consumer.body, &split)?;
    let finish = body.substitute(position, &inner, |i| i, rest);
    let mut fused = p.clone();
    fused.finish = Some(converted(&finish, consumer.output.dtype));
    fused.output = consumer.output.clone();
    for (i, read) in consumer.inputs.iter().enumerate() {
        if i != position as usize {
            if read.out_of_bounds != OutOfBounds::Never {
                return None;
            }
            let map = read.map.iter().map(|m| split_map(m, &split, p.domain.len()));
            fused.finish_inputs.push(Access {
                map: map.collect(),
                ..read.clone()
            });
        }
    }
    merge_equal_reads(&mut fused);
    // If only dimensions of extent 1 differ, the loops can be the dimensions.
    if fused.domain[..parallel] != fused.output.sizes[..]
        && let Some(same) = with_unit_loops(&fused, &consumer.output.sizes)
    {
        fused = same;
    }
    keeps_family(graph, &classify(graph, p), &fused).then_some(fused)
}

/// For each loop of a domain, the loops of a finer domain into which it is split: pairs of the loop's index and its factor. Both domains have the same
/// iterations in the same order.
type Split = Vec<Vec<(usize, i64)>>;

fn split_loops(coarse: &[i64], fine: &[i64]) -> Option<Split> {
    let mut split = Split::new();
    let mut next = 0;
    for (l, &extent) in coarse.iter().enumerate() {
        let first = next;
        let mut product = 1;
        // A loop of one iteration consists of one of the finer loops of one iteration, if there are enough.
        let spare = fine.len() - next > coarse.len() - l - 1;
        while next < fine.len() && (product < extent || (next == first && spare && fine[next] == 1)) {
            product *= fine[next];
            next += 1;
        }
        if product != extent {
            return None;
        }
        let mut factor = extent;
        split.push(
            (first..next)
                .map(|f| {
                    factor /= fine[f].max(1);
                    (f, factor)
                })
                .collect(),
        );
    }
    fine[next..].iter().all(|&n| n == 1).then_some(split)
}

/// Returns `map` over the finer domain, followed by further loops up to `rank` loops in total.
fn split_map(map: &Affine, split: &Split, rank: usize) -> Affine {
    let mut out = Affine::constant(rank, map.offset);
    for (&c, loops) in map.coefficients.iter().zip(split) {
        for &(l, factor) in loops {
            out.coefficients[l] = c * factor;
        }
    }
    out
}

/// Returns the body for the finer domain, in which coordinates keep their indices; `None` if a coordinate is split or would be renumbered.
fn with_split_indices(body: &Expr, split: &Split) -> Option<Expr> {
    let indices = body.nodes().iter().filter_map(|n| match n.op {
        ExprOp::Index(i) => Some(i as usize),
        _ => None,
    });
    for i in indices {
        // Coordinates keep their numbers only where no loop before them is split.
        if split.get(i)?.as_slice() != [(i, 1)] {
            return None;
        }
    }
    Some(body.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_split_in_order() {
        assert_eq!(
            split_loops(&[2, 12, 5], &[2, 3, 4, 5]),
            Some(vec![vec![(0, 1)], vec![(1, 4), (2, 1)], vec![(3, 1)]])
        );
        assert_eq!(
            split_loops(&[1, 12, 5], &[1, 1, 12, 5]).map(|s| s[1].clone()),
            Some(vec![(1, 12), (2, 1)])
        );
        assert_eq!(split_loops(&[6, 4], &[4, 6]), None);
        assert_eq!(split_loops(&[3], &[3, 1]), Some(vec![vec![(0, 1)]]));
    }
}
