//! Dropout removal: `remove-dropout`.
//!
//! A dropout whose `train` is the constant false returns its operand itself, also in place, so it is replaced by the operand.
//!
//! **Sound** for any use, including writes and identity, because eager PyTorch returns the same tensor. A dropout in training mode, or whose `train` is not
//! constant, is kept.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use frazil_ir::{Constant, Graph};

/// Declaration of the pass `remove-dropout` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "remove-dropout",
    summary: "Removes dropouts that are disabled.",
    before: "%off : bool = prim::Constant[value=0]()\n%y = aten::dropout(%x, %p, %off)\n%z = aten::relu(%y)",
    after: "%off : bool = prim::Constant[value=0]()\n%z = aten::relu(%x)",
    options: &[],
    build: |_| AnyPass::graph(RemoveDropout),
};

const DROPOUTS: &[&str] = &[
    "aten::alpha_dropout",
    "aten::alpha_dropout_",
    "aten::dropout",
    "aten::dropout_",
    "aten::feature_alpha_dropout",
    "aten::feature_alpha_dropout_",
    "aten::feature_dropout",
    "aten::feature_dropout_",
];

/// The pass `remove-dropout`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveDropout;

impl GraphPass<TorchScript> for RemoveDropout {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        for node in graph.all_nodes() {
            if !DROPOUTS.contains(&graph.kind_name(node)) {
                continue;
            }
            let (Some(input), Some(train), Some(output)) =
                (graph.operand(node, 0), graph.operand(node, 2), graph.output(node))
            else {
                continue;
            };
            if !matches!(graph.constant(train), Some(Constant::Bool(false))) {
                continue;
            }
            if !cx.rewrite("dropouts removed") {
                break;
            }
            graph.replace_all_uses_with(output, input);
            graph.erase(node);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::schema::Catalogue;
    use frazil_ir::{Builder, Context, symbols, types};
    use std::sync::Arc;

    #[test]
    fn only_what_is_switched_off_goes() {
        let ctx = Arc::new(Context::new());
        let mut g = Graph::new(ctx.clone());
        let (x, unknown) = (g.add_input(types::TENSOR), g.add_input(types::BOOL));
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let (p, off, on) = (b.constant(0.5), b.constant(false), b.constant(true));
        let mut v = x;
        for train in [off, on, unknown] {
            v = b.op(symbols::ATEN_DROPOUT, &[v, p, train], types::TENSOR);
        }
        b.add_result(root, v);
        RemoveDropout
            .run(&mut g, &mut PassContext::new(&Catalogue::new(ctx)))
            .unwrap();
        g.verify(None).unwrap();
        let left: Vec<_> = g
            .all_nodes()
            .into_iter()
            .filter(|n| g.kind(*n) == symbols::ATEN_DROPOUT)
            .collect();
        assert_eq!(left.len(), 2);
        assert_eq!(g.operand(left[0], 0), Some(x));
    }
}
