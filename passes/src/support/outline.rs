//! Outlining: moving nodes of a graph into a graph in an attribute of a node, and the inverse.

use frazil_ir::{AttributeValue, Builder, CopyMap, Graph, NodeId, SymbolId, ValueId, symbols};
use std::collections::HashSet;
use std::sync::Arc;

/// Replaces the nodes of `run`, which are in one block and adjacent except for constants, by a node of kind `kind`, whose attribute `Subgraph` contains them
/// as a graph.
///
/// Constants that they use are copied into that graph. Other values from outside are its inputs, and values that are used outside are its outputs.
pub fn outline(graph: &mut Graph, run: &[NodeId], kind: SymbolId) {
    let Some(&first) = run.first() else { return };
    let nested = |n: &NodeId| {
        graph
            .node_blocks(*n)
            .iter()
            .flat_map(|&b| graph.nodes_recursive(b))
            .collect::<Vec<_>>()
    };
    let nodes: Vec<NodeId> = run.iter().flat_map(|n| std::iter::once(*n).chain(nested(n))).collect();
    let mut members: HashSet<NodeId> = HashSet::new();
    let mut inside: HashSet<ValueId> = HashSet::new();
    for &node in &nodes {
        members.insert(node);
        inside.extend(graph.node_outputs(node));
        for &block in graph.node_blocks(node) {
            members.insert(graph.return_node(block));
            inside.extend(graph.parameters(block));
        }
    }
    let mut part = Graph::new(graph.ctx().clone());
    let mut map = CopyMap::default();
    let mut inputs = Vec::new();
    let root = part.root();
    for &node in run {
        for user in std::iter::once(node).chain(nested(&node)) {
            let results = graph.node_blocks(user).iter().flat_map(|&b| graph.results(b));
            for value in graph.operands(user).chain(results).collect::<Vec<_>>() {
                if inside.contains(&value) || map.get(value).is_some() {
                    continue;
                }
                match graph.defining_node(value) {
                    Some(constant) if graph.kind(constant) == symbols::PRIM_CONSTANT => {
                        Builder::at_end(&mut part, root).copy_node(graph, constant, &mut map);
                    }
                    _ => {
                        let input = part.add_input(graph.ty(value));
                        map.set(value, input);
                        inputs.push(value);
                    }
                }
            }
        }
        Builder::at_end(&mut part, root).copy_node(graph, node, &mut map);
    }
    let used_outside = |v: &ValueId| graph.uses(*v).any(|u| !members.contains(&u.user));
    let outputs: Vec<ValueId> = run
        .iter()
        .flat_map(|&n| graph.node_outputs(n))
        .copied()
        .filter(used_outside)
        .collect();
    let results: Vec<ValueId> = outputs.iter().filter_map(|&v| map.get(v)).collect();
    part.set_results(root, &results);
    let node = graph.create_node(kind);
    graph.add_operands(node, &inputs);
    graph.set_attribute(node, symbols::ATTR_SUBGRAPH, AttributeValue::Graph(Arc::new(part)));
    graph.set_source_range(node, graph.source_range(first));
    graph.insert_before(node, first);
    for &output in &outputs {
        let new = graph.add_output(node, graph.ty(output));
        graph.replace_all_uses_with(output, new);
    }
    for &node in run.iter().rev() {
        graph.erase(node);
    }
}

/// Copies the nodes of the graph in an attribute of `node` before it, with its operands as their inputs, and returns their results. Returns `None`, without
/// changes, if there is no such graph, or its number of inputs differs.
pub fn copy_subgraph(graph: &mut Graph, node: NodeId) -> Option<Vec<ValueId>> {
    let body = graph.attribute(node, symbols::ATTR_SUBGRAPH)?.as_graph()?.clone();
    if body.inputs().len() != graph.operand_count(node) {
        return None;
    }
    let mut map = CopyMap::default();
    for (&input, argument) in body.inputs().iter().zip(graph.operands(node)) {
        map.set(input, argument);
    }
    Some(Builder::before(graph, node).copy_block(&body, body.root(), &mut map))
}

/// Replaces `node` by the nodes of the graph in its attribute: the inverse of [`outline`]. Returns false, without changes, if there is no graph that
/// fits its operands and outputs.
pub fn inline_subgraph(graph: &mut Graph, node: NodeId) -> bool {
    let body = graph.attribute(node, symbols::ATTR_SUBGRAPH).and_then(|a| a.as_graph());
    if body.is_none_or(|body| body.outputs().len() != graph.node_outputs(node).len()) {
        return false;
    }
    let Some(results) = copy_subgraph(graph, node) else {
        return false;
    };
    for (output, result) in graph.node_outputs(node).to_vec().into_iter().zip(results) {
        graph.replace_all_uses_with(output, result);
    }
    graph.erase(node)
}
