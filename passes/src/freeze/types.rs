//! Narrowing of types after inlining.
//!
//! A parameter with an optional or union type is often called with a value of a narrower type. Tests of its type are folded here. Tuples, branches and unpacked
//! values lose an unnecessary `Optional`, so that later passes can fold tests for None. The reader of archives infers the same types, so that freezing a module
//! again after loading changes nothing.
//!
//! **Sound** since a value has its static type in every run.

use crate::support;
use crate::support::constants::insert_constant;
use frazil_ir::types::is_subtype;
use frazil_ir::{AttributeValue, Constant, Context, Graph, NodeId, TypeId, TypeKind, symbols, types};
use std::convert::Infallible;

/// Maximum nesting depth to which types are compared.
const MAX_DEPTH: usize = 16;

/// Maximum number of iterations. Narrowing the type of a value may narrow the types of its users.
const MAX_TURNS: usize = 16;

/// Narrows the types of all values in the graph, and in the graphs that it forks.
pub(super) fn settle(graph: &mut Graph) {
    let _: Result<(), Infallible> = support::for_each_subgraph(graph, |inner| {
        settle(inner);
        Ok(())
    });
    for _ in 0..MAX_TURNS {
        let revision = graph.revision();
        // Results of branches need the types inside first.
        for node in graph.all_nodes().into_iter().rev() {
            settle_node(graph, node);
        }
        if graph.revision() == revision {
            break;
        }
    }
}

fn settle_node(graph: &mut Graph, node: NodeId) {
    match graph.kind(node) {
        symbols::PRIM_ISINSTANCE => decide(graph, node),
        symbols::PRIM_TUPLE_CONSTRUCT => {
            let elements: Vec<TypeId> = graph.operands(node).map(|v| graph.ty(v)).collect();
            let built = graph.ctx().tuple_of(&elements);
            narrow_output(graph, node, 0, &[built]);
        }
        symbols::PRIM_TUPLE_UNPACK => {
            let tuple = graph.operand(node, 0).map(|v| graph.ctx().type_kind(graph.ty(v)));
            let Some(TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements)) = tuple else {
                return;
            };
            let elements = graph.ctx().types(elements).to_vec();
            for (i, element) in elements.into_iter().enumerate() {
                narrow_output(graph, node, i, &[element]);
            }
        }
        symbols::PRIM_IF => {
            for i in 0..graph.node_outputs(node).len() {
                let results = graph.node_blocks(node).iter().filter_map(|b| graph.results(*b).nth(i));
                let given: Vec<TypeId> = results.map(|v| graph.ty(v)).collect();
                narrow_output(graph, node, i, &given);
            }
        }
        _ => {}
    }
}

/// Folds a type test (`isinstance`) whose result follows from the static type of its operand.
fn decide(graph: &mut Graph, node: NodeId) {
    let (Some(value), Some(output)) = (graph.operand(node, 0), graph.output(node)) else {
        return;
    };
    let wanted = graph.attributes(node).iter().find_map(|a| match &a.value {
        AttributeValue::Types(types) => Some(types.clone()),
        _ => None,
    });
    let ctx = graph.ctx();
    if wanted.is_some_and(|types| types.iter().any(|ty| is_subtype(ctx, graph.ty(value), *ty))) {
        let yes = insert_constant(graph, node, Constant::Bool(true), types::BOOL);
        graph.replace_all_uses_with(output, yes);
        graph.erase(node);
    }
}

/// Narrows the type of output `index` to the common type of the values that it may have, if that is narrower.
fn narrow_output(graph: &mut Graph, node: NodeId, index: usize, given: &[TypeId]) {
    let Some(&output) = graph.node_outputs(node).get(index) else {
        return;
    };
    let old = graph.ty(output);
    let mut narrowed = given.iter().map(|ty| narrow(graph.ctx(), old, *ty, 0));
    let Some(new) = narrowed.next().filter(|first| narrowed.all(|other| other == *first)) else {
        return;
    };
    if new != old {
        graph.set_type(output, new);
    }
}

/// Returns `old` without the optionals that values of type `given` do not need.
fn narrow(ctx: &Context, old: TypeId, given: TypeId, depth: usize) -> TypeId {
    if depth > MAX_DEPTH || old == given {
        return old;
    }
    match (ctx.type_kind(old), ctx.type_kind(given)) {
        (TypeKind::Optional(_), TypeKind::Optional(_)) => old,
        (TypeKind::Optional(element), _) if is_subtype(ctx, given, element) => narrow(ctx, element, given, depth + 1),
        (TypeKind::Tuple(olds), TypeKind::Tuple(givens)) => {
            let (olds, givens) = (ctx.types(olds), ctx.types(givens));
            if olds.len() != givens.len() {
                return old;
            }
            let elements = olds.iter().zip(givens).map(|(o, g)| narrow(ctx, *o, *g, depth + 1));
            ctx.tuple_of(&elements.collect::<Vec<_>>())
        }
        _ => old,
    }
}
