//! Materialisation of affine views that no read can absorb: `materialize-views`.

use crate::graph::TensorOp;
use crate::ir::TensorIr;
use crate::transform::rewriter::{Rewriter, Transformation};
use crate::transform::simplify::{conversion, resolve_all};
use frazil_pass_manager::{AnyPass, PassInfo};
use frazil_runtime::structured::ViewKind;

/// The declaration of the pass.
pub static INFO: PassInfo<TensorIr> = PassInfo {
    name: "materialize-views",
    summary: "Copies views that no read could absorb, so that only reshapes remain.",
    before: "func @f(%0: float32[2, 3]) {
  %1 = view float32[3, 2] %0[d1, d0]
  %2 = reshape float32[6] %1
  return %2
}
",
    after: "func @f(%0: float32[2, 3]) {
  %1 = nest float32[3, 2] for d0 < 3, d1 < 2 {
    x0 = %0[d1, d0]
    v0: float32 = x0
  }
  %2 = reshape float32[6] %1
  return %2
}
",
    options: &[],
    build: |_| AnyPass::graph(Transformation(materialize_views)),
};

/// Replaces every affine view that is still read as such (by an output or by a reshape that no read could absorb) by a copy. The remaining views are reshapes
/// of dense tensors.
pub fn materialize_views(graph: &mut Rewriter<'_>) {
    for id in graph.live_ids() {
        let TensorOp::View(v) = graph.op(id) else {
            continue;
        };
        if !matches!(v.kind, ViewKind::Affine(_)) {
            continue;
        }
        let shape = v.output.clone();
        let mut copy = conversion(id, &shape, shape.clone());
        resolve_all(graph, &mut copy);
        if let Some(graph) = graph.rewrite("views copied") {
            graph.set_op(id, TensorOp::Nest(Box::new(copy)));
        }
    }
}
