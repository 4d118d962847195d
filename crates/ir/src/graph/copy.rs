//! Copying of nodes between graphs, and compaction of a graph.

use super::{BlockId, Builder, Graph, NodeId, ValueId};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use std::collections::HashMap;

/// Map from values of the source graph to values of the target graph, used while nodes are copied.
#[derive(Clone, Debug, Default)]
pub struct CopyMap {
    values: HashMap<ValueId, ValueId>,
}

impl CopyMap {
    /// Maps the source value `from` to the target value `to`.
    pub fn set(&mut self, from: ValueId, to: ValueId) {
        self.values.insert(from, to);
    }

    /// Returns the target value to which the source value `from` is mapped.
    pub fn get(&self, from: ValueId) -> Option<ValueId> {
        self.values.get(&from).copied()
    }
}

/// Map from old to new node and value ids after [`Graph::compact`].
#[derive(Clone, Debug)]
pub struct Compaction {
    /// The new id of each node that is alive.
    pub nodes: SecondaryMap<NodeId, PackedOption<NodeId>>,
    /// The new id of each value that is alive.
    pub values: SecondaryMap<ValueId, PackedOption<ValueId>>,
}

impl Builder<'_> {
    /// Copies the nodes of `block` of `source` to the insertion point. `map` must contain the block's parameters and all values
    /// from outside that the nodes use; copied values are added. Returns the values for the block's results.
    ///
    /// An operand that is not in `map` is left out; the verifier then reports a missing operand.
    pub fn copy_block(&mut self, source: &Graph, block: BlockId, map: &mut CopyMap) -> Vec<ValueId> {
        for node in source.nodes(block) {
            self.copy_node(source, node, map);
        }
        source.results(block).filter_map(|v| map.get(v)).collect()
    }

    /// Copies `node` of `source` with its blocks to the insertion point; its operands must be in `map`, as for [`Builder::copy_block`].
    pub fn copy_node(&mut self, source: &Graph, node: NodeId, map: &mut CopyMap) -> NodeId {
        // Not recursive, since untrusted input determines the nesting. Each entry is the next node and the insertion
        // point of its copy.
        struct Level {
            next: Option<NodeId>,
            source: BlockId,
            target: BlockId,
        }
        let top = self.copy_node_header(source, node, map);
        self.place(top);
        let mut levels = Vec::new();
        let mut copied = (node, top);
        loop {
            let (node, copy) = copied;
            let first = levels.len();
            for &inner in source.node_blocks(node) {
                let new = self.add_block(copy);
                for &p in source.parameters(inner) {
                    let q = self.add_parameter(new, source.ty(p));
                    if let Some(name) = source.value_name(p) {
                        self.set_value_name(q, name);
                    }
                    map.set(p, q);
                }
                levels.push(Level {
                    next: source.first(inner),
                    source: inner,
                    target: new,
                });
            }
            // The first block is processed next.
            levels[first..].reverse();
            copied = loop {
                let Some(level) = levels.last_mut() else {
                    return top;
                };
                if let Some(next) = level.next {
                    level.next = source.next(next);
                    let target = level.target;
                    let copy = self.copy_node_header(source, next, map);
                    self.append(target, copy);
                    break (next, copy);
                }
                let results: Vec<_> = source.results(level.source).filter_map(|v| map.get(v)).collect();
                let target = level.target;
                self.set_results(target, &results);
                levels.pop();
            };
        }
    }

    /// Copies `node` without its blocks, and does not insert the copy. Its outputs are added to `map`.
    fn copy_node_header(&mut self, source: &Graph, node: NodeId, map: &mut CopyMap) -> NodeId {
        let copy = self.create_node(source.kind(node));
        let operands: Vec<_> = source.operands(node).filter_map(|v| map.get(v)).collect();
        self.add_operands(copy, &operands);
        for a in source.attributes(node) {
            self.set_attribute(copy, a.name, a.value.clone());
        }
        for &output in source.node_outputs(node) {
            let value = self.add_output(copy, source.ty(output));
            if let Some(name) = source.value_name(output) {
                self.set_value_name(value, name);
            }
            map.set(output, value);
        }
        self.set_source_range(copy, source.source_range(node));
        if let Some(scope) = source.scope(node) {
            self.set_scope(copy, scope);
        }
        copy
    }
}

impl Graph {
    /// Returns a graph with the same inputs, nodes and outputs and without tombstones, and the map from old to new values.
    fn rebuilt(&self) -> (Graph, CopyMap) {
        let mut out = Graph::new(self.ctx().clone());
        let mut map = CopyMap::default();
        for &input in self.inputs() {
            let copy = out.add_input(self.ty(input));
            if let Some(name) = self.value_name(input) {
                out.set_value_name(copy, name);
            }
            map.set(input, copy);
        }
        let root = out.root();
        let results = Builder::at_end(&mut out, root).copy_block(self, self.root(), &mut map);
        out.set_results(root, &results);
        (out, map)
    }

    /// Drops erased nodes and renumbers ids in the order of the graph. Old ids become invalid; the result maps them to new ids. The revision keeps counting.
    pub fn compact(&mut self) -> Compaction {
        let (mut new, map) = self.rebuilt();
        let mut compaction = Compaction {
            nodes: SecondaryMap::new(),
            values: SecondaryMap::new(),
        };
        for (&from, &to) in &map.values {
            compaction.values[from] = to.into();
        }
        for (old, fresh) in self.all_nodes().into_iter().zip(new.all_nodes()) {
            compaction.nodes[old] = fresh.into();
        }
        new.revision = self.revision + 1;
        new.log = self.log.take();
        *self = new;
        compaction
    }
}

#[cfg(test)]
mod tests {
    use crate::{Builder, Context, Graph, types};
    use std::sync::Arc;

    #[test]
    fn compaction_drops_tombstones_and_keeps_the_graph() {
        let ctx = Arc::new(Context::new());
        let add = ctx.symbol("aten::add");
        let mut g = Graph::new(ctx);
        let x = g.add_input(types::INT);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let dead = b.op(add, &[x, x], types::INT);
        let live = b.op(add, &[x, x], types::INT);
        let cond = b.constant(true);
        let branch = b.node(crate::symbols::PRIM_IF, &[cond], &[types::INT]);
        for _ in 0..2 {
            let block = b.add_block(branch);
            b.add_result(block, live);
        }
        let out = b.output(branch).unwrap();
        g.add_result(root, out);
        assert!(g.erase(g.defining_node(dead).unwrap()));
        assert!(!g.erase(g.defining_node(live).unwrap()), "it is used");
        let map = g.compact();
        assert_eq!(map.values[dead].expand(), None);
        let live = map.values[live].expand().unwrap();
        assert_eq!(g.uses(live).count(), 2);
        assert_eq!(g.all_nodes().len(), 3);
        assert_eq!(g.verify(None), Ok(()));
    }
}
