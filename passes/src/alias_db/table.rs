//! The abstract memory after the analysis: unification is complete, and only queries are supported.

use super::contents::{Cell, ContentId};
use super::memory::{Data, Kind, Location, Memory};
use cranelift_entity::SecondaryMap;
use frazil_ir::{Context, ObjectId, TypeId};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// The abstract memory after the analysis. See the [module documentation](self).
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Data of the locations. The parent of every location is its representative.
    data: Vec<Data>,
    /// For each set of contents, the range in `held` of the locations that are contained directly.
    ranges: SecondaryMap<ContentId, Range<u32>>,
    held: Vec<Location>,
    /// Representatives that may have contents: all wildcards, and few other locations.
    holders: Vec<Location>,
    by_address: HashMap<usize, Location>,
    by_object: HashMap<ObjectId, Location>,
}

impl Memory<'_> {
    pub(super) fn into_table(mut self) -> Table {
        let held_by_wildcards = self.held_by_wildcards();
        for &l in held_by_wildcards.keys() {
            self.content_mut(l);
        }
        let mut holders = Vec::new();
        for i in 0..self.data.len() {
            let l = Location(i as u32);
            self.data[i].parent = self.find(l);
            if self.data[i].content.is_some() {
                holders.push(l);
            }
        }
        let mut table = Table {
            data: self.data,
            ranges: SecondaryMap::new(),
            held: Vec::new(),
            holders,
            by_address: self.by_address,
            by_object: self.by_object,
        };
        for &l in &table.holders {
            let Some(id) = table.data[l.index()].content.expand() else {
                continue;
            };
            let content = &self.contents[id];
            let mut inside: Vec<Location> = content.fields.iter().map(|f| f.1).collect();
            inside.extend(held_by_wildcards.get(&l).into_iter().flatten());
            for (_, cell) in &content.cells {
                match cell {
                    Cell::Open(items) => inside.extend(items),
                    Cell::Sealed(s) => inside.push(*s),
                }
            }
            inside.iter_mut().for_each(|l| *l = table.data[l.index()].parent);
            inside.sort_unstable();
            inside.dedup();
            let start = table.held.len() as u32;
            table.held.extend(inside);
            table.ranges[id] = start..table.held.len() as u32;
        }
        table
    }

    /// Returns for each wildcard the locations that it may contain, which its kind determines.
    fn held_by_wildcards(&mut self) -> HashMap<Location, Vec<Location>> {
        // A lookup may create wildcards for types of elements. So lookups are repeated until no wildcard is new.
        let mut visited = 0;
        let mut wildcards = self.all_wildcards();
        while let Some(&l) = wildcards.get(visited) {
            visited += 1;
            let kind = self.data[l.index()].kind;
            let made = self.data.len() as u32;
            self.held_by_wildcard(kind);
            wildcards.extend((made..self.data.len() as u32).map(Location));
        }
        let mut held = HashMap::new();
        for l in self.all_wildcards() {
            let l = self.find(l);
            let kind = self.data[l.index()].kind;
            held.insert(l, self.held_by_wildcard(kind));
        }
        held
    }
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.data.len()
    }

    /// Returns a new location for an object of type `ty`; `None` for a type whose values have no identity.
    pub(super) fn fresh(&mut self, ctx: &Arc<Context>, ty: TypeId) -> Option<Location> {
        let kind = Memory::new(ctx.clone(), None).kind(ty);
        if kind == Kind::Immutable {
            return None;
        }
        let l = Location(self.data.len() as u32);
        self.data.push(Data::new(l, kind));
        Some(l)
    }

    pub(super) fn representative(&self, l: Location) -> Location {
        self.data[l.index()].parent
    }

    pub(super) fn wildcards(&self) -> impl Iterator<Item = Location> + '_ {
        self.holders.iter().copied().filter(|l| self.is_wildcard(*l))
    }

    pub(super) fn is_wildcard(&self, representative: Location) -> bool {
        self.data[representative.index()].wildcard
    }

    pub(super) fn kind(&self, representative: Location) -> Kind {
        self.data[representative.index()].kind
    }

    /// Returns the locations that a representative contains directly.
    pub(super) fn held(&self, representative: Location) -> impl Iterator<Item = Location> + '_ {
        let range = match self.data[representative.index()].content.expand() {
            Some(id) => self.ranges[id].clone(),
            None => 0..0,
        };
        self.held[range.start as usize..range.end as usize].iter().copied()
    }

    /// Returns the marked locations, and all locations that contain marked locations, transitively. There is one result for each array of marks.
    pub(super) fn marked_inside<const N: usize>(&self, marks: [&[bool]; N]) -> [Vec<bool>; N] {
        // The inverse relation: for each location a list of its containers, linked through the pairs.
        let mut last: Vec<u32> = vec![0; if self.held.is_empty() { 0 } else { self.len() }];
        let mut pairs: Vec<(Location, u32)> = Vec::with_capacity(self.held.len());
        for &holder in &self.holders {
            for held in self.held(holder) {
                pairs.push((
                    holder,
                    std::mem::replace(&mut last[held.index()], pairs.len() as u32 + 1),
                ));
            }
        }
        let holders = |l: Location| {
            let first = last.get(l.index()).copied().unwrap_or(0);
            std::iter::successors(pair(&pairs, first), |(_, next)| pair(&pairs, *next)).map(|(holder, _)| holder)
        };
        marks.map(|marks| {
            let mut inside = marks.to_vec();
            let is_held = |i: &usize| marks[*i] && last.get(*i).is_some_and(|n| *n > 0);
            let mut work: Vec<Location> = (0..marks.len()).filter(is_held).map(|i| Location(i as u32)).collect();
            while let Some(l) = work.pop() {
                for holder in holders(l) {
                    if !std::mem::replace(&mut inside[holder.index()], true) {
                        work.push(holder);
                    }
                }
            }
            inside
        })
    }

    /// Returns everything that `from` contains, transitively. Locations in `from` are included only if they are contained, too.
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

/// Returns pair number `number` of `pairs`, counted from one; `None` for 0.
fn pair(pairs: &[(Location, u32)], number: u32) -> Option<(Location, u32)> {
    pairs.get((number as usize).checked_sub(1)?).copied()
}
