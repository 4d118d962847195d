//! Dense tables of facts about values and nodes: possible locations, writes.

use super::NodeWrites;
use super::memory::Location;
use frazil_ir::{NodeId, ValueId};

/// The possible locations of each value. Most values have at most one, which takes no memory besides the entry.
#[derive(Clone, Debug, Default)]
pub(super) struct PointsTo {
    spans: Vec<Span>,
    /// Concatenated sets of two or more locations.
    pool: Vec<Location>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    /// The only location, or, if there are several, the index of the first location in `pool`.
    at: Location,
    len: u32,
}

impl Span {
    const EMPTY: Span = Span {
        at: Location(0),
        len: 0,
    };
}

impl PointsTo {
    /// Returns a table for `values` values, none of which has a location.
    pub(super) fn new(values: usize) -> PointsTo {
        PointsTo {
            spans: vec![Span::EMPTY; values],
            pool: Vec::new(),
        }
    }

    /// Returns the possible locations of `value`; empty for a value that is not in the table.
    pub(super) fn get(&self, value: ValueId) -> &[Location] {
        match self.spans.get(value.as_u32() as usize) {
            None | Some(Span { len: 0, .. }) => &[],
            Some(Span { at, len: 1 }) => std::slice::from_ref(at),
            Some(Span { at, len }) => &self.pool[at.index()..at.index() + *len as usize],
        }
    }

    /// Sets the possible locations of `value`, which may be new. New values with smaller numbers have none.
    pub(super) fn set(&mut self, value: ValueId, locations: &[Location]) {
        let index = value.as_u32() as usize;
        if self.spans.len() <= index {
            self.spans.resize(index + 1, Span::EMPTY);
        }
        self.spans[index] = match *locations {
            [] => Span::EMPTY,
            [at] => Span { at, len: 1 },
            _ => {
                let at = Location(self.pool.len() as u32);
                self.pool.extend_from_slice(locations);
                let len = locations.len() as u32;
                Span { at, len }
            }
        };
    }

    /// Replaces the locations in every set by their representatives, sorted and without duplicates.
    pub(super) fn canonicalise(&mut self, representative: impl Fn(Location) -> Location) {
        for span in &mut self.spans {
            match span.len {
                0 => {}
                1 => span.at = representative(span.at),
                len => {
                    let set = &mut self.pool[span.at.index()..span.at.index() + len as usize];
                    let distinct = canonical(set, &representative);
                    *span = match distinct {
                        1 => Span { at: set[0], len: 1 },
                        n => Span {
                            at: span.at,
                            len: n as u32,
                        },
                    };
                }
            }
        }
    }
}

/// Replaces the locations in `set` by their representatives, sorted and without duplicates. Returns the number of locations that remain at its start.
pub(super) fn canonical(set: &mut [Location], representative: impl Fn(Location) -> Location) -> usize {
    for l in set.iter_mut() {
        *l = representative(*l);
    }
    set.sort_unstable();
    let mut distinct = 0;
    for i in 0..set.len() {
        if i == 0 || set[i] != set[distinct - 1] {
            set[distinct] = set[i];
            distinct += 1;
        }
    }
    distinct
}

/// The written memory of each node that writes.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes {
    /// For each node, one plus the index of its writes in `all`; 0 for a node that writes nothing.
    by_node: Vec<u32>,
    all: Vec<NodeWrites>,
}

impl Writes {
    /// Returns a table for `nodes` nodes, none of which writes.
    pub(super) fn new(nodes: usize) -> Writes {
        Writes {
            by_node: vec![0; nodes],
            all: Vec::new(),
        }
    }

    fn number(&self, node: NodeId) -> Option<usize> {
        let number = *self.by_node.get(node.as_u32() as usize)?;
        (number as usize).checked_sub(1)
    }

    pub(super) fn get(&self, node: NodeId) -> Option<&NodeWrites> {
        self.number(node).map(|i| &self.all[i])
    }

    /// Returns the writes of `node`. If it had none, an empty entry is added.
    pub(super) fn entry(&mut self, node: NodeId) -> &mut NodeWrites {
        let index = match self.number(node) {
            Some(index) => index,
            None => {
                let at = node.as_u32() as usize;
                if self.by_node.len() <= at {
                    self.by_node.resize(at + 1, 0);
                }
                self.all.push(NodeWrites::default());
                self.by_node[at] = self.all.len() as u32;
                self.all.len() - 1
            }
        };
        &mut self.all[index]
    }

    /// Removes and returns the writes of `node`.
    pub(super) fn remove(&mut self, node: NodeId) -> Option<NodeWrites> {
        let index = self.number(node)?;
        self.by_node[node.as_u32() as usize] = 0;
        Some(std::mem::take(&mut self.all[index]))
    }

    /// Returns the writes of all nodes; empty for nodes whose writes have been removed.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut NodeWrites> {
        self.all.iter_mut()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
