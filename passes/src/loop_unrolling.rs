//! Unrolling counted loops: `loop-unrolling`.
//!
//! A loop of constant length below 64 becomes that many copies of its body. Another one becomes a loop over 8 copies of the body at a time, and a
//! loop for the remaining iterations.
//!
//! **Sound** for loops that only count: both the initial condition and the one that the body passes on are the constant true. The counter becomes a
//! carried value if the body uses it.
//!
//! **Not done.** Bodies of more than 32 nodes, and loops whose unrolling would make the graph larger than [`MAX_NODES`].
//!
//! For a loop of negative length, PyTorch inserts one copy of the body; here there is none.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::rewrite::{clean_up, int};
use crate::support::template::BlockTemplate;
use frazil_ir::{BlockId, Builder, Graph, InsertPoint, NodeId, ValueId, symbols, types};

/// Declaration of the pass `loop-unrolling` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "loop-unrolling",
    summary: "Unrolls counted loops: short loops of constant length completely, others by eight.",
    before: "graph(%x : Tensor):
  %n : int = prim::Constant[value=2]()
  %t : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %z : Tensor):
      %w : Tensor = aten::relu(%z)
      -> (%t, %w)
  return (%y)
",
    after: "graph(%x : Tensor):
  %w : Tensor = aten::relu(%x)
  %w.1 : Tensor = aten::relu(%w)
  return (%w.1)
",
    options: &[],
    build: |_| AnyPass::graph(LoopUnrolling),
};

/// Number of copies of the body when a loop of unknown trip count is unrolled.
const FACTOR: i64 = 8;
/// Maximum number of nodes in the body of a loop that is unrolled.
const MAX_BODY: usize = 32;
/// Trip count from which loops are not unrolled completely.
pub(crate) const MAX_REPEATS: i64 = 64;
/// Maximum number of nodes of the graph after unrolling, since unrolling of nested loops multiplies the copies.
pub(crate) const MAX_NODES: usize = 4_000_000;

const STATISTIC: &str = "loops unrolled";

/// The pass `loop-unrolling`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopUnrolling;

impl GraphPass<TorchScript> for LoopUnrolling {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        unroll_all(graph, cx, |g, body, _| is_small(g, body))
    }
}

/// Unrolls counted loops (see [`is_counted`]), inner loops first, and removes unused nodes. `wanted` receives a loop's body and its trip count, if that is
/// constant, and returns whether to unroll the loop.
///
/// # Errors
/// None; the return type is that of passes.
pub(crate) fn unroll_all(
    graph: &mut Graph,
    cx: &mut PassContext<'_>,
    wanted: impl Fn(&Graph, BlockId, Option<i64>) -> bool,
) -> Result<(), PassError> {
    let before = cx.counted(STATISTIC);
    let loops: Vec<NodeId> = graph
        .all_nodes()
        .into_iter()
        .filter(|n| is_counted(graph, *n))
        .collect();
    // In reverse order, so that inner loops come before those around them.
    for node in loops.into_iter().rev() {
        let Some(&body) = graph.node_blocks(node).first().filter(|_| graph.is_alive(node)) else {
            continue;
        };
        let length = graph.operand(node, 0).and_then(|v| int(graph, v));
        // Cheap checks come first: counting the bodies of nested loops takes quadratic time in their depth.
        if !wanted(graph, body, length) {
            continue;
        }
        let copies = length.filter(|n| *n < MAX_REPEATS).unwrap_or(FACTOR).max(0);
        let grows = graph
            .walk(body)
            .count()
            .saturating_mul(copies as usize)
            .saturating_add(graph.node_capacity());
        if grows > MAX_NODES || !cx.rewrite(STATISTIC) {
            continue;
        }
        frazil_limits::check_nodes(grows)?;
        frazil_limits::check_repetitions(copies as u64, "iterations of a loop that is unrolled")?;
        unroll(graph, node, length);
    }
    clean_up(graph, cx, STATISTIC, before)
}

/// Returns true if the loop `node` always runs exactly as often as its trip count says.
pub(crate) fn is_counted(graph: &Graph, node: NodeId) -> bool {
    let yes = |v: Option<ValueId>| v.and_then(|v| graph.constant(v)).and_then(|c| c.as_bool()) == Some(true);
    graph.kind(node) == symbols::PRIM_LOOP
        && yes(graph.operand(node, 1))
        && graph
            .node_blocks(node)
            .first()
            .is_some_and(|b| yes(graph.results(*b).next()))
}

fn is_small(graph: &Graph, body: BlockId) -> bool {
    let runs = |n: &NodeId| graph.kind(*n) != symbols::PRIM_CONSTANT;
    graph.walk(body).filter(runs).take(MAX_BODY + 1).count() <= MAX_BODY
}

