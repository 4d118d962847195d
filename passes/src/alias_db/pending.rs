//! Writes that matter only if somebody reads what they write.

use super::AliasDb;
use super::memory::Location;
use frazil_ir::{NodeId, ValueId};

/// Nodes that wait for memory that they write to be read. Every location is read once and every node handed out once, so that all of it together takes
/// time in proportion to the writes.
pub(crate) struct PendingWrites {
    /// By location: somebody reads it.
    read: Vec<bool>,
    /// By location: the last entry of those that write to it, plus one.
    last: Vec<u32>,
    /// A node, and the entry before it that writes to the same location.
    waiting: Vec<(NodeId, u32)>,
}

impl PendingWrites {
    /// Nothing waits, and nothing has been read.
    pub(crate) fn new(db: &AliasDb) -> PendingWrites {
        PendingWrites {
            read: vec![false; db.table.len()],
            last: vec![0; db.table.len()],
            waiting: Vec::new(),
        }
    }

    /// Lets `node` wait, unless it writes to more than the analysis can tell: then the answer is false.
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

    /// Somebody reads `value` and what it holds: the nodes that have waited for it go to `needed`, some perhaps more than once.
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
