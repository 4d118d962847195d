//! Inlining of forks: `inline-fork-wait`.
//!
//! The body of a `prim::fork` replaces it, and the results replace those of the waits.
//!
//! **Sound when** the body runs completely at the fork, which is one of the possible orders. An exception is then raised there and not at the wait. Forks whose
//! future is used by anything but `aten::wait` are kept.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::outline::copy_subgraph;
use frazil_ir::{Graph, NodeId, symbols};

/// Declaration of the pass `inline-fork-wait` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "inline-fork-wait",
    summary: "Replaces forks by their bodies.",
    before: "graph(%x : Tensor):
  %f : Future(Tensor) = prim::fork_0(%x)
  %y : Tensor = aten::wait(%f)
  return (%y)
with prim::fork_0 = graph(%a : Tensor):
  %b : Tensor = aten::relu(%a)
  return (%b)
",
    after: "graph(%x : Tensor):
  %b : Tensor = aten::relu(%x)
  return (%b)
",
    options: &[],
    build: |_| AnyPass::graph(InlineForkWait),
};

/// The pass `inline-fork-wait`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineForkWait;

impl GraphPass<TorchScript> for InlineForkWait {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        for node in graph.all_nodes() {
            if is_waited_for(graph, node) && cx.rewrite("forks inlined") {
                inline(graph, node);
            }
        }
        Ok(())
    }
}

/// Returns true if `node` is a fork with one result that only waits use.
fn is_waited_for(graph: &Graph, node: NodeId) -> bool {
    let body = graph.attribute(node, symbols::ATTR_SUBGRAPH).and_then(|a| a.as_graph());
    let (symbols::PRIM_FORK, Some(body), Some(future)) = (graph.kind(node), body, graph.output(node)) else {
        return false;
    };
    body.inputs().len() == graph.operand_count(node)
        && body.outputs().len() == 1
        && graph.uses(future).all(|u| graph.kind(u.user) == symbols::PRIM_WAIT)
}

fn inline(graph: &mut Graph, node: NodeId) {
    let Some(future) = graph.output(node) else { return };
    let Some(results) = copy_subgraph(graph, node) else {
        return;
    };
    let waits: Vec<NodeId> = graph.uses(future).map(|u| u.user).collect();
    for wait in waits {
        if let (Some(output), Some(&result)) = (graph.output(wait), results.first()) {
            graph.replace_all_uses_with(output, result);
        }
        graph.erase(wait);
    }
    graph.erase(node);
}
