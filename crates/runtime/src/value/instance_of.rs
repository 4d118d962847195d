//! Evaluation of `prim::isinstance` on values, for the interpreter and for specialisation alike.

use crate::value::Value;
use frazil_ir::{CompilationUnit, Context, TypeId, TypeKind, types};

/// Returns whether `value` is an instance of `ty`, by the rules of TorchScript's `isinstance`.
///
/// `unit` defines the classes and interfaces of the program. `scalar_type` returns the type of a value with a special representation (specialisation represents
/// run-time scalars as tensors), and `None` for every other value. The result is `None` if it depends on an interface or class that `unit` does not define.
pub fn is_instance(
    ctx: &Context,
    unit: Option<&CompilationUnit>,
    value: &Value,
    ty: TypeId,
    scalar_type: &dyn Fn(&Value) -> Option<TypeId>,
) -> Option<bool> {
    let inner = |value: &Value, ty: TypeId| is_instance(ctx, unit, value, ty, scalar_type);
    if let Some(own) = scalar_type(value) {
        return Some(types::is_subtype(ctx, own, ty));
    }
    Some(match (ctx.type_kind(ty), value) {
        (TypeKind::Any, _) | (TypeKind::Optional(_), Value::None) => true,
        (TypeKind::Optional(e), v) => return inner(v, e),
        (TypeKind::Union(list), v) => return any(ctx.types(list).iter().map(|&t| inner(v, t))),
        (TypeKind::Tensor(_), v) => matches!(v, Value::Tensor(_)),
        (TypeKind::AnyList, v) => matches!(v, Value::List(_)),
        (TypeKind::AnyTuple, v) => matches!(v, Value::Tuple(_)),
        (TypeKind::Number, v) => matches!(v, Value::Int(_) | Value::Float(_) | Value::Complex(_)),
        (TypeKind::Tuple(list) | TypeKind::NamedTuple(_, _, list), Value::Tuple(t)) => {
            let list = ctx.types(list);
            if list.len() != t.items.len() {
                return Some(false);
            }
            let all = list.iter().zip(t.items.iter()).map(|(&t, v)| inner(v, t));
            return any(all.map(|holds| holds.map(|h| !h))).map(|fails| !fails);
        }
        (TypeKind::Interface(name), Value::Object(object)) => {
            let unit = unit?;
            unit.class(name).zip(unit.class(object.class()))?;
            unit.implements(ctx, object.class(), name)
        }
        (_, v) => types::is_subtype(ctx, v.ty(ctx), ty),
    })
}

/// Combines answers by a logical or. Returns true if one answer is true; otherwise `None` if one answer is unknown, else false.
fn any(mut answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    answers.try_fold(false, |any, answer| answer.map(|a| any || a))
}
