//! Contents of locations. They are in a separate table, because most locations are tensors without contents.

use super::memory::{Kind, Location};
use cranelift_entity::entity_impl;
use frazil_ir::{ObjectId, SymbolId};
use smallvec::SmallVec;

/// The possible elements of one [`Kind`] in a container.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    /// The elements have not been read.
    Open(SmallVec<[Location; 2]>),
    /// The elements have been read, and are unified into this location.
    Sealed(Location),
}

/// Index of a [`Content`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentId(u32);
entity_impl!(ContentId, "content");

/// The contents of a memory location: elements, attributes and objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pub(super) cells: SmallVec<[(Kind, Cell); 1]>,
    /// Locations of the attributes of an instance that have been read or written.
    pub(super) fields: SmallVec<[(SymbolId, Location); 1]>,
    /// The objects of the module that may be at this location, if the module is known.
    pub(super) objects: SmallVec<[ObjectId; 1]>,
}

impl Content {
    /// Returns an approximate cost of merging these contents into others.
    pub(super) fn size(&self) -> usize {
        let cells = self.cells.iter().map(|(_, c)| match c {
            Cell::Open(items) => items.len(),
            Cell::Sealed(_) => 1,
        });
        cells.sum::<usize>() + self.fields.len() + self.objects.len()
    }

    /// Adds the possible elements `cell` of one kind. Locations that have to be unified are added to `work`.
    pub(super) fn merge_cell(&mut self, kind: Kind, cell: Cell, work: &mut Work) {
        let cells = &mut self.cells;
        let any = cells.iter().position(|(k, _)| *k == Kind::Any);
        let same = any.or_else(|| cells.iter().position(|(k, _)| *k == kind));
        if kind == Kind::Any && any.is_none() {
            // From now on the container's elements are not distinguished by kind.
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

/// Pairs of locations that are still to be unified.
pub(super) type Work = SmallVec<[(Location, Location); 2]>;
