//! Union types, with their members in PyTorch's order.

use frazil_ir::types::unify;
use frazil_ir::{Context, TypeId, TypeKind, types};

/// Returns the union of the types `members`. Unions among the members are flattened.
pub(crate) fn union_of(ctx: &Context, members: &[TypeId]) -> TypeId {
    let mut flat: Vec<TypeId> = Vec::new();
    for &member in members {
        let inner: Vec<TypeId> = match ctx.type_kind(member) {
            TypeKind::Union(inner) => ctx.types(inner).to_vec(),
            TypeKind::Optional(inner) => vec![inner, types::NONE],
            TypeKind::Number => vec![types::INT, types::FLOAT, types::COMPLEX],
            _ => vec![member],
        };
        for ty in inner {
            if !flat.contains(&ty) {
                flat.push(ty);
            }
        }
    }
    flat.sort_by_cached_key(|&ty| (union_rank(ctx, ty), ctx.show_type(ty).to_string()));
    match *flat.as_slice() {
        [one] => one,
        [a, types::NONE] => ctx.optional_of(a),
        [types::NONE, a] => ctx.optional_of(a),
        _ => ctx.type_of_kind(TypeKind::Union(ctx.type_list(&flat))),
    }
}

/// Returns the position of a type in PyTorch's order of union members.
fn union_rank(ctx: &Context, ty: TypeId) -> usize {
    match ctx.type_kind(ty) {
        TypeKind::Any => 0,
        TypeKind::Enum(_) => 1,
        TypeKind::Tensor(_) => 2,
        TypeKind::Tuple(_) | TypeKind::NamedTuple(..) => 3,
        TypeKind::List(_) => 4,
        TypeKind::Dict(..) => 5,
        TypeKind::Number => 6,
        TypeKind::Float => 7,
        TypeKind::Complex => 8,
        TypeKind::Future(_) => 9,
        TypeKind::Await(_) => 10,
        TypeKind::RRef(_) => 11,
        TypeKind::Int => 12,
        TypeKind::None => 13,
        TypeKind::Str => 14,
        TypeKind::Bool => 15,
        TypeKind::Device => 16,
        TypeKind::Function(_) => 17,
        TypeKind::Class(_) => 18,
        TypeKind::Interface(_) => 19,
        _ => 20,
    }
}

/// Returns the common type of `a` and `b`, or else their union.
pub(crate) fn joined_or_union(ctx: &Context, a: TypeId, b: TypeId) -> TypeId {
    unify(ctx, a, b).unwrap_or_else(|| union_of(ctx, &[a, b]))
}
