//! Canonical operator names: `normalize-ops`.
//!
//! Aliases of operators are replaced by the name that the other passes handle: `aten::absolute` becomes `aten::abs`, likewise in place. `rsub(a, b)`
//! becomes `b - a`, and `a is b` of bools becomes `a == b`.
//!
//! **Sound when** the operator of the new name has an overload for these operands; otherwise the node is kept.

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use frazil_ir::schema::Catalogue;
use frazil_ir::{Graph, NodeId, SymbolId, TypeId, types};

/// Declaration of the pass `normalize-ops` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "normalize-ops",
    summary: "Replaces aliases of operators by one name.",
    before: "graph(%x : Tensor):
  %y : Tensor = aten::absolute(%x)
  return (%y)
",
    after: "graph(%x : Tensor):
  %y : Tensor = aten::abs(%x)
  return (%y)
",
    options: &[],
    build: |_| AnyPass::graph(NormalizeOps),
};

/// The pass `normalize-ops`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct NormalizeOps;

impl GraphPass<TorchScript> for NormalizeOps {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        for node in graph.all_nodes() {
            let Some((kind, swap)) = normal_form(graph, node, cx.operators().catalogue()) else {
                continue;
            };
            if !cx.rewrite("operators renamed") {
                break;
            }
            if swap {
                let mut operands: Vec<_> = graph.operands(node).collect();
                operands.swap(0, 1);
                graph.set_operands(node, &operands);
            }
            graph.set_kind(node, kind);
        }
        Ok(())
    }
}

/// Returns the normalised kind of `node`, and whether its first two operands have to be swapped.
fn normal_form(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> Option<(SymbolId, bool)> {
    let ctx = graph.ctx();
    let mut operand_types: Vec<TypeId> = graph.operands(node).map(|v| graph.ty(v)).collect();
    let are_bools = operand_types == [types::BOOL, types::BOOL];
    let (kind, swap) = match graph.kind_name(node) {
        "aten::__is__" if are_bools => (ctx.symbol("aten::eq"), false),
        "aten::__isnot__" if are_bools => (ctx.symbol("aten::ne"), false),
        "aten::rsub" if operand_types.get(1).is_some_and(|ty| ctx.is_tensor(*ty)) => (ctx.symbol("aten::sub"), true),
        _ => {
            let alias = catalogue.alias(graph.kind(node)).filter(|a| a.is_normalised())?;
            (alias.operator, false)
        }
    };
    if swap {
        operand_types.swap(0, 1);
    }
    catalogue.resolve_types(kind, &operand_types).found()?;
    Some((kind, swap))
}
