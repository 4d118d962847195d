//! Changes to the types of all values in a graph.

use crate::PassContext;
use frazil_ir::nesting::with_stack;
use frazil_ir::{Context, Graph, TensorType, TypeId, TypeKind, ValueId};

/// Returns all values of `graph`: inputs, parameters of blocks, and outputs of nodes.
pub fn all_values(graph: &Graph) -> Vec<ValueId> {
    let mut values = graph.inputs().to_vec();
    for node in graph.all_nodes() {
        values.extend_from_slice(graph.node_outputs(node));
        for block in graph.node_blocks(node) {
            values.extend_from_slice(graph.parameters(*block));
        }
    }
    values
}

/// Sets the type of every value to the result of `change`, up to the limit on rewrites.
pub fn retype(graph: &mut Graph, cx: &mut PassContext<'_>, change: impl Fn(&Context, TypeId) -> TypeId) {
    let ctx = graph.ctx().clone();
    for value in all_values(graph) {
        let (old, new) = (graph.ty(value), change(&ctx, graph.ty(value)));
        if old != new && cx.rewrite("types changed") {
            graph.set_type(value, new);
        }
    }
}

/// Returns `ty` with `change` applied to every tensor type that it contains.
pub fn map_tensors(ctx: &Context, ty: TypeId, change: &dyn Fn(TensorType) -> TensorType) -> TypeId {
    let inner = |ty: TypeId| with_stack(|| map_tensors(ctx, ty, change));
    let all = |types: &[TypeId]| -> Vec<TypeId> { types.iter().map(|ty| inner(*ty)).collect() };
    match ctx.type_kind(ty) {
        TypeKind::Tensor(t) => ctx.type_of_kind(TypeKind::Tensor(change(t))),
        TypeKind::Optional(e) => ctx.optional_of(inner(e)),
        TypeKind::List(e) => ctx.list_of(inner(e)),
        TypeKind::Dict(k, v) => ctx.dict_of(inner(k), inner(v)),
        TypeKind::Future(e) => ctx.type_of_kind(TypeKind::Future(inner(e))),
        TypeKind::Tuple(es) => ctx.tuple_of(&all(ctx.types(es))),
        TypeKind::NamedTuple(name, fields, es) => {
            let types = ctx.type_list(&all(ctx.types(es)));
            ctx.type_of_kind(TypeKind::NamedTuple(name, fields, types))
        }
        _ => ty,
    }
}
