//! The classes and functions to which printed code refers.

use std::collections::HashSet;

use frazil_ir::{CompilationUnit, Constant, Context, SymbolId, TypeId, TypeKind, symbols};
use indexmap::IndexSet;

/// A class or function that must be defined before the code can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dependency {
    /// A class, interface or enumeration, by qualified name.
    Class(SymbolId),
    /// A NamedTuple, by qualified name.
    NamedTuple(SymbolId),
    /// A function, by qualified name.
    Function(SymbolId),
}

impl Dependency {
    /// Returns the qualified name of the class or function.
    pub fn name(self) -> SymbolId {
        match self {
            Dependency::Class(name) | Dependency::NamedTuple(name) | Dependency::Function(name) => name,
        }
    }
}

/// The dependencies of printed code, in the order of their first use, which is the order of definitions in an archive.
#[derive(Clone, Debug, Default)]
pub struct Dependencies {
    order: IndexSet<Dependency>,
    /// Types whose dependencies, including those of component types, have been added.
    seen: HashSet<TypeId>,
}

impl Dependencies {
    /// Returns all dependencies, each once.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Dependency> + '_ {
        self.order.iter().copied()
    }

    /// Returns dependency number `index`.
    pub fn get(&self, index: usize) -> Option<Dependency> {
        self.order.get_index(index).copied()
    }

    pub(super) fn add(&mut self, dependency: Dependency) {
        self.order.insert(dependency);
    }

    /// Adds the dependencies of the type `ty`: first the type itself, then the types it contains. A class contains the types of its attributes.
    pub(super) fn add_type(&mut self, ctx: &Context, unit: Option<&CompilationUnit>, ty: TypeId) {
        let mut pending = vec![ty];
        while let Some(ty) = pending.pop() {
            if !self.seen.insert(ty) {
                continue;
            }
            match ctx.type_kind(ty) {
                TypeKind::Class(name) => {
                    self.add(Dependency::Class(name));
                    if let Some(class) = unit.and_then(|unit| unit.class(name)) {
                        pending.extend(class.attributes.values().rev().map(|attribute| attribute.ty));
                    }
                }
                TypeKind::Interface(name) => self.add(Dependency::Class(name)),
                TypeKind::Enum(name) => {
                    self.add(Dependency::Class(name));
                    let member = unit.and_then(|unit| unit.class(name)?.constants.values().next());
                    if let Some(Constant::Enum(member)) = member {
                        pending.push(member.value.ty(ctx));
                    }
                }
                TypeKind::NamedTuple(name, _, fields) => {
                    // The type of an operator's named results has no name, and is written as a plain tuple.
                    if name != symbols::EMPTY {
                        self.add(Dependency::NamedTuple(name));
                    }
                    pending.extend(ctx.types(fields).iter().rev());
                }
                TypeKind::Tuple(items) | TypeKind::Union(items) => pending.extend(ctx.types(items).iter().rev()),
                TypeKind::Optional(item)
                | TypeKind::List(item)
                | TypeKind::Future(item)
                | TypeKind::Await(item)
                | TypeKind::RRef(item) => pending.push(item),
                TypeKind::Dict(key, value) => pending.extend([value, key]),
                _ => {}
            }
        }
    }
}
