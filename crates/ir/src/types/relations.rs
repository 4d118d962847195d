//! Subtyping, unification, and matching the formal types of schemas, as TorchScript defines them.

use super::{TensorType, TypeKind};
use crate::context::{SymbolId, TypeId};
use crate::stack::with_stack;
use crate::{Context, types};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Returns true if a value of type `a` may be used where `b` is expected, without any conversion.
///
/// Lists and dictionaries are invariant, tuples covariant, tensors compared by their known properties. This function does not decide
/// whether a class implements an interface, which depends on its [`CompilationUnit`](crate::CompilationUnit).
pub fn is_subtype(ctx: &Context, a: TypeId, b: TypeId) -> bool {
    if a == b || b == types::ANY {
        return true;
    }
    with_stack(|| match (ctx.type_kind(a), ctx.type_kind(b)) {
        (TypeKind::Tensor(x), TypeKind::Tensor(y)) => tensor_subtype(&x, &y),
        (TypeKind::Optional(x), TypeKind::Optional(y)) => is_subtype(ctx, x, y),
        (TypeKind::None, TypeKind::Optional(_)) => true,
        (TypeKind::Optional(x), TypeKind::Union(_)) => is_subtype(ctx, types::NONE, b) && is_subtype(ctx, x, b),
        (TypeKind::Union(xs), _) => ctx.types(xs).iter().all(|&x| is_subtype(ctx, x, b)),
        (TypeKind::Number, TypeKind::Union(ys)) => {
            let kinds = [types::INT, types::FLOAT, types::COMPLEX];
            kinds.iter().all(|kind| ctx.types(ys).contains(kind)) || ctx.types(ys).contains(&types::NUMBER)
        }
        (_, TypeKind::Union(ys)) => ctx.types(ys).iter().any(|&y| is_subtype(ctx, a, y)),
        (_, TypeKind::Optional(y)) => is_subtype(ctx, a, y),
        (TypeKind::Int | TypeKind::Float | TypeKind::Complex, TypeKind::Number) => true,
        (TypeKind::Tuple(xs) | TypeKind::NamedTuple(_, _, xs), TypeKind::Tuple(ys)) => {
            let (xs, ys) = (ctx.types(xs), ctx.types(ys));
            xs.len() == ys.len() && xs.iter().zip(ys).all(|(&x, &y)| is_subtype(ctx, x, y))
        }
        (TypeKind::Tuple(_) | TypeKind::NamedTuple(..), TypeKind::AnyTuple) => true,
        // A tensor's refinement does not make another list type: `Float(2)[]` is `Tensor[]`.
        (TypeKind::List(x), TypeKind::List(y)) => ctx.is_tensor(x) && ctx.is_tensor(y) && is_subtype(ctx, x, y),
        (TypeKind::List(_), TypeKind::AnyList) => true,
        (TypeKind::Dict(k, x), TypeKind::Dict(l, y)) => {
            k == l && ctx.is_tensor(x) && ctx.is_tensor(y) && is_subtype(ctx, x, y)
        }
        (TypeKind::Future(x), TypeKind::Future(y)) | (TypeKind::RRef(x), TypeKind::RRef(y)) => is_subtype(ctx, x, y),
        (TypeKind::Class(_), TypeKind::AnyClass) | (TypeKind::Enum(_), TypeKind::AnyEnum) => true,
        (TypeKind::Function(_), TypeKind::Function(name)) => name == crate::symbols::EMPTY,
        _ => false,
    })
}

/// Returns the number of types in the text of `ty`. Types share their components, so a small program may have a type with an exponentially long text.
pub fn written_size(ctx: &Context, ty: TypeId) -> u64 {
    fn size(ctx: &Context, ty: TypeId, known: &mut HashMap<TypeId, u64>) -> u64 {
        if let Some(&size) = known.get(&ty) {
            return size;
        }
        let parts: SmallVec<[TypeId; 4]> = match ctx.type_kind(ty) {
            TypeKind::Optional(e)
            | TypeKind::List(e)
            | TypeKind::Future(e)
            | TypeKind::Await(e)
            | TypeKind::RRef(e) => SmallVec::from_iter([e]),
            TypeKind::Dict(k, v) => SmallVec::from_iter([k, v]),
            TypeKind::Tuple(es) | TypeKind::Union(es) | TypeKind::NamedTuple(_, _, es) => {
                SmallVec::from_slice(ctx.types(es))
            }
            _ => SmallVec::new(),
        };
        let sizes = parts.into_iter().map(|part| with_stack(|| size(ctx, part, known)));
        let total = sizes.fold(1, u64::saturating_add);
        known.insert(ty, total);
        total
    }
    size(ctx, ty, &mut HashMap::new())
}

