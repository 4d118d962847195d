//! Order of nodes: placing nodes in blocks, and comparing positions.
//!
//! A node's order key grows along its block. A new node gets a key between those of its neighbours. If there is no room, keys of the following nodes are
//! increased as far as needed (locally, as in Cranelift's layout, not over the whole block).

use super::{BlockId, Change, Graph, NodeId, ValueId};
use crate::symbols;
use std::cmp::Ordering;

/// Distance between the order keys of successively appended nodes.
const STRIDE: u32 = 64;
/// If an order key exceeds this limit, all nodes of the block get new keys.
const KEY_LIMIT: u32 = u32::MAX - 2 * STRIDE;
/// The key of the first node in a block, with equal room before and after it.
const FIRST_KEY: u32 = 1 << 31;

impl Graph {
    /// Inserts `node` at the end of `block`.
    pub fn append(&mut self, block: BlockId, node: NodeId) {
        let last = self.last(block);
        self.link(block, node, last, None);
    }

    /// Inserts `node` at the start of `block`.
    pub fn prepend(&mut self, block: BlockId, node: NodeId) {
        let first = self.first(block);
        self.link(block, node, None, first);
    }

    /// Inserts `node` before `other`, which must be in a block. Before a return node means at the end of its block.
    pub fn insert_before(&mut self, node: NodeId, other: NodeId) {
        let Some(block) = self.parent(other) else { return };
        if self.return_node(block) == other {
            return self.append(block, node);
        }
        if node != other {
            let previous = self.previous(other);
            self.link(block, node, previous, Some(other));
        }
    }

    /// Inserts `node` after `other`, which must be in a block.
    pub fn insert_after(&mut self, node: NodeId, other: NodeId) {
        let Some(block) = self.parent(other) else { return };
        if self.return_node(block) != other && node != other {
            let next = self.next(other);
            self.link(block, node, Some(other), next);
        }
    }

    /// Moves a placed node before `other`, in any block.
    pub fn move_before(&mut self, node: NodeId, other: NodeId) {
        if node != other && self.next(node) != Some(other) {
            self.remove(node);
            self.insert_before(node, other);
        }
    }

    /// Moves a placed node after `other`, in any block.
    pub fn move_after(&mut self, node: NodeId, other: NodeId) {
        if node != other && self.next(other) != Some(node) {
            self.remove(node);
            self.insert_after(node, other);
        }
    }

    /// Moves all nodes of block `from` before `position`, keeping their order.
    pub fn splice_before(&mut self, from: BlockId, position: NodeId) {
        while let Some(node) = self.first(from) {
            self.remove(node);
            self.insert_before(node, position);
        }
    }

    /// Removes `node` from its block; it stays alive with its operands and can be inserted again.
    pub fn remove(&mut self, node: NodeId) {
        self.unlink(node);
        self.record(Change::Removed(node));
    }

    pub(super) fn unlink(&mut self, node: NodeId) {
        let Some(block) = self.parent(node).filter(|_| self.kind(node) != symbols::PRIM_RETURN) else {
            return;
        };
        let (previous, next) = (self.nodes[node].previous.take(), self.nodes[node].next.take());
        match previous {
            Some(p) => self.nodes[p].next = next.into(),
            None => self.blocks[block].first = next.into(),
        }
        match next {
            Some(n) => self.nodes[n].previous = previous.into(),
            None => self.blocks[block].last = previous.into(),
        }
        self.nodes[node].parent = None.into();
    }

    /// Links an unplaced `node` between `previous` and `next` of `block`. A placed node is not moved: callers must remove it
    /// first.
    fn link(&mut self, block: BlockId, node: NodeId, previous: Option<NodeId>, next: Option<NodeId>) {
        if self.parent(node).is_some() {
            debug_assert!(false, "{node} is placed already");
            return;
        }
        let data = &mut self.nodes[node];
        data.parent = block.into();
        data.previous = previous.into();
        data.next = next.into();
        match previous {
            Some(p) => self.nodes[p].next = node.into(),
            None => self.blocks[block].first = node.into(),
        }
        match next {
            Some(n) => self.nodes[n].previous = node.into(),
            None => self.blocks[block].last = node.into(),
        }
        self.assign_key(block, node, previous, next);
        self.record(Change::Inserted(node));
    }

