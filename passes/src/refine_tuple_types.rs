//! Refinement of tuple types by their elements: `refine-tuple-types`.
//!
//! A tuple gets the types of the values that it is built from, where these are more precise than its own type.
//!
//! **Sound** since tuples are immutable. The tuple keeps its name and its fields' names.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use frazil_ir::types::is_subtype;
use frazil_ir::{Graph, NodeId, TypeId, TypeKind, symbols};

/// Declaration of the pass `refine-tuple-types` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "refine-tuple-types",
    summary: "Refines the types of tuples to those of their elements.",
    before: "graph(%x : Float(2), %y : int):
  %t : (Tensor, int) = prim::TupleConstruct(%x, %y)
  return (%t)
",
    after: "graph(%x : Float(2), %y : int):
  %t : (Float(2), int) = prim::TupleConstruct(%x, %y)
  return (%t)
",
    options: &[],
    build: |_| AnyPass::graph(RefineTupleTypes),
};

/// The pass `refine-tuple-types`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct RefineTupleTypes;

impl GraphPass<TorchScript> for RefineTupleTypes {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        // Nested tuples come before the tuples that contain them.
        for node in graph.all_nodes() {
            let Some(ty) = refined(graph, node) else { continue };
            let Some(output) = graph.output(node) else { continue };
            if graph.ty(output) != ty && is_subtype(graph.ctx(), ty, graph.ty(output)) && cx.rewrite("types refined") {
                graph.set_type(output, ty);
            }
        }
        Ok(())
    }
}

fn refined(graph: &Graph, node: NodeId) -> Option<TypeId> {
    if graph.kind(node) != symbols::PRIM_TUPLE_CONSTRUCT {
        return None;
    }
    let ctx = graph.ctx();
    let element_types: Vec<TypeId> = graph.operands(node).map(|v| graph.ty(v)).collect();
    match ctx.type_kind(graph.ty(graph.output(node)?)) {
        TypeKind::Tuple(old) if ctx.types(old).len() == element_types.len() => Some(ctx.tuple_of(&element_types)),
        TypeKind::NamedTuple(name, fields, old) if ctx.types(old).len() == element_types.len() => {
            Some(ctx.type_of_kind(TypeKind::NamedTuple(name, fields, ctx.type_list(&element_types))))
        }
        _ => None,
    }
}
