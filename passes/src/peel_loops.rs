//! Loop peeling: `peel-loops`.
//!
//! A loop becomes two: one of at most `rounds` iterations, and one for the remaining iterations. The second starts with the results of the first, and runs only
//! if the first was not stopped. Properties of the first iterations alone (the types of carried values, a branch on the counter) can then be used. For a
//! constant length, [`constant-loop-unrolling`](crate::constant_loop_unrolling) unrolls the first loop.
//!
//! **Sound** for any loop: the iterations run in the same order, with the same counter, under the same conditions.
//!
//! **Not done.**
//! - Loops that this pass has created.
//! - Loops of constant length whose second loop would not run.
//! - Loops inside a peeled loop.
//! - Bodies that would make the graph larger than the bound of [`loop-unrolling`](crate::loop_unrolling).
//!
//! PyTorch peels loops that contain profiling nodes, inside its executor only.

use crate::loop_unrolling::MAX_NODES;
use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support;
use crate::support::rewrite::int;
use crate::support::template::BlockTemplate;
use frazil_ir::{BlockId, Builder, Graph, InsertPoint, NodeId, ValueId, symbols, types};

/// Declaration of the pass `peel-loops` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "peel-loops",
    summary: "Peels the first iterations off a loop, into a loop of their own.",
    before: "graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %z : Tensor):
      %w : Tensor = aten::mul(%z, %i)
      -> (%t, %w)
  return (%y)
",
    after: "graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=1]()
  %1 : int = prim::min(%n, %0)
  %2 : Tensor, %3 : bool = prim::Loop(%1, %t, %x, %t)
    block0(%4 : int, %5 : Tensor, %6 : bool):
      %w : Tensor = aten::mul(%5, %4)
      -> (%t, %w, %t)
  %7 : int = aten::sub(%n, %1)
  %y : Tensor = prim::Loop(%7, %3, %2)
    block0(%i : int, %z : Tensor):
      %8 : int = aten::add(%i, %1)
      %w.1 : Tensor = aten::mul(%z, %8)
      -> (%t, %w.1)
  return (%y)
",
    options: &[OptionInfo {
        name: "rounds",
        kind: OptionKind::Int,
        default: "1",
        doc: "Maximum number of iterations of the first loop.",
    }],
    build: |options| {
        AnyPass::graph(PeelLoops {
            rounds: options.int("rounds"),
        })
    },
};

/// The pass `peel-loops`. See the [module documentation](self).
#[derive(Clone, Copy, Debug)]
pub struct PeelLoops {
    /// Maximum trip count of the first of the two loops into which a loop is split. The pass does nothing if it is less than one.
    pub rounds: i64,
}

impl Default for PeelLoops {
    fn default() -> Self {
        PeelLoops { rounds: 1 }
    }
}

impl GraphPass<TorchScript> for PeelLoops {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        for node in graph.all_nodes() {
            if let Some(body) = self.peelable(graph, node)
                && cx.rewrite("loops peeled")
            {
                self.peel(graph, node, body);
            }
        }
        Ok(())
    }
}

impl PeelLoops {
    /// Returns the body of the loop `node`, if the loop can be peeled.
    fn peelable(&self, graph: &Graph, node: NodeId) -> Option<BlockId> {
        if self.rounds < 1 || graph.kind(node) != symbols::PRIM_LOOP {
            return None;
        }
        let inside = |b: BlockId| graph.owner(b).is_some_and(|n| graph.kind(n) == symbols::PRIM_LOOP);
        if graph.enclosing_blocks(node).any(inside) {
            return None;
        }
        let length = graph.operand(node, 0)?;
        if self.is_peeled(graph, length) {
            return None;
        }
        let length = int(graph, length);
        let body = *graph.node_blocks(node).first()?;
        let fits = graph.node_capacity() + graph.nodes_recursive(body).len() <= MAX_NODES;
        (fits && length.is_none_or(|n| n > self.rounds)).then_some(body)
    }

    /// Returns true for the trip counts that [`peel`](Self::peel) creates: `min(n, rounds)`, and `n - min(n, rounds)`.
    fn is_peeled(&self, graph: &Graph, length: ValueId) -> bool {
        let made_by = |v: ValueId, kind: &str| graph.defining_node(v).filter(|n| graph.kind_name(*n) == kind);
        let bounded = |v: ValueId| {
            let bound = made_by(v, "prim::min").and_then(|n| graph.operand(n, 1));
            bound.and_then(|b| int(graph, b)) == Some(self.rounds)
        };
        let rest = made_by(length, "aten::sub").and_then(|n| graph.operand(n, 1));
        bounded(length) || rest.is_some_and(bounded)
    }

    fn peel(&self, graph: &mut Graph, node: NodeId, body: BlockId) {
        let ctx = graph.ctx().clone();
        let operands: Vec<ValueId> = graph.operands(node).collect();
        let [length, condition, initial @ ..] = operands.as_slice() else {
            return;
        };
        let template = BlockTemplate::new(graph, body);
        let mut carried: Vec<_> = initial.iter().map(|v| graph.ty(*v)).collect();
        for (ty, output) in carried.iter_mut().zip(graph.node_outputs(node)) {
            *ty = graph.ty(*output);
        }
        carried.push(types::BOOL);
        let mut b = Builder::before(graph, node);
        let rounds = b.constant(self.rounds);
        let count = b.op(ctx.symbol("prim::min"), &[*length, rounds], types::INT);
        let first = b.node(symbols::PRIM_LOOP, &[count, *condition], &carried);
        b.add_operands(first, initial);
        b.add_operand(first, *condition);
        let block = b.add_block(first);
        let counter = b.add_parameter(block, types::INT);
        let parameters: Vec<ValueId> = carried.iter().map(|ty| b.add_parameter(block, *ty)).collect();
        // The condition is passed out of the loop, and not used in it.
        let given: Vec<ValueId> = std::iter::once(counter)
            .chain(parameters.iter().copied().take(initial.len()))
            .collect();
        let mut results = template.instantiate(graph, InsertPoint::End(block), &given);
        results.extend(results.first().copied());
        graph.set_results(block, &results);

        let left = Builder::before(graph, node).op(ctx.symbol("aten::sub"), &[*length, count], types::INT);
        let given = graph.node_outputs(first).to_vec();
        let (Some((&goes_on, given)), Some(&counter)) = (given.split_last(), graph.parameters(body).first()) else {
            return;
        };
        let rest: Vec<ValueId> = [left, goes_on].into_iter().chain(given.iter().copied()).collect();
        graph.set_operands(node, &rest);
        if graph.has_uses(counter) {
            let point = graph.first(body).map_or(InsertPoint::End(body), InsertPoint::Before);
            let shifted = Builder::new(graph, point).op(ctx.symbol("aten::add"), &[counter, count], types::INT);
            let adds = graph.defining_node(shifted);
            graph.replace_uses_if(counter, shifted, |_, u| Some(u.user) != adds);
        }
    }
}
