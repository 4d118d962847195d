//! Constants in graphs: insertion, and arithmetic on constant tensors in f64.

use frazil_ir::{Builder, Constant, Context, DType, Graph, NodeId, TensorData, TypeId, TypeKind, ValueId, types};
use half::{bf16, f16};
use std::sync::Arc;

/// Inserts a `prim::Constant` before `node` for a value whose static type was `ty`. The constant's own type is used if it is more precise: for
/// tensors, and for None in place of an optional.
pub fn insert_constant(graph: &mut Graph, node: NodeId, constant: Constant, ty: TypeId) -> ValueId {
    let ctx = graph.ctx().clone();
    let (constant, ty) = typed(&ctx, constant, ty);
    Builder::before(graph, node).constant_typed(constant, ty)
}

/// Converts `constant` for use in place of a value of type `ty`. Returns it with the type of a `prim::Constant` for it.
pub fn typed(ctx: &Context, constant: Constant, ty: TypeId) -> (Constant, TypeId) {
    let wanted = match ctx.type_kind(ty) {
        TypeKind::Optional(e) => e,
        _ => ty,
    };
    match (&constant, ctx.type_kind(wanted)) {
        (Constant::List(l), TypeKind::List(element)) if l.element != element => {
            (Constant::list(element, l.items.clone()), wanted)
        }
        (Constant::Object(_), _) => (constant, wanted),
        _ => {
            let own = constant.ty(ctx);
            (constant, own)
        }
    }
}

/// Returns true for types whose values have no identity.
pub fn is_immutable(ctx: &Context, ty: TypeId) -> bool {
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
        | TypeKind::Function(_) => true,
        TypeKind::Optional(e) => is_immutable(ctx, e),
        TypeKind::Tuple(es) | TypeKind::NamedTuple(_, _, es) => ctx.types(es).iter().all(|e| is_immutable(ctx, *e)),
        _ => false,
    }
}

/// Returns true for a constant with an observable identity: `is` compares members of an enumeration by identity, and each `prim::Constant` node creates its own
/// value.
pub fn has_own_identity(constant: &Constant) -> bool {
    match constant {
        Constant::Enum(_) => true,
        Constant::Tuple(_) => constant.items().unwrap_or_default().iter().any(has_own_identity),
        _ => false,
    }
}

/// Returns the same tensor without `requires_grad`, on the same storage.
pub fn detached(tensor: &Arc<TensorData>) -> Arc<TensorData> {
    if !tensor.requires_grad {
        return tensor.clone();
    }
    let mut copy = (**tensor).clone();
    copy.requires_grad = false;
    Arc::new(copy)
}

/// Returns the elements of a real floating-point tensor in row-major order; `None` for other dtypes.
pub fn to_f64(tensor: &TensorData) -> Option<Vec<f64>> {
    let bytes = tensor.to_bytes();
    fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes
            .chunks_exact(N)
            .map(|c| read(c.try_into().unwrap_or([0; N])))
            .collect()
    }
    Some(match tensor.dtype {
        DType::Double => each(&bytes, f64::from_le_bytes),
        DType::Float => each(&bytes, |b| f64::from(f32::from_le_bytes(b))),
        DType::Half => each(&bytes, |b| f16::from_le_bytes(b).to_f64()),
        DType::BFloat16 => each(&bytes, |b| bf16::from_le_bytes(b).to_f64()),
        _ => return None,
    })
}

/// Returns the elements of a real tensor, of any integer, bool or floating-point dtype, as f64; `None` for other dtypes.
pub fn numbers(tensor: &TensorData) -> Option<Vec<f64>> {
    let bytes = tensor.to_bytes();
    fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes
            .chunks_exact(N)
            .map(|c| read(c.try_into().unwrap_or([0; N])))
            .collect()
    }
    Some(match tensor.dtype {
        DType::Long => each(&bytes, |b| i64::from_le_bytes(b) as f64),
        DType::Int => each(&bytes, |b| f64::from(i32::from_le_bytes(b))),
        DType::Short => each(&bytes, |b| f64::from(i16::from_le_bytes(b))),
        DType::Char => each(&bytes, |b| f64::from(i8::from_le_bytes(b))),
        DType::Byte => each(&bytes, |b: [u8; 1]| f64::from(b[0])),
        DType::Bool => each(&bytes, |b: [u8; 1]| f64::from(u8::from(b[0] != 0))),
        _ => return to_f64(tensor),
    })
}

/// Returns a contiguous tensor of a real floating-point dtype, each element rounded once.
pub fn from_f64(dtype: DType, sizes: &[i64], values: &[f64]) -> Option<Arc<TensorData>> {
    let bytes: Vec<u8> = match dtype {
        DType::Double => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        DType::Float => values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect(),
        DType::Half => values.iter().flat_map(|v| f16::from_f64(*v).to_le_bytes()).collect(),
        DType::BFloat16 => values.iter().flat_map(|v| bf16::from_f64(*v).to_le_bytes()).collect(),
        _ => return None,
    };
    TensorData::contiguous(dtype, sizes, bytes).ok().map(Arc::new)
}

/// Returns the tensor, if `value` is a constant tensor.
pub fn tensor(graph: &Graph, value: ValueId) -> Option<Arc<TensorData>> {
    match graph.constant(value)? {
        Constant::Tensor(t) => Some(t),
        _ => None,
    }
}

/// Returns true if `value` is always None.
pub fn is_none(graph: &Graph, value: ValueId) -> bool {
    graph.ty(value) == types::NONE || matches!(graph.constant(value), Some(Constant::None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_way_through_f64() {
        for dtype in [DType::Double, DType::Float, DType::Half, DType::BFloat16] {
            let t = from_f64(dtype, &[3], &[1.0, -0.5, f64::INFINITY]).unwrap();
            assert_eq!(to_f64(&t).unwrap(), [1.0, -0.5, f64::INFINITY]);
        }
        assert!(from_f64(DType::Long, &[1], &[1.0]).is_none());
        let third = from_f64(DType::Float, &[1], &[1.0 / 3.0]).unwrap();
        assert_eq!(to_f64(&third).unwrap()[0], f64::from(1.0f32 / 3.0));
    }
}