    fn assign_key(&mut self, block: BlockId, node: NodeId, previous: Option<NodeId>, next: Option<NodeId>) {
        let low = previous.map_or(0, |p| self.order[p]);
        match (previous, next) {
            (None, None) => self.order[node] = FIRST_KEY,
            (_, None) if low < KEY_LIMIT => self.order[node] = low + STRIDE,
            (_, None) => self.renumber(block),
            (None, Some(n)) if self.order[n] > STRIDE => self.order[node] = self.order[n] - STRIDE,
            (None, Some(_)) => self.renumber(block),
            (Some(_), Some(n)) => {
                let high = self.order[n];
                if high - low >= 2 {
                    self.order[node] = low + (high - low) / 2;
                } else {
                    self.push_up(block, node, low);
                }
            }
        }
    }

    /// Sets the key of `node` above `low`, then increases the keys after it as far as needed.
    fn push_up(&mut self, block: BlockId, node: NodeId, low: u32) {
        let mut key = low;
        let mut cursor = Some(node);
        let mut room = 1;
        while let Some(n) = cursor {
            if n != node && self.order[n] > key {
                return;
            }
            // The gaps grow with the number of increased keys, so that repeated insertion at one place stays cheap.
            room = (room + 1).min(STRIDE);
            key = match key.checked_add(room) {
                Some(k) if k < KEY_LIMIT => k,
                _ => return self.renumber(block),
            };
            self.order[n] = key;
            cursor = self.next(n);
        }
    }

    fn renumber(&mut self, block: BlockId) {
        let nodes: Vec<_> = self.nodes(block).collect();
        // Blocks of more than 2^32 / stride nodes get smaller strides.
        let stride = (u32::MAX / (nodes.len() as u32 + 2)).clamp(1, STRIDE);
        // In the middle of the range of keys, with room on both sides.
        let mut key = FIRST_KEY.saturating_sub((nodes.len() as u32 / 2 + 1).saturating_mul(stride));
        for n in nodes {
            key = key.saturating_add(stride);
            self.order[n] = key;
        }
    }

    /// Returns the node in `block` that is `node` itself or contains `node` in its blocks, if there is one.
    pub fn ancestor_in(&self, node: NodeId, block: BlockId) -> Option<NodeId> {
        let mut node = node;
        loop {
            let parent = self.parent(node)?;
            if parent == block {
                return Some(node);
            }
            node = self.owner(parent)?;
        }
    }

