//! Descriptions of the result of the alias analysis in terms of the graph's values, which tools print.

use super::memory::{Kind, Location};
use super::{AliasDb, NodeWrites};
use frazil_ir::{Context, Graph, NodeId, TypeId, TypeKind, ValueId, types};
use smallvec::SmallVec;
use std::collections::HashMap;

/// A memory location in a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The location of the given value, which is the first value in the graph with only this location.
    Value(ValueId),
    /// Any object of the given type that is known outside of the graph.
    Wildcard(TypeId),
    /// A location that no value of the graph has, such as an element of a constant list. The number distinguishes such locations.
    Unnamed(usize),
    /// Any object that is known outside of the graph.
    Outside,
    /// All memory.
    Anything,
}

/// The result of the alias analysis, as [`AliasDb::describe`] returns it. Values and nodes are in the order of the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Possible locations of each value that has no location of its own.
    pub points_to: Vec<(ValueId, Vec<Place>)>,
    /// Possible direct contents of values that have a location of their own, or come from outside.
    pub contains: Vec<(ValueId, Vec<Place>)>,
    /// Written locations of each node, including those of nested blocks.
    pub writes: Vec<(NodeId, Vec<Place>)>,
}

impl AliasDb {
    /// Describes the result of the analysis of `graph`.
    pub fn describe(&self, graph: &Graph) -> Description {
        let ctx = graph.ctx();
        let values = values_of(graph);
        let names = self.name_locations(&values);
        let mut out = Description::default();
        for &v in &values {
            let locations = self.locations(v);
            let is_own = |l: &Location| names.get(l) == Some(&v);
            let mut places: Vec<Place> = locations
                .iter()
                .filter(|l| !is_own(l))
                .map(|l| self.place(*l, unshaped(ctx, graph.ty(v)), &names))
                .collect();
            places.dedup();
            if !places.is_empty() {
                out.points_to.push((v, places));
            }
            let mut inside: Vec<Place> = Vec::new();
            for l in locations {
                if self.table.is_wildcard(*l) {
                    inside.extend(held_types(ctx, graph.ty(v)).into_iter().map(Place::Wildcard));
                } else if is_own(l) {
                    inside.extend(self.table.held(*l).map(|h| self.place(h, self.type_of(h), &names)));
                }
            }
            inside.sort_unstable();
            inside.dedup();
            if !inside.is_empty() {
                out.contains.push((v, inside));
            }
        }
        for node in graph.all_nodes() {
            if let Some(writes) = self.writes.get(node) {
                out.writes.push((node, self.places_of(writes, &names)));
            }
        }
        out
    }

    fn places_of(&self, writes: &NodeWrites, names: &HashMap<Location, ValueId>) -> Vec<Place> {
        let mut places: Vec<Place> = writes
            .locations
            .iter()
            .map(|l| self.place(*l, self.type_of(*l), names))
            .collect();
        if writes.wildcards {
            places.push(Place::Outside);
        }
        if writes.anything {
            places.push(Place::Anything);
        }
        places
    }

    /// Returns for each location the value that names it.
    fn name_locations(&self, values: &[ValueId]) -> HashMap<Location, ValueId> {
        let mut names = HashMap::new();
        let ours = |v: &ValueId| self.locations(*v).iter().filter(|l| !self.table.is_wildcard(**l));
        for v in values {
            if let [only] = self.locations(*v)
                && !self.table.is_wildcard(*only)
            {
                names.entry(*only).or_insert(*v);
            }
        }
        // Locations that no value has alone.
        for v in values {
            for l in ours(v) {
                names.entry(*l).or_insert(*v);
            }
        }
        names
    }

    fn place(&self, l: Location, ty: TypeId, names: &HashMap<Location, ValueId>) -> Place {
        if self.table.is_wildcard(l) {
            return Place::Wildcard(ty);
        }
        names.get(&l).map_or(Place::Unnamed(l.index()), |v| Place::Value(*v))
    }

    fn type_of(&self, l: Location) -> TypeId {
        match self.table.kind(l) {
            Kind::Of(ty) => ty,
            Kind::Any | Kind::Immutable => types::ANY,
        }
    }
}

/// Returns the inputs, outputs of nodes and parameters of blocks, in the graph's order.
fn values_of(graph: &Graph) -> Vec<ValueId> {
    let mut values = graph.inputs().to_vec();
    for node in graph.all_nodes() {
        values.extend_from_slice(graph.node_outputs(node));
        for block in graph.node_blocks(node) {
            values.extend_from_slice(graph.parameters(*block));
        }
    }
    values
}

/// Returns `T` for a type `T?`, and `Tensor` for a tensor type with a dtype or sizes. Other types are returned unchanged.
fn unshaped(ctx: &Context, ty: TypeId) -> TypeId {
    match ctx.type_kind(ty) {
        TypeKind::Tensor(_) => types::TENSOR,
        TypeKind::Optional(e) => unshaped(ctx, e),
        _ => ty,
    }
}

/// Returns the types of the values that a value of type `ty` contains directly, as far as `ty` determines them.
fn held_types(ctx: &Context, ty: TypeId) -> SmallVec<[TypeId; 2]> {
    let mut out: SmallVec<[TypeId; 2]> = match ctx.type_kind(ty) {
        TypeKind::Optional(e) => return held_types(ctx, e),
        TypeKind::List(e) | TypeKind::Future(e) | TypeKind::Await(e) => smallvec::smallvec![e],
        TypeKind::Dict(k, v) => smallvec::smallvec![k, v],
        TypeKind::Tuple(es) | TypeKind::NamedTuple(_, _, es) => ctx.types(es).into(),
        _ => SmallVec::new(),
    };
    out.retain(|ty| !crate::support::constants::is_immutable(ctx, *ty));
    out.iter_mut().for_each(|ty| *ty = unshaped(ctx, *ty));
    out
}
