//! Moving nodes without changing observable behaviour.
//!
//! A node is moved to one side of a target node in the same block. Nodes between the two whose order with the moved node matters are moved along. The nodes are
//! visited from the moved node to the target, in either [`Direction`].

use super::{AliasDb, NodeWrites};
use crate::alias_db::memory::Location;
use crate::support::effects::{self, Effect};
use frazil_ir::schema::Catalogue;
use frazil_ir::{Graph, NodeId, ValueId};
use std::collections::HashSet;

/// The side of the target node to which a node is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Directly before the target.
    Before,
    /// Directly after the target.
    After,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Before => Side::After,
            Side::After => Side::Before,
        }
    }

    fn place(self, graph: &mut Graph, node: NodeId, target: NodeId) {
        match self {
            Side::Before => graph.move_before(node, target),
            Side::After => graph.move_after(node, target),
        }
    }
}

/// The direction in which a node moves through its block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

impl Direction {
    fn step(self, graph: &Graph, node: NodeId) -> Option<NodeId> {
        match self {
            Direction::Forward => graph.next(node),
            Direction::Backward => graph.previous(node),
        }
    }
}

impl AliasDb {
    /// Returns true if the order of `a` and `b` matters: one node writes memory that the other reads or writes, or both have visible effects.
    pub fn conflict(&self, graph: &Graph, a: NodeId, b: NodeId, catalogue: &Catalogue) -> bool {
        let mut moving = Moving::new(self, graph, catalogue);
        moving.add(a);
        moving.conflicts(b)
    }

    /// Moves `node` directly after `target`, which is in the same block. Nodes between the two that `node` cannot pass move along: they stay after it if it
    /// moves forward, or before `target` if it moves backward. Returns false, without moving anything, if that is impossible.
    pub fn move_after_topologically_valid(
        &self,
        graph: &mut Graph,
        node: NodeId,
        target: NodeId,
        catalogue: &Catalogue,
    ) -> bool {
        self.try_move(graph, node, target, Side::After, catalogue)
    }

    /// Moves `node` directly before `target`, which is in the same block; see
    /// [`move_after_topologically_valid`](Self::move_after_topologically_valid).
    pub fn move_before_topologically_valid(
        &self,
        graph: &mut Graph,
        node: NodeId,
        target: NodeId,
        catalogue: &Catalogue,
    ) -> bool {
        self.try_move(graph, node, target, Side::Before, catalogue)
    }

    /// Returns whether `node` could be moved to the side `side` of `target`. The graph is not changed.
    pub fn could_move(&self, graph: &Graph, node: NodeId, target: NodeId, side: Side, catalogue: &Catalogue) -> bool {
        node == target || self.moves_to(graph, node, target, side, catalogue).is_some()
    }

    fn try_move(&self, graph: &mut Graph, node: NodeId, target: NodeId, side: Side, catalogue: &Catalogue) -> bool {
        if node == target {
            return true;
        }
        let Some(moves) = self.moves_to(graph, node, target, side, catalogue) else {
            return false;
        };
        side.place(graph, node, target);
        // The nodes that move along are placed after the node in the direction of the move: next to the node, or beyond
        // the target.
        let (mut place, along) = if moves.split {
            (target, side.other())
        } else {
            (node, side)
        };
        for n in moves.along {
            along.place(graph, n, place);
            place = n;
        }
        true
    }

