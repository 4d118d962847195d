//! Abstract memory: locations, what may be stored in them, and unification.
//!
//! A location stands for some objects of the program: a tensor's storage, a list, a dictionary, a tuple, an instance of a class. What a
//! container may hold is kept by kind of element. As long as nobody reads elements back, that is a list of locations, so that putting
//! two tensors into a list does not make them aliases; the first read unifies them into one. Unification is a union-find: every union
//! removes a location, so that all of it together takes almost linear time.
//!
//! *Wildcard* locations, one a kind, stand for everything that somebody outside may hold: what the graph is given, and what escapes. What is
//! stored in a wildcard becomes one.

use cranelift_entity::SecondaryMap;
use frazil_ir::{Constant, Context, Module, ObjectId, SymbolId, TensorData, TypeId, TypeKind, types};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// A memory location; compare only after [`Memory::find`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Location(pub(super) u32);

impl Location {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Locations that a value may be; sorted only after the analysis is finished.
pub(super) type Locations = SmallVec<[Location; 4]>;

/// A set above this size is unified: precision gives way to linear time.
const MAX_SET: usize = 8;

/// Which objects can be told apart by their type alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Values without identity: numbers, strings.
    Immutable,
    /// Objects of one type; of all tensor types, tuple types, classes, or futures together.
    Of(TypeId),
    /// Of any type.
    Any,
}

/// What a container may hold of one kind.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    /// Nobody has read it yet.
    Open(Vec<Location>),
    /// Somebody has; everything in it is this.
    Sealed(Location),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    /// Parent in the union-find forest; itself for a representative.
    parent: u32,
    pub(super) kind: Option<Kind>,
    pub(super) wildcard: bool,
    pub(super) cells: SmallVec<[(Kind, Cell); 1]>,
    /// Attributes of an instance that have been read or written.
    pub(super) fields: SmallVec<[(SymbolId, Location); 1]>,
    /// Objects of the module that this is, where the module is known.
    objects: SmallVec<[ObjectId; 1]>,
}

/// See the [module documentation](self).
pub(super) struct Memory<'m> {
    ctx: Arc<Context>,
    module: Option<&'m Module>,
    pub(super) data: Vec<Data>,
    /// By type, as far as they have been asked for.
    kinds: SecondaryMap<TypeId, Option<Kind>>,
    wildcards: HashMap<Kind, Location>,
    /// Set once something of any type has escaped: then there is one wildcard only.
    any_wildcard: Option<Location>,
    /// Locations of what constants and attributes hold, by address.
    pub(super) by_address: HashMap<usize, Location>,
    pub(super) by_object: HashMap<ObjectId, Location>,
}

