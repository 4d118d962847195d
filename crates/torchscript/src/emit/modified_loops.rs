//! Loops over an iterable that may also exit early. In Python code, a `for` has either a trip count or a condition, so such a loop becomes one with a condition
//! and an explicit counter.

use frazil_ir::{BlockId, Builder, Graph, NodeId, ValueId, symbols, types};

/// Rewrites all loops of `graph` that have both a trip count and a condition; see the [module documentation](self).
pub(super) fn run(graph: &mut Graph) {
    for node in graph.all_nodes() {
        if graph.kind(node) == symbols::PRIM_LOOP
            && let (&[body], Some(rounds), Some(first)) =
                (graph.node_blocks(node), graph.operand(node, 0), graph.operand(node, 1))
            && is_modified(graph, body, rounds, first)
        {
            rewrite(graph, node, body, rounds, first);
        }
    }
}

fn is_modified(graph: &Graph, body: BlockId, rounds: ValueId, first: ValueId) -> bool {
    let is_true =
        |value: Option<ValueId>| value.and_then(|v| graph.constant(v)).and_then(|c| c.as_bool()) == Some(true);
    let always = is_true(Some(first)) && is_true(graph.results(body).next());
    let unbounded = graph.constant(rounds).and_then(|c| c.as_int()) == Some(i64::MAX);
    let counted = graph
        .parameters(body)
        .first()
        .is_some_and(|&index| graph.has_uses(index));
    !always && (!unbounded || counted)
}

fn rewrite(graph: &mut Graph, node: NodeId, body: BlockId, rounds: ValueId, first: ValueId) {
    let ctx = graph.ctx().clone();
    let [gt, lt, add, and] = ["aten::gt", "aten::lt", "aten::add", "aten::__and__"].map(|name| ctx.symbol(name));
    let enters_at_once = graph.constant(first).and_then(|c| c.as_bool()) == Some(true);
    let mut builder = Builder::before(graph, node);
    let (zero, one) = (builder.constant(0), builder.constant(1));
    let mut condition = builder.op(gt, &[rounds, zero], types::BOOL);
    let unbounded = builder.constant(i64::MAX);
    if !enters_at_once {
        condition = builder.op(and, &[condition, first], types::BOOL);
    }
    graph.set_operand(node, 0, unbounded);
    graph.set_operand(node, 1, condition);
    graph.add_operand(node, zero);
    graph.add_output(node, types::INT);
    let index = graph.add_parameter(body, types::INT);
    if let Some(&old) = graph.parameters(body).first() {
        graph.clear_value_name(old);
        graph.replace_all_uses_with(old, index);
    }
    let mut results: Vec<ValueId> = graph.results(body).collect();
    let mut builder = Builder::at_end(graph, body);
    let next = builder.op(add, &[index, one], types::INT);
    let in_bounds = builder.op(lt, &[next, rounds], types::BOOL);
    if let Some(go_on) = results.first_mut() {
        *go_on = builder.op(and, &[in_bounds, *go_on], types::BOOL);
    }
    results.push(next);
    graph.set_results(body, &results);
}
