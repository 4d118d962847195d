//! Removal of exceptions: `remove-exceptions`.
//!
//! A branch one side of which raises takes the other side, whatever its condition is. Constants are propagated and pooled afterwards.
//!
//! **Sound** for runs without exceptions, whose results do not change. Runs that would raise continue instead, which is the purpose of the pass.

use crate::constant_pooling::ConstantPooling;
use crate::constant_propagation::ConstantPropagation;
use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use frazil_ir::{BlockId, Builder, Graph, NodeId, symbols};

/// Declaration of the pass `remove-exceptions` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "remove-exceptions",
    summary: "Replaces conditionals with one branch that raises by the other branch.",
    before: "graph(%x : Tensor, %c : bool):
  %m : str = prim::Constant[value=\"no\"]()
  %none : NoneType = prim::Constant()
   = prim::If(%c)
    block0():
       = prim::RaiseException(%m, %none)
      -> ()
    block1():
      -> ()
  %y : Tensor = aten::relu(%x)
  return (%y)
",
    after: "graph(%x : Tensor, %c : bool):
  %y : Tensor = aten::relu(%x)
  return (%y)
",
    options: &[],
    build: |_| AnyPass::graph(RemoveExceptions),
};

/// The pass `remove-exceptions`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveExceptions;

impl GraphPass<TorchScript> for RemoveExceptions {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let mut changed = false;
        for node in graph.all_nodes() {
            if let Some(taken) = taken_side(graph, node)
                && cx.rewrite("branches decided")
            {
                let condition = Builder::before(graph, node).constant(taken);
                graph.set_operand(node, 0, condition);
                changed = true;
            }
        }
        if changed {
            cx.run_part(&ConstantPropagation::default(), graph)?;
            cx.run_part(&ConstantPooling, graph)?;
        }
        Ok(())
    }
}

/// Returns the condition under which the branch `node` does not raise an exception. `None` if both sides raise, or neither side does.
fn taken_side(graph: &Graph, node: NodeId) -> Option<bool> {
    let &[then, other] = graph.node_blocks(node) else {
        return None;
    };
    if graph.kind(node) != symbols::PRIM_IF {
        return None;
    }
    let raises = |b: BlockId| graph.nodes(b).any(|n| graph.kind(n) == symbols::PRIM_RAISE_EXCEPTION);
    match (raises(then), raises(other)) {
        (true, false) => Some(false),
        (false, true) => Some(true),
        _ => None,
    }
}
