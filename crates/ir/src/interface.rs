//! Subtyping with interfaces: the definitions in a [`CompilationUnit`] determine which classes implement which interface.

use crate::context::{SymbolId, TypeId};
use crate::schema::FunctionSchema;
use crate::types::{self, TypeKind};
use crate::{CompilationUnit, Context};

impl CompilationUnit {
    /// Returns true if a value of type `a` can be used where `b` is expected: [`types::is_subtype`], and classes (or interfaces) that
    /// implement the interface `b`.
    pub fn is_subtype(&self, ctx: &Context, a: TypeId, b: TypeId) -> bool {
        if types::is_subtype(ctx, a, b) {
            return true;
        }
        match (ctx.type_kind(a), ctx.type_kind(b)) {
            (TypeKind::Optional(a), TypeKind::Optional(b)) => self.is_subtype(ctx, a, b),
            (_, TypeKind::Optional(b)) => self.is_subtype(ctx, a, b),
            (TypeKind::Tuple(a), TypeKind::Tuple(b)) => {
                let (a, b) = (ctx.types(a), ctx.types(b));
                a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| self.is_subtype(ctx, a, b))
            }
            (TypeKind::Class(class), TypeKind::Interface(interface)) => self.implements(ctx, class, interface),
            (TypeKind::Interface(a), TypeKind::Interface(b)) => {
                let (Some(a), Some(b)) = (self.class(a), self.class(b)) else {
                    return false;
                };
                b.signatures.keys().all(|method| a.signatures.contains_key(method))
            }
            _ => false,
        }
    }

    /// Returns true if `class` has every method of `interface`, with parameter types that are supertypes, and return types that are subtypes, of the
    /// interface's types. False if `class` or `interface` is not defined in this unit.
    pub fn implements(&self, ctx: &Context, class: SymbolId, interface: SymbolId) -> bool {
        let (Some(class), Some(interface)) = (self.class(class), self.class(interface)) else {
            return false;
        };
        interface.signatures.iter().all(|(name, wanted)| {
            let method = class.methods.get(name);
            method.is_some_and(|&id| self.overrides(ctx, &self.function(id).schema, wanted))
        })
    }

    fn overrides(&self, ctx: &Context, schema: &FunctionSchema, wanted: &FunctionSchema) -> bool {
        // The first argument is `self`, whose types differ by definition.
        let mut arguments = schema.arguments.iter().zip(&wanted.arguments).skip(1);
        let mut returns = schema.returns.iter().zip(&wanted.returns);
        schema.arguments.len() == wanted.arguments.len()
            && arguments.all(|(has, wants)| self.is_subtype(ctx, wants.ty, has.ty))
            && returns.all(|(has, wants)| self.is_subtype(ctx, has.ty, wants.ty))
    }
}
