//! Inlining of functional graphs: `inline-functional-graphs`, the inverse of [`create-functional-graphs`](crate::create_functional_graphs).
//!
//! The nodes of a `prim::FunctionalGraph` replace it.
//!
//! **Sound when** the graph has as many inputs and outputs as the node has operands and outputs; others are kept.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::outline::inline_subgraph;
use frazil_ir::{Graph, symbols};

/// Declaration of the pass `inline-functional-graphs` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "inline-functional-graphs",
    summary: "Replaces functional graphs by their nodes.",
    before: "graph(%x : Tensor):
  %y : Tensor = prim::FunctionalGraph_0(%x)
  return (%y)
with prim::FunctionalGraph_0 = graph(%a : Tensor):
  %b : Tensor = aten::relu(%a)
  return (%b)
",
    after: "graph(%x : Tensor):
  %b : Tensor = aten::relu(%x)
  return (%b)
",
    options: &[],
    build: |_| AnyPass::graph(InlineFunctionalGraphs),
};

/// The pass `inline-functional-graphs`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineFunctionalGraphs;

impl GraphPass<TorchScript> for InlineFunctionalGraphs {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        // Nested groups first.
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        for node in graph.all_nodes() {
            if graph.kind(node) == symbols::PRIM_FUNCTIONAL_GRAPH && cx.may_rewrite() && inline_subgraph(graph, node) {
                // Fuel was available.
                let _ = cx.rewrite("functional graphs inlined");
            }
        }
        Ok(())
    }
}
