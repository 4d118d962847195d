//! Moving nodes without changing what anybody sees.

use super::AliasDb;
use crate::support::effects::{self, Effect};
use frazil_ir::schema::Catalogue;
use frazil_ir::{Graph, NodeId, ValueId};
use std::collections::HashSet;

/// What a set of nodes that move together uses, gives, reads and writes.
#[derive(Default)]
struct Moving {
    nodes: Vec<NodeId>,
    members: HashSet<NodeId>,
    defined: HashSet<ValueId>,
    used: HashSet<ValueId>,
    visible: bool,
}

impl AliasDb {
    /// True when the order of `a` and `b` matters: one writes what the other reads or writes, or both are seen from outside.
    pub fn conflict(&self, graph: &Graph, a: NodeId, b: NodeId, catalogue: &Catalogue) -> bool {
        if is_visible(graph, a, catalogue) && is_visible(graph, b, catalogue) {
            return true;
        }
        let touched = |n: NodeId| {
            let mut values = used_values(graph, n);
            values.extend_from_slice(graph.node_outputs(n));
            values
        };
        (self.is_mutable(a) && self.writes_to_alias(a, &touched(b)))
            || (self.is_mutable(b) && self.writes_to_alias(b, &touched(a)))
    }

    /// Moves `node` after `target`, which comes later in the same block, together with the nodes between that depend on it. False, and
    /// nothing moved, when `target` itself depends on it.
    pub fn move_after_topologically_valid(
        &self,
        graph: &mut Graph,
        node: NodeId,
        target: NodeId,
        catalogue: &Catalogue,
    ) -> bool {
        if node == target || graph.parent(node) != graph.parent(target) || !graph.is_before(node, target) {
            return node == target;
        }
        let mut moving = Moving::default();
        moving.add(graph, node, catalogue);
        let mut cursor = graph.next(node);
        while let Some(n) = cursor {
            let depends = self.depends(graph, &moving, n, catalogue);
            if n == target {
                if depends {
                    return false;
                }
                break;
            }
            if depends {
                moving.add(graph, n, catalogue);
            }
            cursor = graph.next(n);
        }
        if cursor.is_none() {
            return false;
        }
        let mut place = target;
        for n in moving.nodes {
            graph.move_after(n, place);
            place = n;
        }
        true
    }

    /// Moves `node` before `target`, which comes earlier in the same block, together with the nodes between that it depends on. False, and
    /// nothing moved, when it depends on `target` itself.
    pub fn move_before_topologically_valid(
        &self,
        graph: &mut Graph,
        node: NodeId,
        target: NodeId,
        catalogue: &Catalogue,
    ) -> bool {
        if node == target || graph.parent(node) != graph.parent(target) || !graph.is_before(target, node) {
            return node == target;
        }
        let mut moving = Moving::default();
        moving.add(graph, node, catalogue);
        let mut cursor = graph.previous(node);
        while let Some(n) = cursor {
            let needed = self.depends(graph, &moving, n, catalogue);
            if n == target {
                if needed {
                    return false;
                }
                break;
            }
            if needed {
                moving.add(graph, n, catalogue);
            }
            cursor = graph.previous(n);
        }
        if cursor.is_none() {
            return false;
        }
        for n in moving.nodes.into_iter().rev() {
            graph.move_before(n, target);
        }
        true
    }

    /// True when `node` uses what the moving nodes give or the reverse, or their order matters.
    fn depends(&self, graph: &Graph, moving: &Moving, node: NodeId, catalogue: &Catalogue) -> bool {
        let outputs = graph.node_outputs(node);
        if outputs.iter().any(|v| moving.used.contains(v)) {
            return true;
        }
        if used_values(graph, node).iter().any(|v| moving.defined.contains(v)) {
            return true;
        }
        if moving.visible && is_visible(graph, node, catalogue) {
            return true;
        }
        let writes = self.is_mutable(node) || moving.nodes.iter().any(|n| self.is_mutable(*n));
        writes && moving.nodes.iter().any(|n| self.conflict(graph, *n, node, catalogue))
    }
}

impl Moving {
    fn add(&mut self, graph: &Graph, node: NodeId, catalogue: &Catalogue) {
        if self.members.insert(node) {
            self.nodes.push(node);
            self.defined.extend(graph.node_outputs(node));
            self.used.extend(used_values(graph, node));
            self.visible |= is_visible(graph, node, catalogue);
        }
    }
}

/// Operands of the node and of everything in its blocks, block results included.
fn used_values(graph: &Graph, node: NodeId) -> Vec<ValueId> {
    let mut values: Vec<ValueId> = graph.operands(node).collect();
    let mut blocks = graph.node_blocks(node).to_vec();
    while let Some(block) = blocks.pop() {
        for n in graph.nodes(block) {
            values.extend(graph.operands(n));
            blocks.extend_from_slice(graph.node_blocks(n));
        }
        values.extend(graph.results(block));
    }
    values
}

/// True when the node, or something in its blocks, is seen from outside other than by what it writes.
fn is_visible(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> bool {
    let own = |n: NodeId| matches!(effects::effect(graph, n, catalogue), Effect::Visible | Effect::Random);
    own(node)
        || graph
            .node_blocks(node)
            .iter()
            .any(|b| graph.nodes_recursive(*b).into_iter().any(own))
}
