//! Abstract memory: locations, the values that may be stored in them, and unification.
//!
//! A location represents some objects of the program: a tensor's storage, a list, a dictionary, a tuple, an instance of a class. The possible contents of a
//! container are stored by kind of element. Until elements are read, they are a list of locations, so that storing two tensors in a list does not make them
//! aliases. The first read unifies them into one location. Unification is a union-find: every union removes a location, so the total time is almost linear.
//!
//! *Wildcard* locations, one per kind, represent everything that may be known outside: inputs of the graph, and values that escape. All values stored in a
//! wildcard are unified.

use super::contents::{Cell, Content, ContentId, Work};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use frazil_ir::{Constant, Context, Module, ObjectId, SymbolId, TensorData, TypeId, TypeKind, types};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// A memory location. To compare two locations, compare their representatives ([`Memory::find`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Location(pub(super) u32);

impl Location {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Possible locations of a value; sorted only after the analysis is finished.
pub(super) type Locations = SmallVec<[Location; 4]>;

/// Maximum size of a set of locations. Larger sets are unified, which trades precision for linear time.
const MAX_SET: usize = 8;

/// Classification of objects by type: objects of different kinds are never the same object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Values without identity: numbers, strings.
    Immutable,
    /// Objects of the given type. All tensor types are one kind, and so are all tuple types, all classes, and all futures.
    Of(TypeId),
    /// Objects of any type.
    Any,
}

/// The union-find entry and kind of a location.
#[derive(Clone, Debug)]
pub(super) struct Data {
    /// Parent in the union-find forest; the location itself, if it is a representative.
    pub(super) parent: Location,
    pub(super) kind: Kind,
    pub(super) wildcard: bool,
    /// Index of the location's contents, if it ever had contents. Most locations are tensors and have none.
    pub(super) content: PackedOption<ContentId>,
}

impl Data {
    /// Returns the initial data of `location`.
    pub(super) fn new(location: Location, kind: Kind) -> Data {
        Data {
            parent: location,
            kind,
            wildcard: false,
            content: None.into(),
        }
    }
}

/// Abstract memory. See the [module documentation](self).
pub(super) struct Memory<'m> {
    ctx: Arc<Context>,
    module: Option<&'m Module>,
    pub(super) data: Vec<Data>,
    pub(super) contents: PrimaryMap<ContentId, Content>,
    /// Cache of the kind of each type.
    kinds: SecondaryMap<TypeId, Option<Kind>>,
    wildcards: HashMap<Kind, Location>,
    /// Set once an object of type `Any` has escaped: there is only one wildcard from then on.
    any_wildcard: Option<Location>,
    /// Locations of the contents of constants and attributes, keyed by the address of the constant.
    pub(super) by_address: HashMap<usize, Location>,
    pub(super) by_object: HashMap<ObjectId, Location>,
}

impl<'m> Memory<'m> {
    pub(super) fn new(ctx: Arc<Context>, module: Option<&'m Module>) -> Memory<'m> {
        Memory {
            ctx,
            module,
            data: Vec::new(),
            contents: PrimaryMap::new(),
            kinds: SecondaryMap::new(),
            wildcards: HashMap::new(),
            any_wildcard: None,
            by_address: HashMap::new(),
            by_object: HashMap::new(),
        }
    }

    // --- kinds

    /// Returns the kind of values of type `ty`.
    pub(super) fn kind(&mut self, ty: TypeId) -> Kind {
        if let Some(kind) = self.kinds[ty] {
            return kind;
        }
        let kind = self.kind_of(ty);
        self.kinds[ty] = Some(kind);
        kind
    }

    fn kind_of(&mut self, ty: TypeId) -> Kind {
        let ctx = self.ctx.clone();
        match ctx.type_kind(ty) {
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
        }
    }

    /// Returns the types of the direct contents of a value of type `ty`; `None` if unknown.
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
        self.data.push(Data::new(location, kind));
        location
    }

