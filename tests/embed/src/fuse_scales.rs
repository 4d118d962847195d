//! Scaling twice by constants is scaling once: `fuse-scales`.
//!
//! **Sound**: the operator is a product, and nothing else is known of its operand. The rounding of one product goes.

use frazil::ir::{Builder, Constant, Graph, NodeId, SymbolId, ValueId};
use frazil::passes::{AnyPass, GraphPass, PassContext, PassError, PassInfo, TorchScript};

/// How the pass is named.
pub static INFO: PassInfo = PassInfo {
    name: "fuse-scales",
    summary: "Makes one toy::scale of two by constants.",
    before: "",
    after: "",
    options: &[],
    build: |_| AnyPass::graph(FuseScales),
};

struct FuseScales;

impl GraphPass<TorchScript> for FuseScales {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let Some(scale) = graph.ctx().find_symbol("toy::scale") else {
            return Ok(());
        };
        // In the order of the graph, so that three in a row become one.
        for node in graph.all_nodes() {
            let Some((scaled, by)) = factor(graph, scale, node) else {
                continue;
            };
            let Some((x, before)) = graph
                .defining_node(scaled)
                .and_then(|first| factor(graph, scale, first))
            else {
                continue;
            };
            if !cx.rewrite("scales fused") {
                break;
            }
            let product = Builder::before(graph, node).constant(Constant::Float(before * by));
            graph.set_operands(node, &[x, product]);
        }
        Ok(())
    }
}

/// What a scaling by a constant scales, and by how much.
fn factor(graph: &Graph, scale: SymbolId, node: NodeId) -> Option<(ValueId, f64)> {
    if graph.kind(node) != scale {
        return None;
    }
    let by = graph.constant(graph.operand(node, 1)?)?.as_float()?;
    Some((graph.operand(node, 0)?, by))
}