fn unroll(graph: &mut Graph, node: NodeId, length: Option<i64>) {
    let Some(&body) = graph.node_blocks(node).first() else {
        return;
    };
    let counter = graph.parameters(body).first().copied();
    if counter.is_some_and(|v| graph.has_uses(v)) {
        carry_counter(graph, node, body);
    }
    let Some(count) = graph.operand(node, 0) else { return };
    match length {
        Some(n) if n < MAX_REPEATS => {
            let initial: Vec<ValueId> = graph.operands(node).skip(2).collect();
            let results = repeat(graph, body, InsertPoint::Before(node), n, count, initial);
            for (output, result) in graph.node_outputs(node).to_vec().into_iter().zip(results) {
                graph.replace_all_uses_with(output, result);
            }
            graph.erase(node);
        }
        _ => split(graph, node, body, count),
    }
}

/// Inserts `times` copies of `body` at `point`. Each copy uses the results of the previous copy. Returns the results of the last copy.
///
/// The counter of every copy is `counter`; it is unused.
fn repeat(
    graph: &mut Graph,
    body: BlockId,
    point: InsertPoint,
    times: i64,
    counter: ValueId,
    initial: Vec<ValueId>,
) -> Vec<ValueId> {
    let template = BlockTemplate::new(graph, body);
    let mut values = initial;
    for _ in 0..times {
        let parameters: Vec<ValueId> = std::iter::once(counter).chain(values).collect();
        let results = template.instantiate(graph, point, &parameters);
        values = results.into_iter().skip(1).collect();
    }
    values
}

/// Replaces the loop's counter by an additional carried value, the first one.
fn carry_counter(graph: &mut Graph, node: NodeId, body: BlockId) {
    let ctx = graph.ctx().clone();
    let zero = Builder::before(graph, node).constant(0);
    graph.insert_operand(node, 2, zero);
    graph.add_output(node, types::INT);
    let last = graph.node_outputs(node).len() - 1;
    let order: Vec<usize> = std::iter::once(last).chain(0..last).collect();
    graph.permute_outputs(node, &order);
    let carried = graph.add_parameter(body, types::INT);
    let last = graph.parameters(body).len() - 1;
    let order: Vec<usize> = [0, last].into_iter().chain(1..last).collect();
    graph.permute_parameters(body, &order);
    let Some(&counter) = graph.parameters(body).first() else {
        return;
    };
    graph.replace_all_uses_with(counter, carried);
    let mut b = Builder::at_end(graph, body);
    let one = b.constant(1);
    let next = b.op(ctx.symbol("aten::add"), &[carried, one], types::INT);
    let return_node = graph.return_node(body);
    graph.insert_operand(return_node, 1, next);
}

/// Replaces the loop by a loop over [`FACTOR`] copies of its body, followed by a loop for the remaining iterations.
fn split(graph: &mut Graph, node: NodeId, body: BlockId, count: ValueId) {
    let ctx = graph.ctx().clone();
    let mut b = Builder::before(graph, node);
    let factor = b.constant(FACTOR);
    let rounds = b.op(
        ctx.symbol("aten::__round_to_zero_floordiv"),
        &[count, factor],
        types::INT,
    );
    // The second loop is a copy of the original one, behind it.
    let outputs = graph.node_outputs(node).to_vec();
    let output_types: Vec<_> = outputs.iter().map(|v| graph.ty(*v)).collect();
    let parameter_types: Vec<_> = graph.parameters(body).iter().map(|v| graph.ty(*v)).collect();
    let condition = graph.operand(node, 1);
    let initial: Vec<ValueId> = graph.operands(node).skip(2).collect();
    let mut b = Builder::before(graph, node);
    let first = b.node(symbols::PRIM_LOOP, &[rounds], &output_types);
    if let Some(c) = condition {
        b.add_operand(first, c);
    }
    b.add_operands(first, &initial);
    let block = b.add_block(first);
    let parameters: Vec<ValueId> = parameter_types.iter().map(|ty| b.add_parameter(block, *ty)).collect();
    let carried = parameters.get(1..).unwrap_or_default().to_vec();
    let results = repeat(graph, body, InsertPoint::End(block), FACTOR, count, carried);
    let again: Vec<ValueId> = condition.into_iter().chain(results).collect();
    graph.set_results(block, &again);
    let mut b = Builder::before(graph, node);
    let done = b.op(ctx.symbol("aten::mul"), &[rounds, factor], types::INT);
    let rest = b.op(ctx.symbol("aten::sub"), &[count, done], types::INT);
    graph.set_operand(node, 0, rest);
    for (i, value) in graph.node_outputs(first).to_vec().into_iter().enumerate() {
        graph.set_operand(node, i + 2, value);
    }
}