    /// Returns the contents of a representative, if it has any.
    fn content(&self, l: Location) -> Option<&Content> {
        self.data[l.index()].content.expand().map(|c| &self.contents[c])
    }

    pub(super) fn content_mut(&mut self, l: Location) -> &mut Content {
        let content = &mut self.data[l.index()].content;
        let id = match content.expand() {
            Some(id) => id,
            None => {
                let id = self.contents.push(Content::default());
                *content = id.into();
                id
            }
        };
        &mut self.contents[id]
    }

    /// Removes and returns the contents of a representative.
    fn take_content(&mut self, l: Location) -> Content {
        let id = self.data[l.index()].content.take();
        id.map(|c| std::mem::take(&mut self.contents[c])).unwrap_or_default()
    }

    pub(super) fn find(&mut self, location: Location) -> Location {
        let mut at = location;
        loop {
            let parent = self.data[at.index()].parent;
            if parent == at {
                return at;
            }
            let grandparent = self.data[parent.index()].parent;
            self.data[at.index()].parent = grandparent;
            at = grandparent;
        }
    }

    /// Returns the wildcard of a kind, the location of all such objects known outside; `None` for immutable values.
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

    /// Returns the possible locations of a value of type `ty` that comes from outside the graph. For a union, they are the locations of its members.
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

    /// Returns the wildcards that a wildcard of kind `kind` may contain. Tuples and objects may contain every existing wildcard.
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

    /// Returns all wildcards, in the order of their creation.
    pub(super) fn all_wildcards(&self) -> Vec<Location> {
        let mut all: Vec<Location> = match self.any_wildcard {
            Some(any) => vec![any],
            None => self.wildcards.values().copied().collect(),
        };
        all.sort_unstable();
        all
    }

    /// Records that `locations` and everything reachable from them are known outside of the graph.
    pub(super) fn escape(&mut self, locations: &[Location]) {
        for &location in locations {
            let l = self.find(location);
            let data = &self.data[l.index()];
            if data.wildcard {
                continue;
            }
            if let Some(w) = self.wildcard(data.kind) {
                self.unify(l, w);
            }
        }
    }

    /// Forms the set union of `into` and `from` in `into`; large sets are unified.
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

    /// Unifies two locations and their contents.
    pub(super) fn unify(&mut self, a: Location, b: Location) {
        // Not recursive, since the program determines the nesting of containers.
        let mut work: Work = smallvec::smallvec![(a, b)];
        self.unify_all(&mut work);
    }

    fn unify_all(&mut self, work: &mut Work) {
        while let Some((a, b)) = work.pop() {
            let (mut a, mut b) = (self.find(a), self.find(b));
            if a == b {
                continue;
            }
            let size = |l: Location| self.content(l).map_or(0, Content::size);
            if size(a) < size(b) {
                (a, b) = (b, a);
            }
            self.align_fields(a, b, work);
            let lost = self.take_content(b);
            let (lost_kind, lost_wildcard) = (self.data[b.index()].kind, self.data[b.index()].wildcard);
            self.data[b.index()].parent = a;
            let kept = &mut self.data[a.index()];
            if kept.kind != lost_kind {
                kept.kind = Kind::Any;
            }
            kept.wildcard |= lost_wildcard;
            let became_wildcard = kept.wildcard;
            if lost.size() > 0 {
                self.absorb(a, lost, work);
            }
            if became_wildcard {
                self.release(a, work);
            }
        }
    }

    /// Merges the contents `lost` of a unified location into `a`.
    fn absorb(&mut self, a: Location, lost: Content, work: &mut Work) {
        let kept = self.content_mut(a);
        for object in lost.objects {
            if !kept.objects.contains(&object) {
                kept.objects.push(object);
            }
        }
        for (name, location) in lost.fields {
            match kept.fields.iter().find(|(n, _)| *n == name) {
                Some((_, other)) => work.push((*other, location)),
                None => kept.fields.push((name, location)),
            }
        }
        for (kind, cell) in lost.cells {
            kept.merge_cell(kind, cell, work);
        }
    }