    fn moves_to(
        &self,
        graph: &Graph,
        node: NodeId,
        target: NodeId,
        side: Side,
        catalogue: &Catalogue,
    ) -> Option<NodeMoves> {
        if graph.parent(node).is_none() || graph.parent(node) != graph.parent(target) {
            return None;
        }
        let direction = if graph.is_before(node, target) {
            Direction::Forward
        } else {
            Direction::Backward
        };
        let mut moving = Moving::new(self, graph, catalogue);
        moving.add(node);
        let mut cursor = direction.step(graph, node);
        while let Some(n) = cursor.filter(|n| *n != target) {
            if moving.depends(n) {
                moving.add(n);
            }
            cursor = direction.step(graph, n);
        }
        cursor?;
        // If the node remains on its side of the target, only the nodes in `along` are moved past the target.
        let split = (side == Side::Before) == (direction == Direction::Forward);
        let along = moving.nodes[1..].to_vec();
        if split {
            moving = Moving::new(self, graph, catalogue);
            along.iter().for_each(|n| moving.add(*n));
        }
        (!moving.depends(target)).then_some(NodeMoves { split, along })
    }
}

/// The positions of the nodes after a node has been moved to the target.
struct NodeMoves {
    /// Whether the node remains on its side of the target, and the nodes in `along` are placed on the other side.
    split: bool,
    /// The nodes that have to move together with the node, in the order in which they are visited.
    along: Vec<NodeId>,
}

/// The uses, results, reads and writes of the nodes that move together.
struct Moving<'a> {
    db: &'a AliasDb,
    graph: &'a Graph,
    catalogue: &'a Catalogue,
    nodes: Vec<NodeId>,
    defined: HashSet<ValueId>,
    used: HashSet<ValueId>,
    /// Memory that the nodes read or write, and its contents; collected only if the graph has writes.
    touched: HashSet<Location>,
    writes: NodeWrites,
    visible: bool,
}

impl<'a> Moving<'a> {
    fn new(db: &'a AliasDb, graph: &'a Graph, catalogue: &'a Catalogue) -> Moving<'a> {
        Moving {
            db,
            graph,
            catalogue,
            nodes: Vec::new(),
            defined: HashSet::new(),
            used: HashSet::new(),
            touched: HashSet::new(),
            writes: NodeWrites::default(),
            visible: false,
        }
    }

    fn add(&mut self, node: NodeId) {
        self.nodes.push(node);
        self.defined.extend(self.graph.node_outputs(node));
        self.used.extend(used_values(self.graph, node));
        self.visible |= is_visible(self.graph, node, self.catalogue);
        if self.db.any_write {
            self.touched.extend(self.touched_by(node));
            if let Some(writes) = self.db.writes.get(node) {
                self.writes.add(writes);
            }
        }
    }

    fn touched_by(&self, node: NodeId) -> Vec<Location> {
        let mut values = used_values(self.graph, node);
        values.extend_from_slice(self.graph.node_outputs(node));
        self.db.closure(&values)
    }

    /// Returns true if `node` uses results of the moving nodes or the reverse, or if their order matters.
    fn depends(&self, node: NodeId) -> bool {
        let outputs = self.graph.node_outputs(node);
        outputs.iter().any(|v| self.used.contains(v))
            || used_values(self.graph, node).iter().any(|v| self.defined.contains(v))
            || self.conflicts(node)
    }

    /// Returns true if the order of `node` and the moving nodes matters for writes, or for visible effects.
    fn conflicts(&self, node: NodeId) -> bool {
        if self.visible && is_visible(self.graph, node, self.catalogue) {
            return true;
        }
        let hit = |writes: &NodeWrites, l: &Location| self.db.is_written_by(writes, *l);
        if let Some(writes) = self.db.writes.get(node)
            && self.touched.iter().any(|l| hit(writes, l))
        {
            return true;
        }
        !self.writes.is_empty() && self.touched_by(node).iter().any(|l| hit(&self.writes, l))
    }
}

/// Returns the operands of the node and of all nodes in its blocks, including block results.
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

/// Returns true if the node, or a node in its blocks, has visible effects other than writes.
fn is_visible(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> bool {
    let own = |n: NodeId| matches!(effects::effect(graph, n, catalogue), Effect::Visible | Effect::Random);
    own(node)
        || graph
            .node_blocks(node)
            .iter()
            .any(|b| graph.nodes_recursive(*b).into_iter().any(own))
}
