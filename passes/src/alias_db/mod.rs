//! Alias analysis: which values may be the same object, which nodes write to it, and which nodes may be reordered.
//!
//! **Guarantee.** [`may_alias`](AliasDb::may_alias) returns true if two values can, in any run, be the same mutable object or share a tensor's storage.
//! [`may_contain_alias`](AliasDb::may_contain_alias) also returns true if one can be reached from the other through containers or attributes, or both share
//! contents. If a node can write to an object, the queries about writes return true. A result of true may be imprecise; a result of false holds for every run.
//! Aliasing and mutation follow from the operators' schemas; an operator without one may write to and store everything that it can reach.
//!
//! **Precision.** Objects are distinguished by the place of their creation. Views share their base's location. A list that is built and only passed to an
//! operator (`cat([a, b])`) does not make its elements aliases. Outputs of a branch or loop have a set of possible locations. Values from outside may alias all
//! others from outside of the same kind of type. PyTorch is less precise about values that are read from containers (always "anything of that type") and
//! ignores contents of containers when it checks whether a node's operands are written.
//!
//! **Cost.** One walk, unification by union-find, bounded sets: almost linear in the size of the graph.

mod build;
mod contents;
mod describe;
mod memory;
mod moves;
mod pending;
mod points;
mod table;

pub use describe::{Description, Place};
pub use moves::Side;
pub(crate) use pending::PendingWrites;

use crate::support::overloads::Overloads;
use frazil_ir::schema::Catalogue;
use frazil_ir::{CompilationUnit, Constant, Graph, Module, NodeId, ObjectId, ValueId, symbols};
use memory::{Location, Locations};
use points::{PointsTo, Writes};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::Arc;
use table::Table;

/// The memory that a node writes, including the writes of nested blocks.
#[derive(Clone, Debug, Default)]
struct NodeWrites {
    locations: SmallVec<[Location; 2]>,
    /// Whether the node writes to any memory that is known outside of the graph.
    wildcards: bool,
    /// Whether the node may write to anything.
    anything: bool,
}

/// Alias information for one graph at one revision. See the [module documentation](self).
///
/// A pass that edits the graph can keep it valid with [`copy_value`](Self::copy_value), [`create_value`](Self::create_value),
/// [`replace_value`](Self::replace_value) and [`replace_node`](Self::replace_node); moving and erasing nodes needs no update. After any other edit it must be
/// rebuilt.
#[derive(Clone, Debug)]
pub struct AliasDb {
    table: Table,
    points: PointsTo,
    writes: Writes,
    /// For each location, whether a node of the graph writes to it.
    written: Vec<bool>,
    /// For each location, whether a node of the graph writes to it or to its contents.
    written_inside: Vec<bool>,
    /// For each location, whether a result of the graph is, or contains, an object at this location.
    returned: Vec<bool>,
    /// For each location, whether it or its contents are known outside of the graph after the graph has run.
    escaping_inside: Vec<bool>,
    any_write: bool,
}

/// A set of locations in the memory of one [`AliasDb`].
pub(crate) struct LocationSet(Vec<bool>);

impl AliasDb {
    /// Analyses `graph`. Its inputs may alias each other where their types allow it.
    pub fn new(graph: &Graph, catalogue: &Catalogue) -> AliasDb {
        build::Analysis::new(graph, catalogue, None, None).run().0
    }

    /// Analyses as [`new`](Self::new) does; `overloads` caches facts about operators of the same catalogue.
    pub(crate) fn with_overloads(graph: &Graph, catalogue: &Catalogue, overloads: &mut Overloads) -> AliasDb {
        let mut analysis = build::Analysis::new(graph, catalogue, None, None);
        analysis.overloads = std::mem::take(overloads);
        let (db, learnt) = analysis.run();
        *overloads = learnt;
        db
    }

