//! Pointwise consumers become the finish of the fold before them.

use super::keeps_family;
use crate::affine::{is_identity, widen};
use crate::graph::TensorGraph;
use crate::simplify::{converted, merge_equal_reads};
use frazil_runtime::expr::Expr;
use frazil_runtime::structured::{OutOfBounds, Structured, TensorId};

/// The nest that computes the fold `producer` and, to each result, what the pointwise `consumer` does to it.
///
/// Only when nothing else reads the producer, and the consumer reads element for element what the producer gives.
pub(super) fn attempt(
    graph: &TensorGraph,
    uses: &[u32],
    consumer: &Structured,
    producer: TensorId,
) -> Option<Structured> {
    let p = graph.structured(producer)?;
    if consumer.combine.is_some() || p.combine.is_none() || uses[producer as usize] != 1 {
        return None;
    }
    let parallel = p.parallel_rank();
    if consumer.domain.as_slice() != &p.domain[..parallel] {
        return None;
    }
    let mut reads = consumer.inputs.iter().enumerate().filter(|(_, a)| a.tensor == producer);
    let (position, access) = reads.next()?;
    if reads.next().is_some() || !is_identity(access, &p.output.sizes, &consumer.domain) {
        return None;
    }
    // What the producer's readers see: its finish, converted to its dtype.
    let inner = match &p.finish {
        Some(finish) => converted(finish, p.output.dtype),
        None => converted(&Expr::identity(p.accumulate), p.output.dtype),
    };
    let (position, mine) = (position as u32, p.finish_inputs.len() as u32);
    let rest = |i: u32| if i < position { 1 + mine + i } else { mine + i };
    let finish = consumer.body.substitute(position, &inner, |i| i, rest);
    let mut fused = p.clone();
    fused.finish = Some(converted(&finish, consumer.output.dtype));
    fused.output = consumer.output.clone();
    for (i, read) in consumer.inputs.iter().enumerate() {
        if i != position as usize {
            if read.out_of_bounds != OutOfBounds::Never {
                return None;
            }
            fused.finish_inputs.push(widen(read, p.domain.len()));
        }
    }
    merge_equal_reads(&mut fused);
    keeps_family(graph, p, &fused).then_some(fused)
}
