//! Templates for inserting copies of a block into its own graph.

use frazil_ir::{BlockId, Builder, CopyMap, Graph, InsertPoint, ValueId};
use std::collections::HashSet;

/// A template for copies of a block in its graph. Creating a template takes time proportional to the size of the block.
pub struct BlockTemplate {
    /// The block as a graph: its inputs are the block's parameters, then the values from outside that the block uses.
    graph: Graph,
    outside: Vec<ValueId>,
}

impl BlockTemplate {
    /// Returns a template for copies of `block`. The graph is not changed.
    pub fn new(graph: &Graph, block: BlockId) -> BlockTemplate {
        let outside = values_from_outside(graph, block);
        let mut template = Graph::new(graph.ctx().clone());
        let mut map = CopyMap::default();
        for &v in graph.parameters(block).iter().chain(&outside) {
            let input = template.add_input(graph.ty(v));
            map.set(v, input);
        }
        let root = template.root();
        let results = Builder::at_end(&mut template, root).copy_block(graph, block, &mut map);
        template.set_results(root, &results);
        BlockTemplate {
            graph: template,
            outside,
        }
    }

    /// Inserts a copy of the nodes at `point` of the block's graph, with `parameters` in place of the block's parameters. Returns the block's results.
    pub fn instantiate(&self, graph: &mut Graph, point: InsertPoint, parameters: &[ValueId]) -> Vec<ValueId> {
        let mut map = CopyMap::default();
        for (&input, &v) in self.graph.inputs().iter().zip(parameters.iter().chain(&self.outside)) {
            map.set(input, v);
        }
        Builder::new(graph, point).copy_block(&self.graph, self.graph.root(), &mut map)
    }
}

/// Returns the values that the nodes of `block` use and that are defined outside of it, each once, in the order of their first use.
pub fn values_from_outside(graph: &Graph, block: BlockId) -> Vec<ValueId> {
    let mut inside: HashSet<ValueId> = graph.parameters(block).iter().copied().collect();
    let mut used = Vec::new();
    for n in graph.nodes_recursive(block) {
        used.extend(graph.operands(n));
        inside.extend(graph.node_outputs(n));
        for &b in graph.node_blocks(n) {
            inside.extend(graph.parameters(b));
            used.extend(graph.results(b));
        }
    }
    used.extend(graph.results(block));
    used.retain(|v| inside.insert(*v));
    used
}