    /// Analyses as [`new`](Self::new) does, but follows calls of functions and methods of `unit` instead of treating them as unknown.
    pub fn with_calls(graph: &Graph, catalogue: &Catalogue, unit: &CompilationUnit) -> AliasDb {
        build::Analysis::new(graph, catalogue, None, Some(unit)).run().0
    }

    /// Analyses methods, each with the object of `module` that is its first input. Attributes are the values of the module's objects, distinguished by their
    /// storages and objects.
    ///
    /// The methods may be called in any order, so values that one of them stores are visible to the others. Calls are followed. Returns one result for each
    /// method.
    pub fn of_methods(methods: &[(&Graph, ObjectId)], catalogue: &Catalogue, module: &Module) -> Vec<AliasDb> {
        match methods.first() {
            Some((first, _)) => {
                build::Analysis::new(first, catalogue, Some(module), Some(&module.unit)).run_methods(methods)
            }
            None => Vec::new(),
        }
    }

    fn finish(table: Table, mut points: PointsTo, mut writes: Writes, outputs: &[ValueId]) -> AliasDb {
        let representative = |l| table.representative(l);
        points.canonicalise(representative);
        let mut written = vec![false; table.len()];
        let (mut wildcards, mut anything) = (false, false);
        for w in writes.values_mut() {
            let distinct = points::canonical(&mut w.locations, representative);
            w.locations.truncate(distinct);
            wildcards |= w.wildcards;
            anything |= w.anything;
            for l in &w.locations {
                written[l.index()] = true;
            }
        }
        if anything {
            written.fill(true);
        } else if wildcards {
            table.wildcards().for_each(|l| written[l.index()] = true);
        }
        let results: Vec<Location> = outputs.iter().flat_map(|v| points.get(*v).iter().copied()).collect();
        let mut returned = vec![false; table.len()];
        for l in table.reachable(&results).into_iter().chain(results) {
            returned[l.index()] = true;
        }
        let mut known = returned.clone();
        table.wildcards().for_each(|l| known[l.index()] = true);
        let [written_inside, escaping_inside] = table.marked_inside([&written, &known]);
        let any_write = !writes.is_empty();
        AliasDb {
            table,
            points,
            writes,
            written,
            written_inside,
            returned,
            escaping_inside,
            any_write,
        }
    }

    fn locations(&self, value: ValueId) -> &[Location] {
        self.points.get(value)
    }

    // --- aliasing

    /// Returns true if both values may be the same object, or tensors on the same storage.
    pub fn may_alias(&self, a: ValueId, b: ValueId) -> bool {
        intersects(self.locations(a), self.locations(b))
    }

    /// Returns true if some object may be reachable from both values: they may alias, one may contain the other, or they may share contents.
    pub fn may_contain_alias(&self, a: ValueId, b: ValueId) -> bool {
        if self.locations(a).is_empty() || self.locations(b).is_empty() {
            return false;
        }
        let holds_nothing = |v: ValueId| self.locations(v).iter().all(|l| self.table.held(*l).next().is_none());
        if holds_nothing(a) && holds_nothing(b) {
            return self.may_alias(a, b);
        }
        let inside: HashSet<Location> = self.closure(&[a]).into_iter().collect();
        self.closure(&[b]).iter().any(|l| inside.contains(l))
    }

    /// Returns true if the value may be referenced outside the graph: it came from there, or has escaped.
    pub fn may_alias_wildcard(&self, value: ValueId) -> bool {
        self.locations(value).iter().any(|l| self.table.is_wildcard(*l))
    }

    /// Returns true if one of the values, or a value in it, may be known outside after the graph has run: it is, or is part of, a result, or [may alias a
    /// wildcard](Self::may_alias_wildcard).
    pub fn escapes_scope(&self, values: &[ValueId]) -> bool {
        let escapes = |v: &ValueId| self.locations(*v).iter().any(|l| self.escaping_inside[l.index()]);
        values.iter().any(escapes)
    }

