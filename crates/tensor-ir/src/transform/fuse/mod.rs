//! Fusion: elementwise operations move into the loops that read their results or compute their operands.
//!
//! Two rewrites are tried for each loop nest, in topological order, until none applies:
//! - an elementwise producer is computed where it is read ([`producers`]);
//! - an elementwise consumer becomes the epilogue of the reduction that computes its operand ([`epilogues`]): bias, activation and residual
//!   of a convolution, the scaling of a mean.
//!
//! A rewrite is done only if the nest stays in its kernel family, and if no element that is worth storing is computed several times.

mod epilogues;
mod producers;

use crate::graph::{Origin, TensorGraph, TensorOp};
use crate::ir::TensorIr;
use crate::pattern::{Class, classify};
use crate::transform::rewriter::{Rewriter, Transformation};
use crate::transform::simplify::{merge_equal_reads, resolve_all};
use frazil_pass_manager::{AnyPass, PassInfo};
use frazil_runtime::structured::{Structured, TensorId};
use std::cell::LazyCell;

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

/// Returns one rewrite of the nest `id`: the producer that becomes part of it, and the new nest.
fn step(graph: &TensorGraph, id: TensorId) -> Option<(TensorId, Structured)> {
    let s = graph.as_nest(id)?;
    let producers: Vec<TensorId> = graph.operands(id).into_iter().collect();
    // The class is the same for all producers, of which a concatenation may have many.
    let class = LazyCell::new(|| classify(graph, s));
    let found = producers
        .iter()
        .find_map(|&p| producers::attempt(graph, s, &class, p).map(|fused| (p, fused)))
        .or_else(|| {
            // The last producer first, since earlier ones can be its operands.
            let mut late = producers.iter().rev();
            late.find_map(|&p| epilogues::attempt(graph, s, p).map(|fused| (p, fused)))
        });
    found.map(|(p, mut fused)| {
        resolve_all(graph, &mut fused);
        merge_equal_reads(&mut fused);
        (p, fused)
    })
}

/// Returns whether `fused` is in the kernel family of a nest of the class `before`, if that family has epilogues.
fn keeps_family(graph: &TensorGraph, before: &Class, fused: &Structured) -> bool {
    !before.has_epilogue() || before.same_family(&classify(graph, fused))
}
