//! Copies of affine views that no read can absorb: `materialize-views`.

use crate::graph::TensorOp;
use crate::transform::rewriter::Rewriter;
use crate::transform::simplify::{conversion, resolve_all};
use frazil_runtime::structured::ViewKind;

/// Turns every affine view that is still read as such (by an output or by a reshape that no read could absorb) into a copy, so
/// that the views that are left are reshapes of dense tensors.
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
