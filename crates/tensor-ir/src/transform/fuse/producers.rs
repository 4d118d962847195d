//! Producer fusion: elementwise producers are computed where their results are read.

use super::keeps_family;
use crate::affine::{as_loop, can_leave, compose, reach};
use crate::graph::TensorGraph;
use crate::pattern::{Class, classify};
use crate::transform::simplify::{converted, merge_equal_reads, remap};
use frazil_runtime::expr::{Expr, ExprOp};
use frazil_runtime::structured::{Access, Structured, TensorId};
use smallvec::SmallVec;
use std::cell::LazyCell;

/// Returns the nest `consumer`, whose class is `class`, with every read of the elementwise `producer` in its body replaced by the producer's body.
///
/// `None` if elements would be computed several times, unless the producer is a copy, a conversion or a constant.
pub(super) fn attempt<F: FnOnce() -> Class>(
    graph: &TensorGraph,
    consumer: &Structured,
    class: &LazyCell<Class, F>,
    producer: TensorId,
) -> Option<Structured> {
    let p = graph.as_nest(producer)?;
    if p.combine.is_some() || p.finish.is_some() {
        return None;
    }
    let reads = |a: &Access| a.tensor == producer;
    if consumer.finish_inputs.iter().any(reads) {
        return None;
    }
    let iterations: i64 = consumer.domain.iter().product();
    let once = graph.use_count(producer) == 1
        && iterations <= p.output.numel()
        && consumer.inputs.iter().filter(|a| reads(a)).count() == 1;
    if !once && !is_free(&p.body) {
        return None;
    }
    if classify(graph, p) != Class::Pointwise || (consumer.combine.is_none() && **class != Class::Pointwise) {
        return None;
    }
    let mut fused = consumer.clone();
    while let Some(position) = fused.inputs.iter().position(reads) {
        let access = fused.inputs[position].clone();
        if can_leave(&access, &p.output.sizes, &fused.domain) {
            return None;
        }
        replace(graph, &mut fused, position, &access, p)?;
    }
    merge_equal_reads(&mut fused);
    let same = match &**class {
        Class::Pointwise => true,
        class => keeps_family(graph, class, &fused),
    };
    same.then_some(fused)
}

/// Returns whether computing the body costs no more than reading its result: a copy, a conversion or a constant.
fn is_free(body: &Expr) -> bool {
    let free = |op: &ExprOp| matches!(op, ExprOp::Input(_) | ExprOp::Const(_) | ExprOp::Cast(_));
    body.nodes().iter().all(|n| free(&n.op)) && body.input_count() <= 1
}

/// Replaces input `position` of `s`, which reads `p`'s result at `access`, by `p`'s body over `p`'s reads.
fn replace(graph: &TensorGraph, s: &mut Structured, position: usize, access: &Access, p: &Structured) -> Option<()> {
    let rank = s.domain.len();
    let mut body = Expr::new();
    let mut ids = Vec::with_capacity(p.body.nodes().len());
    for node in p.body.nodes() {
        let op = match node.op {
            // Expressions have loop indices only, so that the producer's coordinate has to be a loop of the consumer.
            ExprOp::Index(n) => ExprOp::Index(as_loop(access.map.get(n as usize)?)? as u32),
            op => remap(op, &ids),
        };
        ids.push(body.push(op, node.dtype));
    }
    let body = body.finish(*ids.last()?);
    let first = s.inputs.len() as u32;
    s.body = s
        .body
        .substitute(position as u32, &converted(&body, p.output.dtype), |i| i + first, |i| i);
    for read in &p.inputs {
        let map = read.map.iter().map(|m| compose(m, &access.map, rank));
        let map = map.collect::<Option<SmallVec<_>>>()?;
        reach(&map, &graph.shape(read.tensor).sizes, &s.domain)?;
        s.inputs.push(Access { map, ..read.clone() });
    }
    // The replaced read is no longer used: the reads after it are renumbered.
    let last = s.inputs.len() as u32 - 1;
    s.body = s.body.substitute(
        last + 1,
        &Expr::new(),
        |i| i,
        |i| match i {
            i if i > position as u32 => i - 1,
            i => i,
        },
    );
    s.inputs.remove(position);
    Some(())
}