    /// Returns the locations of `values` and of everything that they contain, transitively.
    fn closure(&self, values: &[ValueId]) -> Vec<Location> {
        let direct: Vec<Location> = values.iter().flat_map(|v| self.locations(*v).iter().copied()).collect();
        let mut all = self.table.reachable(&direct);
        all.extend(direct);
        all
    }

    // --- writes

    /// Returns true if any node of the graph writes to memory.
    pub(crate) fn has_writes(&self) -> bool {
        self.any_write
    }

    /// Returns true if any node of the graph may write to the value itself (not to its contents).
    pub fn has_writers(&self, value: ValueId) -> bool {
        self.any_write && self.locations(value).iter().any(|l| self.written[l.index()])
    }

    /// Returns true if some node of the graph may write to the value or to its contents.
    pub fn has_writers_inside(&self, value: ValueId) -> bool {
        self.any_write && self.locations(value).iter().any(|l| self.written_inside[l.index()])
    }

    /// Returns true if some node may write to an operand or output of `node`, or to their contents, so that its results depend on when it runs.
    pub fn node_has_writers(&self, graph: &Graph, node: NodeId) -> bool {
        // The identity of an attribute's object does not depend on writes to that object.
        let written = |v: ValueId| match graph.kind(node) {
            symbols::PRIM_GET_ATTR => self.has_writers(v),
            _ => self.has_writers_inside(v),
        };
        self.any_write && (graph.operands(node).any(written) || graph.node_outputs(node).iter().any(|v| written(*v)))
    }

    /// Returns true if `node`, or a node in its blocks, writes to any memory.
    pub fn is_mutable(&self, node: NodeId) -> bool {
        self.writes.get(node).is_some()
    }

    /// Returns true if `node`, or a node in its blocks, may write to a value in `values` or to its contents.
    pub fn writes_to_alias(&self, node: NodeId, values: &[ValueId]) -> bool {
        match self.writes.get(node) {
            Some(w) => self.closure(values).iter().any(|l| self.is_written_by(w, *l)),
            None => false,
        }
    }

    /// Returns true if `node`, or a node in its blocks, may write to `value` itself; its contents do not count.
    pub fn writes_to_itself(&self, node: NodeId, value: ValueId) -> bool {
        let written = |w: &NodeWrites| self.locations(value).iter().any(|l| self.is_written_by(w, *l));
        self.writes.get(node).is_some_and(written)
    }

    /// Returns true if `node`, or a node in its blocks, may write to memory that is known outside the graph.
    pub fn writes_to_wildcard(&self, node: NodeId) -> bool {
        self.writes
            .get(node)
            .is_some_and(|w| w.wildcards || w.anything || w.locations.iter().any(|l| self.table.is_wildcard(*l)))
    }

    fn is_written_by(&self, writes: &NodeWrites, l: Location) -> bool {
        writes.anything || (writes.wildcards && self.table.is_wildcard(l)) || writes.locations.contains(&l)
    }

    /// Returns an empty set of locations.
    pub(crate) fn location_set(&self) -> LocationSet {
        LocationSet(vec![false; self.table.len()])
    }

    /// Adds the possible locations of `value` to `set`.
    pub(crate) fn add_to(&self, set: &mut LocationSet, value: ValueId) {
        for l in self.locations(value) {
            set.0[l.index()] = true;
        }
    }

    /// Returns true if a possible location of `value` is in `locations`.
    pub(crate) fn is_in(&self, locations: &LocationSet, value: ValueId) -> bool {
        self.locations(value).iter().any(|l| locations.0[l.index()])
    }

    /// Returns true if it makes no observable difference whether `a` and `b` are one object or two: neither is written, and at most one is known outside.
    pub fn safe_to_change_aliasing(&self, a: ValueId, b: ValueId) -> bool {
        if self.locations(a).is_empty() && self.locations(b).is_empty() {
            return true;
        }
        let written = self.has_writers_inside(a) || self.has_writers_inside(b);
        !written && (!self.escapes_scope(&[a]) || !self.escapes_scope(&[b]))
    }

