//! Decomposition of operators: `decompose-ops`.
//!
//! `aten::addmm` with factors 1 becomes a matmul and an addition, which [batch-mm](crate::batch_mm) can process further. New constants are folded.
//!
//! **Sound** without conditions: `aten::addmm` requires one dtype, and broadcasts as the addition does. PyTorch also decomposes batch and layer norms on GPUs.

use crate::constant_propagation::ConstantPropagation;
use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::rewrite::clean_up;
use frazil_ir::{Builder, Graph, NodeId};

/// Declaration of the pass `decompose-ops` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "decompose-ops",
    summary: "Decomposes aten::addmm.",
    before: "graph(%a : Tensor, %x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %s : Tensor = aten::addmm(%a, %x, %y, %1, %1)
  return (%s)
",
    after: "graph(%a : Tensor, %x : Tensor, %y : Tensor):
  %5 : Tensor = aten::mm(%x, %y)
  %6 : int = prim::Constant[value=1]()
  %s : Tensor = aten::add(%a, %5, %6)
  return (%s)
",
    options: &[],
    build: |_| AnyPass::graph(DecomposeOps),
};

const STATISTIC: &str = "operators decomposed";

/// The pass `decompose-ops`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct DecomposeOps;

impl GraphPass<TorchScript> for DecomposeOps {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let before = cx.counted(STATISTIC);
        for node in graph.all_nodes() {
            if is_plain_addmm(graph, node) && cx.rewrite(STATISTIC) {
                put(graph, node);
            }
        }
        if cx.counted(STATISTIC) != before {
            cx.run(&ConstantPropagation::default(), graph)?;
        }
        clean_up(graph, cx, STATISTIC, before)
    }
}

fn is_plain_addmm(graph: &Graph, node: NodeId) -> bool {
    let one = |i: usize| {
        let constant = graph.operand(node, i).and_then(|v| graph.constant(v));
        constant.and_then(|c| c.as_float()) == Some(1.0)
    };
    graph.kind_name(node) == "aten::addmm" && graph.operand_count(node) == 5 && one(3) && one(4)
}

fn put(graph: &mut Graph, node: NodeId) {
    let operands: Vec<_> = graph.operands(node).collect();
    let (Some(output), [a, x, y, ..]) = (graph.output(node), operands.as_slice()) else {
        return;
    };
    let (ctx, ty) = (graph.ctx().clone(), graph.ty(output));
    let mut b = Builder::before(graph, node);
    let product = b.op(ctx.symbol("aten::mm"), &[*x, *y], frazil_ir::types::TENSOR);
    let one = b.constant(1);
    let sum = b.op(ctx.symbol("aten::add"), &[*a, product, one], ty);
    if let Some(name) = graph.value_name(output) {
        graph.set_value_name(sum, name);
    }
    graph.replace_all_uses_with(output, sum);
    graph.erase(node);
}