fn tensor_subtype(a: &TensorType, b: &TensorType) -> bool {
    fn implies<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
        b.is_none() || a == b
    }
    implies(a.dtype, b.dtype)
        && implies(a.device, b.device)
        && implies(a.sizes, b.sizes)
        && implies(a.strides, b.strides)
        && implies(a.requires_grad, b.requires_grad)
        && implies(a.undefined, b.undefined)
}

/// Returns the least common supertype of `a` and `b`, as for the branches of a TorchScript program: equal types, a type and `None`, tensors, tuples element
/// by element. `None` if there is none (PyTorch then uses a Union or reports an error).
pub fn unify(ctx: &Context, a: TypeId, b: TypeId) -> Option<TypeId> {
    if is_subtype(ctx, a, b) {
        return Some(b);
    }
    if is_subtype(ctx, b, a) {
        return Some(a);
    }
    with_stack(|| match (ctx.type_kind(a), ctx.type_kind(b)) {
        (TypeKind::Tensor(_), TypeKind::Tensor(_)) => Some(types::TENSOR),
        (TypeKind::None, _) => Some(ctx.optional_of(b)),
        (_, TypeKind::None) => Some(ctx.optional_of(a)),
        (TypeKind::Optional(x), _) => Some(ctx.optional_of(unify(ctx, x, b)?)),
        (_, TypeKind::Optional(y)) => Some(ctx.optional_of(unify(ctx, a, y)?)),
        (TypeKind::List(x), TypeKind::List(y)) if ctx.is_tensor(x) && ctx.is_tensor(y) => {
            Some(ctx.list_of(types::TENSOR))
        }
        (TypeKind::Future(x), TypeKind::Future(y)) => Some(ctx.type_of_kind(TypeKind::Future(unify(ctx, x, y)?))),
        (TypeKind::Tuple(xs), TypeKind::Tuple(ys)) => {
            let (xs, ys) = (ctx.types(xs), ctx.types(ys));
            if xs.len() != ys.len() {
                return None;
            }
            let joined: Option<Vec<_>> = xs.iter().zip(ys).map(|(&x, &y)| unify(ctx, x, y)).collect();
            Some(ctx.tuple_of(&joined?))
        }
        _ => None,
    })
}

/// Bindings of a schema's type variables to types.
#[derive(Clone, Debug, Default)]
pub struct Bindings(SmallVec<[(SymbolId, TypeId); 2]>);

impl Bindings {
    /// Returns the type bound to variable `name`.
    pub fn get(&self, name: SymbolId) -> Option<TypeId> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, t)| *t)
    }

    /// Binds variable `name` to `ty`, replacing an earlier binding.
    pub fn set(&mut self, name: SymbolId, ty: TypeId) {
        match self.0.iter_mut().find(|(n, _)| *n == name) {
            Some(slot) => slot.1 = ty,
            None => self.0.push((name, ty)),
        }
    }
}

/// Matches the type `actual` with the schema type `formal`, binding its variables. Returns true if, under the bindings,
/// `actual` is a subtype of `formal`. A variable that is matched with two types is bound to their join.
pub fn match_formal(ctx: &Context, formal: TypeId, actual: TypeId, bindings: &mut Bindings) -> bool {
    with_stack(|| match (ctx.type_kind(formal), ctx.type_kind(actual)) {
        (TypeKind::Var(name), _) => match bindings.get(name) {
            None => {
                bindings.set(name, actual);
                true
            }
            Some(bound) => match unify(ctx, bound, actual) {
                Some(joined) => {
                    bindings.set(name, joined);
                    true
                }
                // The caller, which has the definitions, decides whether the class implements the interface.
                None => matches!(
                    (ctx.type_kind(bound), ctx.type_kind(actual)),
                    (TypeKind::Interface(_), TypeKind::Class(_))
                ),
            },
        },
        (TypeKind::List(f), TypeKind::List(a))
        | (TypeKind::Future(f), TypeKind::Future(a))
        | (TypeKind::RRef(f), TypeKind::RRef(a))
        | (TypeKind::Await(f), TypeKind::Await(a)) => match_formal(ctx, f, a, bindings),
        (TypeKind::List(f), TypeKind::Tuple(elements)) if has_variable(ctx, f) => {
            ctx.types(elements).iter().all(|&a| match_formal(ctx, f, a, bindings))
        }
        (TypeKind::Optional(f), TypeKind::Optional(a)) => match_formal(ctx, f, a, bindings),
        (TypeKind::Optional(_), TypeKind::None) => true,
        (TypeKind::Optional(f), _) => match_formal(ctx, f, actual, bindings),
        (TypeKind::Dict(k, v), TypeKind::Dict(l, w)) => {
            match_formal(ctx, k, l, bindings) && match_formal(ctx, v, w, bindings)
        }
        (TypeKind::Tuple(fs), TypeKind::Tuple(xs)) if has_variable(ctx, formal) => {
            let (fs, xs) = (ctx.types(fs), ctx.types(xs));
            fs.len() == xs.len() && fs.iter().zip(xs).all(|(&f, &x)| match_formal(ctx, f, x, bindings))
        }
        _ => is_subtype(ctx, actual, formal),
    })
}