    /// Returns true if the results of `a` and `b`, which compute the same, may be merged without an observable difference.
    ///
    /// Either [`safe_to_change_aliasing`](Self::safe_to_change_aliasing) holds. Or they are views of the same operands, which share their memory anyway, and at
    /// most one of them leaves the graph as an object.
    pub fn safe_to_merge(&self, graph: &Graph, a: NodeId, b: NodeId) -> bool {
        let of_operands = |node: NodeId, v: ValueId| {
            let given = |l: &Location| graph.operands(node).any(|o| self.locations(o).contains(l));
            self.locations(v).iter().all(given)
        };
        let constructs = matches!(
            graph.kind(a),
            symbols::PRIM_LIST_CONSTRUCT | symbols::PRIM_TUPLE_CONSTRUCT | symbols::PRIM_DICT_CONSTRUCT
        );
        graph.node_outputs(a).iter().zip(graph.node_outputs(b)).all(|(&x, &y)| {
            let written = self.has_writers_inside(x) || self.has_writers_inside(y);
            // Two containers with the same elements differ only in their own identity.
            if constructs && !written && !(self.itself_escapes(x) && self.itself_escapes(y)) {
                return true;
            }
            // The checks that walk over all uses come last, and the second node first: the first node gains the uses of
            // all nodes that are merged into it.
            self.safe_to_change_aliasing(x, y)
                || of_operands(a, x)
                    && of_operands(b, y)
                    && !written
                    && !(self.object_leaves(graph, y) && self.object_leaves(graph, x))
        })
    }

    /// Returns true if `a` may replace `b`, another view of all of `a`, without an observable difference. Neither may be written, because that may change the
    /// shape of only one, and at most one may leave the graph as an object.
    pub(crate) fn safe_to_merge_values(&self, graph: &Graph, a: ValueId, b: ValueId) -> bool {
        if self.has_writers(a) || self.has_writers(b) {
            return false;
        }
        // The second first, as in `safe_to_merge`.
        !self.object_leaves(graph, b) || !self.object_leaves(graph, a)
    }

    /// Returns true if the location of `value` itself, not only of its contents, is known outside of the graph.
    fn itself_escapes(&self, value: ValueId) -> bool {
        let known = |l: &Location| self.returned[l.index()] || self.table.is_wildcard(*l);
        self.locations(value).iter().any(known)
    }

    /// Returns true if `value` itself, and not just the memory of which it is a view, may be referenced from outside or by a container that is.
    fn object_leaves(&self, graph: &Graph, value: ValueId) -> bool {
        graph.uses(value).any(|u| match graph.kind(u.user) {
            symbols::PRIM_LIST_CONSTRUCT | symbols::PRIM_TUPLE_CONSTRUCT | symbols::PRIM_DICT_CONSTRUCT => {
                graph.node_outputs(u.user).iter().any(|v| self.itself_escapes(*v))
            }
            symbols::PRIM_RETURN
            | symbols::PRIM_SET_ATTR
            | symbols::PRIM_LOOP
            | symbols::PRIM_FORK
            | symbols::PRIM_FORK_CLOSURE
            | symbols::PRIM_CALL_METHOD
            | symbols::PRIM_CALL_FUNCTION
            | symbols::PRIM_UNCHECKED_CAST => true,
            // A write to a container may store the value there; a write to a tensor stores numbers.
            _ => self.writes.get(u.user).is_some_and(|w| {
                let container = |o: ValueId| !graph.ctx().is_tensor(graph.ty(o));
                let stores = |o: ValueId| container(o) && self.locations(o).iter().any(|l| self.is_written_by(w, *l));
                w.wildcards || w.anything || graph.operands(u.user).any(stores)
            }),
        })
    }