    /// Returns the block of `node`, the block of its owner, and so on to the root.
    pub fn enclosing_blocks(&self, node: NodeId) -> impl Iterator<Item = BlockId> + '_ {
        std::iter::successors(self.parent(node), |b| self.owner(*b).and_then(|n| self.parent(n)))
    }

    /// Compares the positions of two nodes in the graph. A node comes before the nodes in its blocks, and a block's return node after all nodes of the block.
    /// The blocks of a node are compared by index. `None` if a node is not in any block.
    pub fn compare(&self, a: NodeId, b: NodeId) -> Option<Ordering> {
        if a == b {
            return Some(Ordering::Equal);
        }
        let (block_a, block_b) = (self.parent(a)?, self.parent(b)?);
        if block_a == block_b {
            return Some(self.compare_in_block(block_a, a, b));
        }
        // Chains from the root: (block, node in it) pairs.
        let (chain_a, chain_b) = (self.chain(a), self.chain(b));
        for ((ba, na), (bb, nb)) in chain_a.iter().zip(&chain_b) {
            if ba != bb {
                let owner = self.owner(*ba)?;
                let place = |block| self.node_blocks(owner).iter().position(|b| *b == block);
                return Some(place(*ba).cmp(&place(*bb)));
            }
            if na != nb {
                return Some(self.compare_in_block(*ba, *na, *nb));
            }
        }
        Some(chain_a.len().cmp(&chain_b.len()))
    }

    fn compare_in_block(&self, block: BlockId, a: NodeId, b: NodeId) -> Ordering {
        let last = self.return_node(block);
        match (a == last, b == last) {
            (true, _) => Ordering::Greater,
            (_, true) => Ordering::Less,
            _ => self.order[a].cmp(&self.order[b]),
        }
    }

    fn chain(&self, node: NodeId) -> Vec<(BlockId, NodeId)> {
        let mut chain = Vec::new();
        let mut cursor = Some(node);
        while let Some(n) = cursor {
            let Some(block) = self.parent(n) else { break };
            chain.push((block, n));
            cursor = self.owner(block);
        }
        chain.reverse();
        chain
    }

    /// Returns true if `a` comes before `b`; see [`compare`](Self::compare).
    pub fn is_before(&self, a: NodeId, b: NodeId) -> bool {
        self.compare(a, b) == Some(Ordering::Less)
    }

    /// Returns true if `value` is defined wherever `user` runs: by an earlier node of an enclosing block, or as a parameter of an enclosing block.
    pub fn dominates(&self, value: ValueId, user: NodeId) -> bool {
        match self.definition(value) {
            super::Definition::Parameter(block, _) => self.enclosing_blocks(user).any(|b| b == block),
            super::Definition::Output(node, _) => match self.parent(node) {
                Some(block) => self
                    .ancestor_in(user, block)
                    .is_some_and(|n| self.compare_in_block(block, node, n) == Ordering::Less),
                None => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Context, Graph};
    use std::sync::Arc;

    #[test]
    fn order_survives_any_insertion() {
        let ctx = Arc::new(Context::new());
        let kind = ctx.symbol("t::n");
        let mut g = Graph::new(ctx);
        let root = g.root();
        let first = g.create_node(kind);
        g.append(root, first);
        // Always at the same place, which is the worst case for keys.
        for i in 0..2_000 {
            let n = g.create_node(kind);
            if i % 3 == 0 {
                g.insert_before(n, first)
            } else {
                g.insert_after(n, first)
            }
        }
        let nodes: Vec<_> = g.nodes(root).collect();
        assert_eq!(nodes.len(), 2_001);
        assert!(
            nodes
                .windows(2)
                .all(|w| g.is_before(w[0], w[1]) && !g.is_before(w[1], w[0]))
        );
        assert!(nodes.iter().all(|n| g.is_before(*n, g.return_node(root))));
    }

    /// Nodes inserted at the start of a block get keys before the others', which do not change.
    #[test]
    fn prepending_renumbers_nothing() {
        let ctx = Arc::new(Context::new());
        let kind = ctx.symbol("t::n");
        let mut g = Graph::new(ctx);
        let root = g.root();
        let first = g.create_node(kind);
        g.append(root, first);
        let key = g.order[first];
        for i in 0..10_000 {
            let n = g.create_node(kind);
            match g.first(root) {
                Some(next) if i % 2 == 0 => g.insert_before(n, next),
                _ => g.prepend(root, n),
            }
        }
        assert_eq!(g.order[first], key);
        let nodes: Vec<_> = g.nodes(root).collect();
        assert!(nodes.windows(2).all(|w| g.is_before(w[0], w[1])));
    }

    /// If keys are used up at either end, the block is renumbered.
    #[test]
    fn keys_may_run_out_at_both_ends() {
        let ctx = Arc::new(Context::new());
        let kind = ctx.symbol("t::n");
        let mut g = Graph::new(ctx);
        let root = g.root();
        let nodes: Vec<_> = (0..6).map(|_| g.create_node(kind)).collect();
        g.append(root, nodes[0]);
        g.order[nodes[0]] = 3;
        g.prepend(root, nodes[1]);
        g.append(root, nodes[2]);
        g.order[nodes[2]] = u32::MAX - 1;
        g.append(root, nodes[3]);
        g.insert_after(nodes[4], nodes[0]);
        g.prepend(root, nodes[5]);
        let order: Vec<_> = g.nodes(root).collect();
        assert_eq!(order.len(), 6);
        assert!(order.windows(2).all(|w| g.is_before(w[0], w[1])));
    }

    #[test]
    fn nested_blocks_compare_through_their_owners() {
        let ctx = Arc::new(Context::new());
        let kind = ctx.symbol("t::n");
        let mut g = Graph::new(ctx);
        let (before, owner, after) = (g.create_node(kind), g.create_node(kind), g.create_node(kind));
        for n in [before, owner, after] {
            g.append(g.root(), n);
        }
        let (b0, b1) = (g.add_block(owner), g.add_block(owner));
        let (x, y) = (g.create_node(kind), g.create_node(kind));
        g.append(b0, x);
        g.append(b1, y);
        for pair in [before, owner, x, g.return_node(b0), y, g.return_node(b1), after].windows(2) {
            assert!(g.is_before(pair[0], pair[1]) && !g.is_before(pair[1], pair[0]));
        }
        let v = g.add_output(before, crate::types::INT);
        let w = g.add_output(x, crate::types::INT);
        assert!(g.dominates(v, y) && !g.dominates(w, y) && !g.dominates(v, before));
    }
}
