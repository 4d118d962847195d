//! Nodes whose only effects are writes, pending until a read of the written memory is found.

use super::AliasDb;
use super::memory::Location;
use frazil_ir::{NodeId, ValueId};

/// Nodes that are pending until memory that they write is read. Every location is read once and every node is returned once, so the total time is linear in the
/// number of writes.
pub(crate) struct PendingWrites {
    /// For each location, whether a live node reads it.
    read: Vec<bool>,
    /// For each location, one plus the index in `waiting` of the last entry that writes to it; 0 if there is none.
    last: Vec<u32>,
    /// Entries: a pending node, and the previous entry that writes to the same location (as one plus its index).
    waiting: Vec<(NodeId, u32)>,
}

impl PendingWrites {
    /// Returns a table without pending nodes and without reads.
    pub(crate) fn new(db: &AliasDb) -> PendingWrites {
        PendingWrites {
            read: vec![false; db.table.len()],
            last: vec![0; db.table.len()],
            waiting: Vec::new(),
        }
    }

    /// Adds `node`, a node that writes, to the pending ones. Returns false if it may write to anything.
    #[must_use]
    pub(crate) fn add(&mut self, db: &AliasDb, node: NodeId) -> bool {
        let Some(writes) = db.writes.get(node) else { return true };
        if writes.anything || writes.wildcards {
            return false;
        }
        for l in &writes.locations {
            let before = std::mem::replace(&mut self.last[l.index()], self.waiting.len() as u32 + 1);
            self.waiting.push((node, before));
        }
        true
    }

    /// Records that `value` and its contents are read. Pending nodes that write to them are added to `needed`, possibly more than once.
    pub(crate) fn read(&mut self, db: &AliasDb, value: ValueId, needed: &mut Vec<NodeId>) {
        let mut work: Vec<Location> = Vec::new();
        self.note(db.locations(value).iter().copied(), &mut work);
        while let Some(l) = work.pop() {
            let mut next = std::mem::take(&mut self.last[l.index()]);
            while let Some((node, before)) = (next as usize).checked_sub(1).map(|i| self.waiting[i]) {
                needed.push(node);
                next = before;
            }
            self.note(db.table.held(l), &mut work);
        }
    }

    fn note(&mut self, locations: impl Iterator<Item = Location>, new: &mut Vec<Location>) {
        new.extend(locations.filter(|l| !std::mem::replace(&mut self.read[l.index()], true)));
    }
}
