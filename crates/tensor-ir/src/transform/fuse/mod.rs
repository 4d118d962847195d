//! Fusion: pointwise work moves into the loops that produce or consume its operands.
//!
//! Two rewrites, tried for each loop nest in topological order until none applies:
//! - a pointwise producer is computed where it is read ([`producers`]);
//! - a pointwise consumer becomes the finish of the fold that produces its operand ([`epilogues`]): bias, activation and residual
//!   of a convolution, the scaling of a mean.
//!
//! A rewrite is kept only when the nest stays in the kernel family that it was in, and when it does not compute an element
//! several times that is worth storing.

mod epilogues;
mod producers;

use crate::graph::{Origin, TensorGraph, TensorOp};
use crate::ir::TensorIr;
use crate::pattern::classify;
use crate::transform::rewriter::{Rewriter, Transformation};
use crate::transform::simplify::{merge_equal_reads, resolve_all};
use frazil_pass_manager::{AnyPass, PassInfo};
use frazil_runtime::structured::{Structured, TensorId};

/// The declaration of the pass.
pub static INFO: PassInfo<TensorIr> = PassInfo {
    name: "fuse",
    summary: "Computes elementwise producers where they are read, and elementwise consumers of a reduction in its epilogue.",
    before: "func @f(%0: float32[2, 3]) {
  %1 = nest float32[2] for d0 < 2 reduce d1 < 3 {
    x0 = %0[d0, d1]
    v0: float32 = x0
    combine add float32
  }
  %2 = nest float32[2] for d0 < 2 {
    x0 = %1[d0]
    v0: float32 = x0
    v1: float32 = sqrt v0
  }
  return %2
}
",
    after: "func @f(%0: float32[2, 3]) {
  %2 = nest float32[2] for d0 < 2 reduce d1 < 3 {
    x0 = %0[d0, d1]
    v0: float32 = x0
    combine add float32
    epilogue
    w0: float32 = acc
    w1: float32 = sqrt w0
  }
  return %2
}
",
    options: &[],
    build: |_| AnyPass::graph(Transformation(fuse)),
};

/// Fuses the graph, which must be simplified.
pub fn fuse(graph: &mut Rewriter<'_>) {
    for id in graph.live_ids() {
        while let Some((producer, fused)) = step(graph, id) {
            let mut origins: Vec<Origin> = graph.node(producer).origins.clone();
            for o in &graph.node(id).origins {
                if !origins.contains(o) {
                    origins.push(o.clone());
                }
            }
            let Some(graph) = graph.rewrite("nests fused") else {
                return;
            };
            graph.set_op(id, TensorOp::Nest(Box::new(fused)));
            graph.set_origins(id, origins);
        }
    }
}

/// One rewrite of the nest `id`: the producer that went into it and the new nest.
fn step(graph: &TensorGraph, id: TensorId) -> Option<(TensorId, Structured)> {
    let s = graph.as_nest(id)?;
    let producers: Vec<TensorId> = graph.operands(id).into_iter().collect();
    let found = producers
        .iter()
        .find_map(|&p| producers::attempt(graph, s, p).map(|fused| (p, fused)))
        .or_else(|| {
            // The last producer: what was there before it can be its operand.
            let mut late = producers.iter().rev();
            late.find_map(|&p| epilogues::attempt(graph, s, p).map(|fused| (p, fused)))
        });
    found.map(|(p, mut fused)| {
        resolve_all(graph, &mut fused);
        merge_equal_reads(&mut fused);
        (p, fused)
    })
}

/// True when `fused` runs on the kernel family that `before` ran on, if that was one of the fast ones.
fn keeps_family(graph: &TensorGraph, before: &Structured, fused: &Structured) -> bool {
    let class = classify(graph, before);
    !class.has_epilogue() || class.same_family(&classify(graph, fused))
}
