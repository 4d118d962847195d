//! Removal of implicit broadcasts: `remove-expands`.
//!
//! An `aten::expand` that is marked as implicit is replaced by its operand: it was inserted for an operator that broadcasts.
//!
//! **Sound** if the mark is right, which the producer of the graph guarantees.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::rewrite::{Replacement, rewrite_nodes};
use frazil_ir::Graph;

/// Declaration of the pass `remove-expands` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "remove-expands",
    summary: "Removes expansions that are marked as implicit.",
    before: "graph(%x : Tensor, %y : Tensor, %s : int[]):
  %1 : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=1]()
  %e : Tensor = aten::expand(%x, %s, %t)
  %z : Tensor = aten::add(%e, %y, %1)
  return (%z)
",
    after: "graph(%x : Tensor, %y : Tensor, %s : int[]):
  %3 : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=1]()
  %z : Tensor = aten::add(%x, %y, %3)
  return (%z)
",
    options: &[],
    build: |_| AnyPass::graph(RemoveExpands),
};

/// The pass `remove-expands`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveExpands;

impl GraphPass<TorchScript> for RemoveExpands {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        rewrite_nodes(graph, cx, "expansions removed", |g, n| {
            let implicit = g.operand(n, 2).and_then(|v| g.constant(v)).and_then(|c| c.as_bool());
            (g.kind_name(n) == "aten::expand" && implicit == Some(true))
                .then(|| g.operand(n, 0).map(Replacement::Value))
                .flatten()
        });
        Ok(())
    }
}