    /// Returns true if no node between `from` and `to`, which are in one block in this order, may write to one of `values` or to their contents.
    pub fn unwritten_between(&self, graph: &Graph, from: NodeId, to: NodeId, values: &[ValueId]) -> bool {
        if !self.any_write {
            return true;
        }
        let mut cursor = graph.next(from);
        while let Some(node) = cursor.filter(|n| *n != to) {
            if self.writes_to_alias(node, values) {
                return false;
            }
            cursor = graph.next(node);
        }
        cursor == Some(to)
    }

    // --- the module's own values

    /// Returns true if some node may write to this value of the module, or to its contents.
    pub fn writes_to_constant(&self, value: &Constant) -> bool {
        self.any_write && self.any_in_constant(value, &|l| self.written[l.index()])
    }

    /// Returns true if `node`, or a node in its blocks, may write to this value of the module, or to its contents.
    pub fn node_writes_to_constant(&self, node: NodeId, value: &Constant) -> bool {
        let Some(writes) = self.writes.get(node) else {
            return false;
        };
        self.any_in_constant(value, &|l| self.is_written_by(writes, l))
    }

    /// Returns true if this value of the module, or its contents, may have become known outside: through a call of an unknown operator, or through a store that
    /// the analysis does not follow.
    pub fn has_escaped(&self, value: &Constant) -> bool {
        self.any_in_constant(value, &|l| self.table.is_wildcard(l))
    }

    fn any_in_constant(&self, value: &Constant, wanted: &dyn Fn(Location) -> bool) -> bool {
        let at = |address: usize| self.table.by_address(address).is_some_and(wanted);
        match value {
            Constant::Tensor(t) => at(Arc::as_ptr(&t.storage) as usize),
            Constant::List(l) => at(Arc::as_ptr(l) as usize) || l.items.iter().any(|i| self.any_in_constant(i, wanted)),
            Constant::Tuple(t) => {
                at(Arc::as_ptr(t) as usize) || t.items.iter().any(|i| self.any_in_constant(i, wanted))
            }
            Constant::Dict(d) => {
                at(Arc::as_ptr(d) as usize)
                    || d.entries
                        .iter()
                        .any(|(k, v)| self.any_in_constant(k, wanted) || self.any_in_constant(v, wanted))
            }
            Constant::Object(id) => self.table.by_object(*id).is_some_and(wanted),
            _ => false,
        }
    }

    // --- edits

    /// Adds a new value of the graph, a copy of `of` or a view of it, which gets the possible locations of `of`.
    pub fn copy_value(&mut self, of: ValueId, new: ValueId) {
        let locations = Locations::from_slice(self.locations(of));
        self.points.set(new, &locations);
    }

    /// Adds a new value of the graph that shares no memory with any other value: the result of an operator that neither aliases nor writes its operands.
    pub fn create_value(&mut self, graph: &Graph, new: ValueId) {
        let fresh = self.table.fresh(graph.ctx(), graph.ty(new));
        for marks in [
            &mut self.written,
            &mut self.written_inside,
            &mut self.returned,
            &mut self.escaping_inside,
        ] {
            marks.resize(self.table.len(), false);
        }
        self.points.set(new, fresh.as_slice());
    }

    /// Records that `old` has been replaced by `new` in all its uses, so that `new` escapes wherever `old` did.
    pub fn replace_value(&mut self, old: ValueId, new: ValueId) {
        let mut both: Locations = self.locations(old).iter().chain(self.locations(new)).copied().collect();
        both.sort_unstable();
        both.dedup();
        self.points.set(new, &both);
    }

    /// Records that node `new` has replaced node `old`, and has the same writes. Writes of enclosing blocks stay the same.
    pub fn replace_node(&mut self, old: NodeId, new: NodeId) {
        if let Some(writes) = self.writes.remove(old) {
            *self.writes.entry(new) = writes;
        }
    }
}

fn intersects(a: &[Location], b: &[Location]) -> bool {
    // Both are short and sorted.
    a.iter().any(|l| b.contains(l))
}

#[cfg(test)]
mod tests;
