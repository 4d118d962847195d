//! What remains of the abstract memory when the analysis is finished: no more unification, only questions.

use super::memory::{Cell, Kind, Location, Memory};
use frazil_ir::{Context, ObjectId, TypeId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// See the [module documentation](self).
#[derive(Clone, Debug)]
pub(super) struct Table {
    parent: Vec<Location>,
    wildcard: Vec<bool>,
    kinds: Vec<Kind>,
    /// Directly held locations, by representative.
    held: Vec<Vec<Location>>,
    by_address: HashMap<usize, Location>,
    by_object: HashMap<ObjectId, Location>,
}

impl Memory<'_> {
    pub(super) fn into_table(mut self) -> Table {
        // What wildcards hold, they hold by their kind.
        let mut held_by_wildcards: HashMap<Location, Vec<Location>> = HashMap::new();
        let mut next = 0;
        // The list grows as wildcards of elements are asked for the first time.
        while next < self.data.len() {
            let l = self.find(Location(next as u32));
            if l.index() == next && self.data[next].wildcard {
                let kind = self.data[next].kind.unwrap_or(Kind::Any);
                let held = self.held_by_wildcard(kind);
                held_by_wildcards.insert(l, held);
            }
            next += 1;
        }
        let parent: Vec<Location> = (0..self.data.len() as u32).map(|l| self.find(Location(l))).collect();
        let representative = |l: &Location| parent[l.index()];
        let mut held = Vec::with_capacity(self.data.len());
        for (i, data) in self.data.iter().enumerate() {
            let mut inside: Vec<Location> = data.fields.iter().map(|f| representative(&f.1)).collect();
            let of_kind = held_by_wildcards.get(&Location(i as u32));
            inside.extend(of_kind.into_iter().flatten().map(representative));
            for (_, cell) in &data.cells {
                match cell {
                    Cell::Open(items) => inside.extend(items.iter().map(representative)),
                    Cell::Sealed(s) => inside.push(representative(s)),
                }
            }
            inside.sort_unstable();
            inside.dedup();
            held.push(inside);
        }
        Table {
            wildcard: self.data.iter().map(|d| d.wildcard).collect(),
            kinds: self.data.iter().map(|d| d.kind.unwrap_or(Kind::Any)).collect(),
            held,
            by_address: self.by_address,
            by_object: self.by_object,
            parent,
        }
    }
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.parent.len()
    }

    /// A location that nobody knows yet; none for a type whose values have no identity.
    pub(super) fn fresh(&mut self, ctx: &Arc<Context>, ty: TypeId) -> Option<Location> {
        let kind = Memory::new(ctx.clone(), None).kind(ty);
        if kind == Kind::Immutable {
            return None;
        }
        let l = Location(self.parent.len() as u32);
        self.parent.push(l);
        self.wildcard.push(false);
        self.kinds.push(kind);
        self.held.push(Vec::new());
        Some(l)
    }

    pub(super) fn representative(&self, l: Location) -> Location {
        self.parent[l.index()]
    }

    pub(super) fn representatives(&self) -> impl Iterator<Item = Location> + '_ {
        (0..self.parent.len() as u32)
            .map(Location)
            .filter(|l| self.parent[l.index()] == *l)
    }

    pub(super) fn is_wildcard(&self, representative: Location) -> bool {
        self.wildcard[representative.index()]
    }

    pub(super) fn kind(&self, representative: Location) -> Kind {
        self.kinds[representative.index()]
    }

    /// What a representative holds directly.
    pub(super) fn held(&self, representative: Location) -> impl Iterator<Item = Location> + '_ {
        self.held[representative.index()].iter().copied()
    }

    /// Everything that these representatives hold, at any depth; they themselves only if something holds them.
    pub(super) fn reachable(&self, from: &[Location]) -> Vec<Location> {
        let mut seen = Vec::new();
        let mut marks = HashSet::new();
        let mut work: Vec<Location> = from.iter().flat_map(|l| self.held(*l)).collect();
        while let Some(l) = work.pop() {
            if marks.insert(l) {
                seen.push(l);
                work.extend(self.held(l));
            }
        }
        seen
    }

    pub(super) fn by_address(&self, address: usize) -> Option<Location> {
        self.by_address.get(&address).map(|l| self.representative(*l))
    }

    pub(super) fn by_object(&self, id: ObjectId) -> Option<Location> {
        self.by_object.get(&id).map(|l| self.representative(*l))
    }
}