impl<'m> Memory<'m> {
    pub(super) fn new(ctx: Arc<Context>, module: Option<&'m Module>) -> Memory<'m> {
        Memory {
            ctx,
            module,
            data: Vec::new(),
            kinds: SecondaryMap::new(),
            wildcards: HashMap::new(),
            any_wildcard: None,
            by_address: HashMap::new(),
            by_object: HashMap::new(),
        }
    }

    // --- kinds

    /// The kind of objects that values of type `ty` are.
    pub(super) fn kind(&mut self, ty: TypeId) -> Kind {
        if let Some(kind) = self.kinds[ty] {
            return kind;
        }
        let ctx = self.ctx.clone();
        let kind = match ctx.type_kind(ty) {
            TypeKind::Int
            | TypeKind::Float
            | TypeKind::Bool
            | TypeKind::Complex
            | TypeKind::Number
            | TypeKind::Str
            | TypeKind::None
            | TypeKind::Device
            | TypeKind::QScheme
            | TypeKind::Enum(_)
            | TypeKind::AnyEnum
            | TypeKind::Function(_) => Kind::Immutable,
            TypeKind::Tensor(_) => Kind::Of(types::TENSOR),
            TypeKind::Optional(e) => self.kind(e),
            TypeKind::Class(_) | TypeKind::Interface(_) | TypeKind::AnyClass => Kind::Of(types::ANY_CLASS),
            TypeKind::Tuple(es) | TypeKind::NamedTuple(_, _, es) => {
                if ctx.types(es).iter().all(|e| self.kind(*e) == Kind::Immutable) {
                    Kind::Immutable
                } else {
                    Kind::Of(types::ANY_TUPLE)
                }
            }
            TypeKind::List(e) if ctx.is_tensor(e) => Kind::Of(ctx.list_of(types::TENSOR)),
            TypeKind::Dict(k, v) if ctx.is_tensor(v) => Kind::Of(ctx.dict_of(k, types::TENSOR)),
            TypeKind::List(_) | TypeKind::Dict(..) | TypeKind::Generator | TypeKind::Storage | TypeKind::Stream => {
                Kind::Of(ty)
            }
            _ => Kind::Any,
        };
        self.kinds[ty] = Some(kind);
        kind
    }

    /// The types of what a value of type `ty` holds directly; `None` when that is not known.
    pub(super) fn component_types(&self, ty: TypeId) -> Option<SmallVec<[TypeId; 2]>> {
        Some(match self.ctx.type_kind(ty) {
            TypeKind::Optional(e) => return self.component_types(e),
            TypeKind::List(e) | TypeKind::Future(e) | TypeKind::Await(e) => smallvec::smallvec![e],
            TypeKind::Dict(k, v) => smallvec::smallvec![k, v],
            TypeKind::Tuple(es) | TypeKind::NamedTuple(_, _, es) => self.ctx.types(es).into(),
            TypeKind::Tensor(_) => SmallVec::new(),
            _ => return None,
        })
    }

    // --- locations

    pub(super) fn fresh(&mut self, kind: Kind) -> Location {
        let location = Location(self.data.len() as u32);
        self.data.push(Data {
            parent: location.0,
            kind: Some(kind),
            ..Data::default()
        });
        location
    }

    pub(super) fn find(&mut self, location: Location) -> Location {
        let mut at = location.0;
        while self.data[at as usize].parent != at {
            let grandparent = self.data[self.data[at as usize].parent as usize].parent;
            self.data[at as usize].parent = grandparent;
            at = grandparent;
        }
        Location(at)
    }

    /// The wildcard of a kind; none for immutable values.
    pub(super) fn wildcard(&mut self, kind: Kind) -> Option<Location> {
        match kind {
            Kind::Immutable => None,
            _ if self.any_wildcard.is_some() => self.any_wildcard,
            Kind::Any => {
                let any = self.fresh(Kind::Any);
                self.data[any.index()].wildcard = true;
                self.any_wildcard = Some(any);
                let all: Vec<_> = self.wildcards.values().copied().collect();
                for w in all {
                    self.unify(any, w);
                }
                Some(any)
            }
            Kind::Of(_) => Some(match self.wildcards.get(&kind) {
                Some(w) => *w,
                None => {
                    let w = self.fresh(kind);
                    self.data[w.index()].wildcard = true;
                    self.wildcards.insert(kind, w);
                    w
                }
            }),
        }
    }

    /// Where a value of type `ty` that comes from outside may be: for a union, wherever its members may.
    pub(super) fn wildcards(&mut self, ty: TypeId) -> Locations {
        let ctx = self.ctx.clone();
        match ctx.type_kind(ty) {
            TypeKind::Optional(e) => self.wildcards(e),
            TypeKind::Union(members) => {
                let mut all = Locations::new();
                for member in ctx.types(members) {
                    let locations = self.wildcards(*member);
                    self.union(&mut all, &locations);
                }
                all
            }
            _ => {
                let kind = self.kind(ty);
                self.wildcard(kind).into_iter().collect()
            }
        }
    }

    /// The wildcards that a wildcard of this kind may hold. Of tuples, objects and the like every one that there is.
    pub(super) fn held_by_wildcard(&mut self, kind: Kind) -> Vec<Location> {
        let Kind::Of(ty) = kind else {
            return self.all_wildcards();
        };
        if ty == types::TENSOR {
            return Vec::new();
        }
        match self.component_types(ty) {
            Some(components) => components.iter().flat_map(|c| self.wildcards(*c)).collect(),
            None => self.all_wildcards(),
        }
    }

    fn all_wildcards(&self) -> Vec<Location> {
        self.any_wildcard
            .map_or_else(|| self.wildcards.values().copied().collect(), |any| vec![any])
    }

    /// Makes what `locations` are known to everybody.
    pub(super) fn escape(&mut self, locations: &[Location]) {
        for &location in locations {
            let l = self.find(location);
            let data = &self.data[l.index()];
            if data.wildcard {
                continue;
            }
            if let Some(w) = self.wildcard(data.kind.unwrap_or(Kind::Any)) {
                self.unify(l, w);
            }
        }
    }

    /// `a ∪ b` as a set; large sets are unified.
    pub(super) fn union(&mut self, into: &mut Locations, from: &[Location]) {
        for &location in from {
            let location = self.find(location);
            if !into.contains(&location) {
                into.push(location);
            }
        }
        if into.len() > MAX_SET {
            let first = into[0];
            for &other in &into[1..] {
                self.unify(first, other);
            }
            let one = self.find(first);
            into.clear();
            into.push(one);
        }
    }

    /// Makes two locations one, and what they hold.
    pub(super) fn unify(&mut self, a: Location, b: Location) {
        // Not recursive: containers nest as deep as the program likes.
        let mut work = vec![(a, b)];
        while let Some((a, b)) = work.pop() {
            let (mut a, mut b) = (self.find(a), self.find(b));
            if a == b {
                continue;
            }
            if self.size(a) < self.size(b) {
                (a, b) = (b, a);
            }
            self.align_fields(a, b, &mut work);
            let lost = std::mem::take(&mut self.data[b.index()]);
            self.data[b.index()].parent = a.0;
            let kept = &mut self.data[a.index()];
            if kept.kind != lost.kind {
                kept.kind = Some(Kind::Any);
            }
            for object in lost.objects {
                if !kept.objects.contains(&object) {
                    kept.objects.push(object);
                }
            }
            let became_wildcard = kept.wildcard || lost.wildcard;
            kept.wildcard = became_wildcard;
            for (name, location) in lost.fields {
                match self.data[a.index()].fields.iter().find(|(n, _)| *n == name) {
                    Some((_, other)) => work.push((*other, location)),
                    None => self.data[a.index()].fields.push((name, location)),
                }
            }
            for (kind, cell) in lost.cells {
                self.merge_cell(a, kind, cell, &mut work);
            }
            if became_wildcard {
                self.release(a, &mut work);
            }
        }
    }

    /// A rough measure of how much there is to move.
    fn size(&self, l: Location) -> usize {
        let d = &self.data[l.index()];
        let cells = d.cells.iter().map(|(_, c)| match c {
            Cell::Open(items) => items.len(),
            Cell::Sealed(_) => 1,
        });
        cells.sum::<usize>() + d.fields.len() + d.objects.len()
    }

    /// Before two instances become one: an attribute that was looked at in one is looked at in the other.
    fn align_fields(&mut self, a: Location, b: Location, work: &mut Vec<(Location, Location)>) {
        if self.data[a.index()].objects.is_empty() && self.data[b.index()].objects.is_empty() {
            return;
        }
        for (from, to) in [(a, b), (b, a)] {
            let names: SmallVec<[SymbolId; 4]> = self.data[from.index()].fields.iter().map(|f| f.0).collect();
            for name in names {
                if !self.data[to.index()].fields.iter().any(|f| f.0 == name) {
                    self.load_field(to, name, None, work);
                }
            }
        }
    }

    fn merge_cell(&mut self, l: Location, kind: Kind, cell: Cell, work: &mut Vec<(Location, Location)>) {
        let cells = &mut self.data[l.index()].cells;
        let any = cells.iter().position(|(k, _)| *k == Kind::Any);
        let same = any.or_else(|| cells.iter().position(|(k, _)| *k == kind));
        if kind == Kind::Any && any.is_none() {
            // From now on the container's contents are not told apart by kind.
            let old = std::mem::take(cells);
            cells.push((Kind::Any, cell));
            for (_, c) in old {
                self.merge_cell(l, Kind::Any, c, work);
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

    /// Whatever wildcard `l` holds escapes too.
    fn release(&mut self, l: Location, work: &mut Vec<(Location, Location)>) {
        let data = &mut self.data[l.index()];
        let cells = std::mem::take(&mut data.cells);
        let fields = std::mem::take(&mut data.fields);
        let objects = std::mem::take(&mut data.objects);
        let mut held: Vec<Location> = fields.into_iter().map(|f| f.1).collect();
        for (_, cell) in cells {
            match cell {
                Cell::Open(items) => held.extend(items),
                Cell::Sealed(s) => held.push(s),
            }
        }
        if let Some(module) = self.module {
            for object in objects {
                let Some(class) = module.class_of(object) else { continue };
                let slots = &module.object(object).slots;
                for (value, attribute) in slots.iter().zip(class.attributes.values()) {
                    held.extend(self.constant(value, attribute.ty));
                }
            }
        }
        for h in held {
            let h = self.find(h);
            if self.data[h.index()].wildcard {
                continue;
            }
            if let Some(w) = self.wildcard(self.data[h.index()].kind.unwrap_or(Kind::Any)) {
                work.push((h, w));
            }
        }
    }

    // --- containers

    /// Puts `elements` into the containers.
    pub(super) fn store(&mut self, containers: &[Location], elements: &[Location]) {
        for &container in containers {
            let c = self.find(container);
            if self.data[c.index()].wildcard {
                self.escape(elements);
                continue;
            }
            let mut work = Vec::new();
            for &element in elements {
                let e = self.find(element);
                let kind = self.data[e.index()].kind.unwrap_or(Kind::Any);
                self.merge_cell(c, kind, Cell::Open(vec![e]), &mut work);
            }
            for (a, b) in work {
                self.unify(a, b);
            }
        }
    }

    /// What an element of type `ty` that is read from the containers may be.
    pub(super) fn load(&mut self, containers: &[Location], ty: TypeId) -> Locations {
        let kind = self.kind(ty);
        let mut out = Locations::new();
        if kind == Kind::Immutable {
            return out;
        }
        for &container in containers {
            let c = self.find(container);
            if self.data[c.index()].wildcard {
                let w = self.wildcards(ty);
                self.union(&mut out, &w);
                continue;
            }
            let fresh = self.fresh(kind);
            let mut work = Vec::new();
            self.merge_cell(c, kind, Cell::Sealed(fresh), &mut work);
            for (a, b) in work {
                self.unify(a, b);
            }
            let fresh = self.find(fresh);
            self.union(&mut out, &[fresh]);
        }
        out
    }

    // --- instances

    /// What attribute `name`, of type `ty`, of these instances may be.
    pub(super) fn field(&mut self, instances: &[Location], name: SymbolId, ty: TypeId) -> Locations {
        let kind = self.kind(ty);
        let mut out = Locations::new();
        if kind == Kind::Immutable {
            return out;
        }
        for &instance in instances {
            let i = self.find(instance);
            let locations = if self.data[i.index()].wildcard {
                self.wildcards(ty)
            } else {
                let mut work = Vec::new();
                let l = self.load_field(i, name, Some(kind), &mut work);
                for (a, b) in work {
                    self.unify(a, b);
                }
                l.into_iter().collect()
            };
            self.union(&mut out, &locations);
        }
        out
    }

    /// The location of a field of `instance`, which is no wildcard. Without a kind, only what the module says of it.
    fn load_field(
        &mut self,
        instance: Location,
        name: SymbolId,
        kind: Option<Kind>,
        work: &mut Vec<(Location, Location)>,
    ) -> Option<Location> {
        if let Some((_, l)) = self.data[instance.index()].fields.iter().find(|f| f.0 == name) {
            return Some(*l);
        }
        let mut locations: Locations = Locations::new();
        if let Some(module) = self.module {
            for object in self.data[instance.index()].objects.clone() {
                let ty = module
                    .class_of(object)
                    .and_then(|c| c.attributes.get(&name))
                    .map(|a| a.ty);
                if let (Some(value), Some(ty)) = (module.attribute(object, name), ty) {
                    locations.extend(self.constant(value, ty));
                }
            }
        }
        let first = match (locations.first(), kind) {
            (Some(first), _) => *first,
            (None, Some(kind)) => self.fresh(kind),
            (None, None) => return None,
        };
        work.extend(locations.iter().skip(1).map(|l| (first, *l)));
        self.data[instance.index()].fields.push((name, first));
        Some(first)
    }

    /// Sets attribute `name` of these instances to `value`, which is of type `ty`.
    pub(super) fn set_field(&mut self, instances: &[Location], name: SymbolId, ty: TypeId, value: &[Location]) {
        for &instance in instances {
            let i = self.find(instance);
            if self.data[i.index()].wildcard {
                self.escape(value);
                continue;
            }
            let field = self.field(&[i], name, ty);
            if let Some(&field) = field.first() {
                for &v in value {
                    self.unify(field, v);
                }
            }
        }
    }

    // --- constants and attributes

    /// The location of an object of the module.
    pub(super) fn object(&mut self, id: ObjectId) -> Location {
        if let Some(l) = self.by_object.get(&id) {
            return *l;
        }
        let l = self.fresh(Kind::Of(types::ANY_CLASS));
        self.data[l.index()].objects.push(id);
        self.by_object.insert(id, l);
        l
    }

    /// The location of a tensor's storage.
    pub(super) fn tensor(&mut self, tensor: &TensorData) -> Location {
        self.address(Arc::as_ptr(&tensor.storage) as usize, Kind::Of(types::TENSOR))
            .0
    }

    fn address(&mut self, address: usize, kind: Kind) -> (Location, bool) {
        match self.by_address.get(&address) {
            Some(l) => (*l, false),
            None => {
                let l = self.fresh(kind);
                self.by_address.insert(address, l);
                (l, true)
            }
        }
    }

    /// The location of a constant or of an attribute's value; none for immutable ones.
    pub(super) fn constant(&mut self, value: &Constant, ty: TypeId) -> Option<Location> {
        match value {
            Constant::Tensor(t) => Some(self.tensor(t)),
            Constant::Object(id) if self.module.is_some() => Some(self.object(*id)),
            Constant::Object(_) => self.wildcard(Kind::Of(types::ANY_CLASS)),
            Constant::List(l) => self.compound(Arc::as_ptr(l) as usize, ty, l.items.iter().map(|i| (i, l.element))),
            Constant::Tuple(t) => {
                let ctx = self.ctx.clone();
                let types: SmallVec<[TypeId; 4]> = t.items.iter().map(|i| i.ty(&ctx)).collect();
                self.compound(Arc::as_ptr(t) as usize, ty, t.items.iter().zip(types))
            }
            Constant::Dict(d) => {
                let entries = d.entries.iter().flat_map(|(k, v)| [(k, d.key), (v, d.value)]);
                self.compound(Arc::as_ptr(d) as usize, ty, entries)
            }
            _ => None,
        }
    }

    fn compound<'c>(
        &mut self,
        address: usize,
        ty: TypeId,
        items: impl Iterator<Item = (&'c Constant, TypeId)>,
    ) -> Option<Location> {
        let kind = self.kind(ty);
        if kind == Kind::Immutable {
            return None;
        }
        let (location, new) = self.address(address, kind);
        if new {
            // Archives bound how deep values nest, so that this recursion is bounded too.
            for (item, item_ty) in items {
                let held = self.constant(item, item_ty);
                self.store(&[location], held.as_slice());
            }
        }
        Some(location)
    }
}
