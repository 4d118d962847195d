//! What locations hold. Most locations are tensors and hold nothing, so it stands in a table of its own.

use super::memory::{Kind, Location};
use cranelift_entity::entity_impl;
use frazil_ir::{ObjectId, SymbolId};
use smallvec::SmallVec;

/// What a container may hold of one kind.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    /// Nobody has read it yet.
    Open(SmallVec<[Location; 2]>),
    /// Somebody has; everything in it is this.
    Sealed(Location),
}

/// Number of a [`Content`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentId(u32);
entity_impl!(ContentId, "content");

/// What a location holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) cells: SmallVec<[(Kind, Cell); 1]>,
    /// Attributes of an instance that have been read or written.
    pub(super) fields: SmallVec<[(SymbolId, Location); 1]>,
    /// Objects of the module that this is, where the module is known.
    pub(super) objects: SmallVec<[ObjectId; 1]>,
}

impl Content {
    /// A rough measure of how much there is to move.
    pub(super) fn size(&self) -> usize {
        let cells = self.cells.iter().map(|(_, c)| match c {
            Cell::Open(items) => items.len(),
            Cell::Sealed(_) => 1,
        });
        cells.sum::<usize>() + self.fields.len() + self.objects.len()
    }

    /// Adds what a container may hold of one kind.
    pub(super) fn merge_cell(&mut self, kind: Kind, cell: Cell, work: &mut Work) {
        let cells = &mut self.cells;
        let any = cells.iter().position(|(k, _)| *k == Kind::Any);
        let same = any.or_else(|| cells.iter().position(|(k, _)| *k == kind));
        if kind == Kind::Any && any.is_none() {
            // From now on the container's contents are not told apart by kind.
            let old = std::mem::take(cells);
            cells.push((Kind::Any, cell));
            for (_, c) in old {
                self.merge_cell(Kind::Any, c, work);
            }
            return;
        }
        let Some(i) = same else {
            cells.push((kind, cell));
            return;
        };
        let existing = &mut cells[i].1;
        match (existing, cell) {
            (Cell::Open(items), Cell::Open(more)) => items.extend(more),
            (Cell::Sealed(s), Cell::Open(more)) => work.extend(more.into_iter().map(|m| (*s, m))),
            (Cell::Sealed(s), Cell::Sealed(t)) => work.push((*s, t)),
            (existing @ Cell::Open(_), Cell::Sealed(s)) => {
                if let Cell::Open(items) = std::mem::replace(existing, Cell::Sealed(s)) {
                    work.extend(items.into_iter().map(|m| (s, m)));
                }
            }
        }
    }
}

/// Pairs of locations that are still to be made one.
pub(super) type Work = SmallVec<[(Location, Location); 2]>;
