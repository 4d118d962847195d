//! Loop-invariant code motion: `hoist-loop-invariants`.
//!
//! **Sound when**
//! - the node has no effect, draws no random numbers, contains no graph, and its operands and results are not written;
//! - all its operands are defined before the loop, or hoisted themselves;
//! - its results are immutable, or do not leave the graph: each iteration returns a new tensor or list, which is observable outside;
//! - it is in the body itself, and the loop is known to run; or it cannot raise ([`Totality`]), such as a constant: an iteration that never runs raises no exception.
//!
//! **Not done.** As wherever PyTorch moves nodes, an exception that the node raises may come before effects of the first iteration. Nodes in branches are not
//! hoisted, because their side may not be taken.
//!
//! PyTorch has no such pass for its graphs (its fuser does it on loop nests).

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::constants::is_immutable;
use crate::support::effects::{self, Effect};
use crate::support::rewrite::int;
use crate::{AliasDb, support};
use frazil_ir::schema::{Catalogue, Totality};
use frazil_ir::{AttributeValue, BlockId, Graph, NodeId, TypeKind, ValueId, symbols};

/// Declaration of the pass `hoist-loop-invariants` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "hoist-loop-invariants",
    summary: "Moves loop-invariant nodes before the loop.",
    before: "graph(%x : Tensor, %y : Tensor):
  %n : int = prim::Constant[value=3]()
  %t : bool = prim::Constant[value=1]()
  %r : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %z : Tensor):
      %s : Tensor = aten::sigmoid(%y)
      %w : Tensor = aten::mul(%z, %s)
      -> (%t, %w)
  return (%r)
",
    after: "graph(%x : Tensor, %y : Tensor):
  %n : int = prim::Constant[value=3]()
  %t : bool = prim::Constant[value=1]()
  %s : Tensor = aten::sigmoid(%y)
  %r : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %z : Tensor):
      %w : Tensor = aten::mul(%z, %s)
      -> (%t, %w)
  return (%r)
",
    options: &[],
    build: |_| AnyPass::graph(HoistLoopInvariants),
};

/// The pass `hoist-loop-invariants`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct HoistLoopInvariants;

impl GraphPass<TorchScript> for HoistLoopInvariants {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let loops: Vec<NodeId> = graph
            .all_nodes()
            .into_iter()
            .filter(|n| graph.kind(*n) == symbols::PRIM_LOOP)
            .collect();
        if loops.is_empty() {
            return Ok(());
        }
        let db = cx.alias_db(graph);
        // Inner loops first: nodes that are hoisted out of them may be hoisted out of outer ones too.
        for node in loops.into_iter().rev() {
            let Some(&body) = graph.node_blocks(node).first() else {
                continue;
            };
            let runs = is_entered(graph, node);
            let mut next = graph.first(body);
            while let Some(inner) = next {
                next = graph.next(inner);
                let safe = (runs || cannot_fail(graph, inner, cx.operators().catalogue()))
                    && is_invariant(graph, inner, body, &db, cx);
                if safe && cx.rewrite("nodes hoisted") {
                    graph.move_before(inner, node);
                }
            }
        }
        Ok(())
    }
}

/// Returns true if the loop `node` runs at least once.
fn is_entered(graph: &Graph, node: NodeId) -> bool {
    let length = graph.operand(node, 0).and_then(|v| int(graph, v));
    let starts = graph.operand(node, 1).and_then(|v| graph.constant(v));
    length.is_some_and(|n| n > 0) && starts.and_then(|c| c.as_bool()) == Some(true)
}

/// Returns whether `node` raises for no operands.
fn cannot_fail(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> bool {
    let is_tensor = |v: ValueId| matches!(graph.ctx().type_kind(graph.ty(v)), TypeKind::Tensor(_));
    matches!(
        graph.kind(node),
        symbols::PRIM_CONSTANT
            | symbols::PRIM_LIST_CONSTRUCT
            | symbols::PRIM_TUPLE_CONSTRUCT
            | symbols::PRIM_TUPLE_UNPACK
    ) || match catalogue.properties(graph.kind(node)).totality {
        Totality::Total => true,
        Totality::TotalOnValues => !graph.operands(node).any(is_tensor),
        Totality::Partial => false,
    }
}

fn is_invariant(graph: &Graph, node: NodeId, body: BlockId, db: &AliasDb, cx: &PassContext<'_>) -> bool {
    let outside = |v: ValueId| graph.defining_block(v) != Some(body);
    let plain = |v: &ValueId| is_immutable(graph.ctx(), graph.ty(*v)) || !db.escapes_scope(&[*v]);
    let holds_graph = graph
        .attributes(node)
        .iter()
        .any(|a| matches!(a.value, AttributeValue::Graph(_) | AttributeValue::Graphs(_)));
    graph.node_blocks(node).is_empty()
        && !holds_graph
        && graph.operands(node).all(outside)
        && !matches!(
            graph.kind(node),
            symbols::PRIM_CREATE_OBJECT | symbols::PRIM_UNINITIALIZED
        )
        && effects::effect(graph, node, cx.operators().catalogue()) == Effect::Pure
        && !db.node_has_writers(graph, node)
        && graph.node_outputs(node).iter().all(plain)
}
