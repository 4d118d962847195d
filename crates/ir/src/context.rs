//! The [`Context`]: interned names and types, each stored once and identified by an id.

use crate::types::{Dim, TypeKind};
use cranelift_entity::entity_impl;
use frazil_arena::Interner;
use std::fmt;

/// An interned name: a node kind (`aten::add`), an attribute, the word of a value's name, a qualified class name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(u32);
entity_impl!(SymbolId, "sym");

impl SymbolId {
    /// Returns the symbol numbered `number`; for the constants of [`crate::symbols`].
    pub(crate) const fn new_const(number: u32) -> SymbolId {
        SymbolId(number)
    }
}

/// An interned type; equal types have equal ids within one context.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(u32);
entity_impl!(TypeId, "type");

impl TypeId {
    /// Returns the type numbered `number`; for the constants of [`crate::types`].
    pub(crate) const fn new_const(number: u32) -> TypeId {
        TypeId(number)
    }
}

/// An interned list of types (the elements of a tuple).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeListId(u32);
entity_impl!(TypeListId, "types");

/// An interned list of names (the fields of a NamedTuple).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolListId(u32);
entity_impl!(SymbolListId, "syms");

/// An interned list of dimensions (the sizes or strides of a tensor type).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DimsId(u32);
entity_impl!(DimsId, "dims");

/// An interned type with derived properties, which equal types share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct InternedType {
    kind: TypeKind,
    /// Nesting depth of the type, in levels.
    nesting: u16,
}

/// Interned immutable data, shared by all graphs of a compilation.
///
/// A context is append-only and `Sync`: threads that compile different graphs may intern at the same time. Ids are valid in
/// their own context only. There is no global context; dropping it frees all its memory.
pub struct Context {
    symbols: Interner<str>,
    types: Interner<[InternedType]>,
    type_lists: Interner<[TypeId]>,
    symbol_lists: Interner<[SymbolId]>,
    dims: Interner<[Dim]>,
}

impl Context {
    /// Returns a context with the names in [`crate::symbols`] and the simple types in [`crate::types`] at their fixed numbers.
    pub fn new() -> Context {
        let ctx = Context {
            symbols: Interner::new(),
            types: Interner::new(),
            type_lists: Interner::new(),
            symbol_lists: Interner::new(),
            dims: Interner::new(),
        };
        for name in crate::symbols::WELL_KNOWN {
            ctx.symbols.intern(name);
        }
        for &kind in crate::types::WELL_KNOWN {
            ctx.types.intern(&[InternedType { kind, nesting: 1 }]);
        }
        ctx
    }

    /// Returns the id of `name`, which is interned if it is new.
    pub fn symbol(&self, name: &str) -> SymbolId {
        SymbolId(self.symbols.intern(name))
    }

    /// Returns the id of `name` if it has been interned.
    pub fn find_symbol(&self, name: &str) -> Option<SymbolId> {
        self.symbols.find(name).map(SymbolId)
    }

    /// Returns the name with id `id`; empty for an id of another context.
    pub fn name(&self, id: SymbolId) -> &str {
        self.symbols.get(id.0).unwrap_or_default()
    }

    /// Returns the id of the type with structure `kind`, which is interned if it is new.
    pub fn type_of_kind(&self, kind: TypeKind) -> TypeId {
        let nesting = self.nesting_of_kind(&kind);
        TypeId(self.types.intern(&[InternedType { kind, nesting }]))
    }

    /// Returns the structure of the type `id`; `Any` for an id of another context.
    pub fn type_kind(&self, id: TypeId) -> TypeKind {
        self.types
            .get(id.0)
            .and_then(|k| k.first())
            .map_or(TypeKind::Any, |interned| interned.kind)
    }

    /// Returns the nesting depth of the type `id` in levels: 1 for a type without component types, 2 for a list of such a type, and so on. Readers
    /// and writers refuse more than [`MAX_NESTING`](crate::nesting::MAX_NESTING).
    pub fn type_nesting(&self, id: TypeId) -> usize {
        let interned = self.types.get(id.0).and_then(|k| k.first());
        interned.map_or(1, |interned| interned.nesting.into())
    }

    fn nesting_of_kind(&self, kind: &TypeKind) -> u16 {
        let nesting = |id: TypeId| self.type_nesting(id);
        let parts = match *kind {
            TypeKind::Optional(e)
            | TypeKind::List(e)
            | TypeKind::Future(e)
            | TypeKind::Await(e)
            | TypeKind::RRef(e) => nesting(e),
            TypeKind::Dict(k, v) => nesting(k).max(nesting(v)),
            TypeKind::Tuple(es) | TypeKind::Union(es) | TypeKind::NamedTuple(_, _, es) => {
                self.types(es).iter().map(|e| nesting(*e)).max().unwrap_or(0)
            }
            _ => 0,
        };
        u16::try_from(parts + 1).unwrap_or(u16::MAX)
    }

    /// Returns the id of the list `types`, which is interned if it is new.
    pub fn type_list(&self, types: &[TypeId]) -> TypeListId {
        TypeListId(self.type_lists.intern(types))
    }

    /// Returns the types in the list `id`.
    pub fn types(&self, id: TypeListId) -> &[TypeId] {
        self.type_lists.get(id.0).unwrap_or_default()
    }

    /// Returns the id of the list `names`, which is interned if it is new.
    pub fn symbol_list(&self, names: &[SymbolId]) -> SymbolListId {
        SymbolListId(self.symbol_lists.intern(names))
    }

    /// Returns the names in the list `id`.
    pub fn symbols(&self, id: SymbolListId) -> &[SymbolId] {
        self.symbol_lists.get(id.0).unwrap_or_default()
    }

    /// Returns the id of the list `dims`, which is interned if it is new.
    pub fn dim_list(&self, dims: &[Dim]) -> DimsId {
        DimsId(self.dims.intern(dims))
    }

    /// Returns the dimensions in the list `id`.
    pub fn dims(&self, id: DimsId) -> &[Dim] {
        self.dims.get(id.0).unwrap_or_default()
    }
}

impl Default for Context {
    fn default() -> Context {
        Context::new()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({} symbols, {} types)", self.symbols.len(), self.types.len())
    }
}