    /// Prepares the unification of two instances: attributes that were accessed in only one instance are created in the other.
    fn align_fields(&mut self, a: Location, b: Location, work: &mut Work) {
        let is_object = |l: Location| self.content(l).is_some_and(|c| !c.objects.is_empty());
        if !is_object(a) && !is_object(b) {
            return;
        }
        for (from, to) in [(a, b), (b, a)] {
            let names: SmallVec<[SymbolId; 4]> = self.content_mut(from).fields.iter().map(|f| f.0).collect();
            for name in names {
                if !self.content_mut(to).fields.iter().any(|f| f.0 == name) {
                    self.load_field(to, name, None, work);
                }
            }
        }
    }

    /// Records that all contents of the wildcard `l` are known outside, too.
    fn release(&mut self, l: Location, work: &mut Work) {
        let Content { cells, fields, objects } = self.take_content(l);
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
            if let Some(w) = self.wildcard(self.data[h.index()].kind) {
                work.push((h, w));
            }
        }
    }

    // --- containers

    /// Stores `elements` in the containers.
    pub(super) fn store(&mut self, containers: &[Location], elements: &[Location]) {
        for &container in containers {
            let c = self.find(container);
            if self.data[c.index()].wildcard {
                self.escape(elements);
                continue;
            }
            let mut work = Work::new();
            for &element in elements {
                let e = self.find(element);
                let kind = self.data[e.index()].kind;
                self.content_mut(c)
                    .merge_cell(kind, Cell::Open(smallvec::smallvec![e]), &mut work);
            }
            self.unify_all(&mut work);
        }
    }

    /// Returns the possible locations of an element of type `ty` that is read from the containers.
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
            let mut work = Work::new();
            self.content_mut(c).merge_cell(kind, Cell::Sealed(fresh), &mut work);
            self.unify_all(&mut work);
            self.union(&mut out, &[fresh]);
        }
        out
    }

    // --- instances

    /// Returns the possible locations of attribute `name`, which has type `ty`, in `instances`.
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
                let mut work = Work::new();
                let l = self.load_field(i, name, Some(kind), &mut work);
                self.unify_all(&mut work);
                l.into_iter().collect()
            };
            self.union(&mut out, &locations);
        }
        out
    }

    /// Returns the location of a field of `instance`, which is not a wildcard. Without a kind, only the field's value in the module is considered.
    fn load_field(
        &mut self,
        instance: Location,
        name: SymbolId,
        kind: Option<Kind>,
        work: &mut Work,
    ) -> Option<Location> {
        let content = self.content_mut(instance);
        if let Some((_, l)) = content.fields.iter().find(|f| f.0 == name) {
            return Some(*l);
        }
        let objects = content.objects.clone();
        let mut locations: Locations = Locations::new();
        if let Some(module) = self.module {
            for object in objects {
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
        self.content_mut(instance).fields.push((name, first));
        Some(first)
    }

    /// Records that attribute `name` of `instances`, which has type `ty`, is set to `value`.
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

    /// Returns the location of an object in the module.
    pub(super) fn object(&mut self, id: ObjectId) -> Location {
        if let Some(l) = self.by_object.get(&id) {
            return *l;
        }
        let l = self.fresh(Kind::Of(types::ANY_CLASS));
        self.content_mut(l).objects.push(id);
        self.by_object.insert(id, l);
        l
    }

    /// Returns the location of a tensor's storage.
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

    /// Returns the location of a constant or of an attribute's value; `None` if it is immutable.
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
            // Archives bound the nesting of values, so this recursion is bounded too.
            for (item, item_ty) in items {
                let held = self.constant(item, item_ty);
                self.store(&[location], held.as_slice());
            }
        }
        Some(location)
    }
}
