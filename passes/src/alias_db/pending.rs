//! Writes that are needed only if the written memory is read.

use super::AliasDb;
use super::memory::Location;
use frazil_ir::{NodeId, ValueId};

/// Nodes that wait until memory that they write is read. Every location is read once and every node is returned once, so that the total time is linear
/// in the number of writes.
pub(crate) struct PendingWrites {
    /// By location: whether it is read.
    read: Vec<bool>,
    /// By location: the last entry that writes to it, plus one.
    last: Vec<u32>,
    /// A node, and the previous entry that writes to the same location.
    waiting: Vec<(NodeId, u32)>,
}

impl PendingWrites {
    /// Makes a table without waiting nodes and reads.
    pub(crate) fn new(db: &AliasDb) -> PendingWrites {
        PendingWrites {
            read: vec![false; db.table.len()],
            last: vec![0; db.table.len()],
            waiting: Vec::new(),
        }
    }

    /// Adds `node` to the waiting nodes. Returns false if it may write to anything.
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

    /// Records that `value` and its contents are read: the nodes that have waited for it are added to `needed`, possibly more than once.
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
