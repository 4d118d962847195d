//! Fusion of matmul and addition: `fuse-addmm`.
//!
//! `a + mm(x, y)` and `mm(x, y) + a` become `aten::addmm`.
//!
//! **Sound when**
//! - the factor of the addition is 1;
//! - the rank of the other operand and the dtype of the matrices are known from their types;
//! - the other operand has rank 0, and is converted, or it has the same dtype: `addmm` requires one dtype, while an addition promotes;
//! - the matrices, the result of the matmul and the other operand are not written.
//!
//! PyTorch checks neither the dtype of operands of higher rank nor writes.

use crate::AliasDb;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use frazil_ir::{Builder, Graph, NodeId, TensorType, TypeKind, ValueId};

/// Declaration of the pass `fuse-addmm` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "fuse-addmm",
    summary: "Fuses additions to a matmul into aten::addmm.",
    before: "graph(%a : Float(2, 2), %x : Float(2, 3), %y : Float(3, 2)):
  %1 : int = prim::Constant[value=1]()
  %p : Tensor = aten::mm(%x, %y)
  %s : Tensor = aten::add(%p, %a, %1)
  return (%s)
",
    after: "graph(%a : Float(2, 2), %x : Float(2, 3), %y : Float(3, 2)):
  %3 : int = prim::Constant[value=1]()
  %p : Tensor = aten::mm(%x, %y)
  %6 : int = prim::Constant[value=1]()
  %s : Tensor = aten::addmm(%a, %x, %y, %6, %6)
  return (%s)
",
    options: &[],
    build: |_| AnyPass::graph(FuseAddmm),
};

/// The pass `fuse-addmm`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseAddmm;

impl GraphPass<TorchScript> for FuseAddmm {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let db = cx.alias_db(graph);
        for node in graph.all_nodes() {
            let Some((product, other)) = sum_with_product(graph, node, &db) else {
                continue;
            };
            let Some(converts) = fits(graph, product, other) else {
                continue;
            };
            if !cx.rewrite("products fused") {
                break;
            }
            put(graph, node, product, other, converts);
        }
        Ok(())
    }
}

/// Returns the `aten::mm` node among the operands of the addition `node`, and the other operand.
fn sum_with_product(graph: &Graph, node: NodeId, db: &AliasDb) -> Option<(NodeId, ValueId)> {
    if graph.kind_name(node) != "aten::add" || graph.operand_count(node) != 3 {
        return None;
    }
    let alpha = graph.constant(graph.operand(node, 2)?)?.as_float()?;
    if alpha != 1.0 || db.node_has_writers(graph, node) {
        return None;
    }
    let (a, b) = (graph.operand(node, 0)?, graph.operand(node, 1)?);
    let product = |v: ValueId| {
        let maker = graph.defining_node(v)?;
        (graph.kind_name(maker) == "aten::mm" && !db.node_has_writers(graph, maker)).then_some(maker)
    };
    match (product(a), product(b)) {
        (Some(p), _) => Some((p, b)),
        (None, Some(p)) => Some((p, a)),
        (None, None) => None,
    }
}

/// Returns whether `other` must be converted to be the first operand of `aten::addmm`; `None` if it cannot be the first operand.
fn fits(graph: &Graph, product: NodeId, other: ValueId) -> Option<bool> {
    let tensor = |v: ValueId| match graph.ctx().type_kind(graph.ty(v)) {
        TypeKind::Tensor(ty) => Some(ty),
        _ => None,
    };
    let other: TensorType = tensor(other)?;
    let rank = graph.ctx().dims(other.sizes?).len();
    let known = |i: usize| graph.operand(product, i).and_then(tensor).and_then(|ty| ty.dtype);
    let dtype = known(0).or(known(1))?;
    match (other.dtype == Some(dtype), rank) {
        (true, _) => Some(false),
        // A number of a higher kind would promote the dtype of the sum.
        (false, 0) if dtype.is_floating_point() && !other.dtype.is_some_and(|d| d.is_complex()) => Some(true),
        _ => None,
    }
}

fn put(graph: &mut Graph, node: NodeId, product: NodeId, other: ValueId, converts: bool) {
    let (Some(x), Some(y), Some(output)) = (graph.operand(product, 0), graph.operand(product, 1), graph.output(node))
    else {
        return;
    };
    let ty = graph.ty(output);
    let ctx = graph.ctx().clone();
    let mut b = Builder::before(graph, node);
    let other = if converts {
        b.op(ctx.symbol("aten::type_as"), &[other, x], frazil_ir::types::TENSOR)
    } else {
        other
    };
    let one = b.constant(1);
    let fused = b.op(ctx.symbol("aten::addmm"), &[other, x, y, one, one], ty);
    if let Some(name) = graph.value_name(output) {
        graph.set_value_name(fused, name);
    }
    graph.replace_all_uses_with(output, fused);
    graph.erase(node);
}
