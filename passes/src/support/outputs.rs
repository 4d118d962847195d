//! Sorting of the outputs of branches and loops.

use frazil_ir::{Graph, NodeId, Use, ValueId, symbols};
use std::cmp::Ordering;

/// Returns the outputs of a branch or loop in the order of their first uses; unused outputs come last.
pub fn order_of_uses(graph: &Graph, node: NodeId) -> Vec<usize> {
    let first = |output: &ValueId| graph.uses(*output).min_by(|a, b| compare(graph, a, b));
    let firsts: Vec<Option<Use>> = graph.node_outputs(node).iter().map(first).collect();
    let mut order: Vec<usize> = (0..firsts.len()).collect();
    // Stable: outputs without uses keep their order.
    order.sort_by(|&i, &j| match (&firsts[i], &firsts[j]) {
        (Some(a), Some(b)) => compare(graph, a, b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
    order
}

/// Compares the positions of two uses in the graph.
fn compare(graph: &Graph, a: &Use, b: &Use) -> Ordering {
    if a.user == b.user {
        return a.index.cmp(&b.index);
    }
    graph.compare(a.user, b.user).unwrap_or(Ordering::Equal)
}

/// Reorders the outputs of a branch or loop by `order`, together with the results of its blocks and the carried values
/// of a loop.
pub fn permute(graph: &mut Graph, node: NodeId, order: &[usize]) {
    let is_loop = graph.kind(node) == symbols::PRIM_LOOP;
    graph.permute_outputs(node, order);
    // The condition of a loop comes before what it carries; its trip count and first condition before the initial values.
    let carried = |values: Vec<ValueId>, before: usize| -> Vec<ValueId> {
        let moved = order.iter().filter_map(|&from| values.get(from + before).copied());
        values.iter().copied().take(before).chain(moved).collect()
    };
    for block in graph.node_blocks(node).to_vec() {
        let results = carried(graph.results(block).collect(), usize::from(is_loop));
        graph.set_results(block, &results);
        if is_loop {
            let shifted: Vec<usize> = std::iter::once(0).chain(order.iter().map(|&from| from + 1)).collect();
            graph.permute_parameters(block, &shifted);
        }
    }
    if is_loop {
        let operands = carried(graph.operands(node).collect(), 2);
        graph.set_operands(node, &operands);
    }
}