fn has_variable(ctx: &Context, ty: TypeId) -> bool {
    with_stack(|| match ctx.type_kind(ty) {
        TypeKind::Var(_) => true,
        TypeKind::Optional(e) | TypeKind::List(e) | TypeKind::Future(e) | TypeKind::Await(e) | TypeKind::RRef(e) => {
            has_variable(ctx, e)
        }
        TypeKind::Dict(k, v) => has_variable(ctx, k) || has_variable(ctx, v),
        TypeKind::Tuple(es) => ctx.types(es).iter().any(|&e| has_variable(ctx, e)),
        _ => false,
    })
}

/// Replaces the type variables in `ty` by the types they are bound to. Returns `None` if a variable has no binding.
pub fn substitute(ctx: &Context, ty: TypeId, bindings: &Bindings) -> Option<TypeId> {
    if !has_variable(ctx, ty) {
        return Some(ty);
    }
    with_stack(|| {
        Some(match ctx.type_kind(ty) {
            TypeKind::Var(name) => bindings.get(name)?,
            TypeKind::Optional(e) => ctx.optional_of(substitute(ctx, e, bindings)?),
            TypeKind::List(e) => ctx.list_of(substitute(ctx, e, bindings)?),
            TypeKind::Future(e) => ctx.type_of_kind(TypeKind::Future(substitute(ctx, e, bindings)?)),
            TypeKind::Await(e) => ctx.type_of_kind(TypeKind::Await(substitute(ctx, e, bindings)?)),
            TypeKind::RRef(e) => ctx.type_of_kind(TypeKind::RRef(substitute(ctx, e, bindings)?)),
            TypeKind::Dict(k, v) => ctx.dict_of(substitute(ctx, k, bindings)?, substitute(ctx, v, bindings)?),
            TypeKind::Tuple(es) => {
                let es: Option<Vec<_>> = ctx.types(es).iter().map(|&e| substitute(ctx, e, bindings)).collect();
                ctx.tuple_of(&es?)
            }
            _ => ty,
        })
    })
}

/// Returns the element type of a list, or the common type of a tuple's elements; `None` for other types.
pub fn element_type(ctx: &Context, ty: TypeId) -> Option<TypeId> {
    match ctx.type_kind(ty) {
        TypeKind::List(e) => Some(e),
        TypeKind::Tuple(es) => {
            let mut types = ctx.types(es).iter().copied();
            let first = types.next()?;
            types.try_fold(first, |joined, ty| unify(ctx, joined, ty))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn subtyping_follows_torchscript() {
        let ctx = Context::new();
        let float = ctx.tensor_of(DType::Float, &[2], &[1], false);
        let optional = ctx.optional_of(types::TENSOR);
        assert!(is_subtype(&ctx, float, types::TENSOR));
        assert!(!is_subtype(&ctx, types::TENSOR, float));
        assert!(is_subtype(&ctx, types::NONE, optional) && is_subtype(&ctx, float, optional));
        assert!(is_subtype(&ctx, types::INT, types::NUMBER) && !is_subtype(&ctx, types::BOOL, types::NUMBER));
        assert!(
            !is_subtype(&ctx, ctx.list_of(types::INT), ctx.list_of(types::NUMBER)),
            "lists are invariant"
        );
        let pair = |a, b| ctx.tuple_of(&[a, b]);
        assert!(is_subtype(
            &ctx,
            pair(float, types::INT),
            pair(types::TENSOR, types::NUMBER)
        ));
    }

    #[test]
    fn joins_meet_at_the_least_type() {
        let ctx = Context::new();
        assert_eq!(unify(&ctx, types::NONE, types::INT), Some(ctx.optional_of(types::INT)));
        assert_eq!(unify(&ctx, types::STR, types::INT), None);
        let (a, b) = (
            ctx.tensor_of(DType::Float, &[2], &[1], false),
            ctx.tensor_of(DType::Long, &[2], &[1], false),
        );
        assert_eq!(unify(&ctx, a, b), Some(types::TENSOR));
    }

    #[test]
    fn variables_bind_and_substitute() {
        let ctx = Context::new();
        let t = ctx.symbol("t");
        let var = ctx.type_of_kind(TypeKind::Var(t));
        let mut bindings = Bindings::default();
        assert!(match_formal(
            &ctx,
            ctx.list_of(var),
            ctx.list_of(types::INT),
            &mut bindings
        ));
        assert_eq!(bindings.get(t), Some(types::INT));
        assert_eq!(
            substitute(&ctx, ctx.optional_of(var), &bindings),
            Some(ctx.optional_of(types::INT))
        );
        assert!(!match_formal(&ctx, var, types::STR, &mut bindings));
    }
}
