//! In-place activations: `functional-to-inplace-activation`.
//!
//! An activation function ([`Properties::activation`](frazil_ir::schema::Properties)) of a tensor without other uses becomes its in-place variant, which saves a tensor.
//!
//! **Sound when**
//! - the operand is new: its node creates it, in the same block, and nothing shares its memory;
//! - it has no other use;
//! - the in-place variant has the same dtype as the functional one. For activations that promote integers, the types must state that the dtypes are equal.

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::remove_tensor_mutation::is_new;
use crate::support;
use frazil_ir::schema::{Activation, Catalogue};
use frazil_ir::{Graph, NodeId, SymbolId, TypeKind, ValueId};

/// Declaration of the pass `functional-to-inplace-activation` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "functional-to-inplace-activation",
    summary: "Makes activations in-place if their operand has no other use.",
    before: "graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  %z : Tensor = aten::relu(%y)
  return (%z)
",
    after: "graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  %z : Tensor = aten::relu_(%y)
  return (%y)
",
    options: &[],
    build: |_| AnyPass::graph(FunctionalToInplaceActivation),
};

/// The pass `functional-to-inplace-activation`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct FunctionalToInplaceActivation;

impl GraphPass<TorchScript> for FunctionalToInplaceActivation {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let db = cx.alias_db(graph);
        let catalogue = cx.operators().catalogue();
        for node in graph.all_nodes() {
            let Some((inplace, operand)) = inplace_form(graph, node, catalogue) else {
                continue;
            };
            let maker = graph.defining_node(operand);
            let same_block = maker.is_some_and(|m| graph.parent(m) == graph.parent(node));
            if !same_block || graph.single_use(operand).is_none() || !is_new(graph, operand, &db, catalogue) {
                continue;
            }
            if !cx.rewrite("activations changed") {
                break;
            }
            graph.set_kind(node, inplace);
            for output in graph.node_outputs(node).to_vec() {
                graph.replace_all_uses_with(output, operand);
            }
        }
        Ok(())
    }
}

/// Returns the in-place variant of the activation `node`, and the tensor that the variant would overwrite.
fn inplace_form(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> Option<(SymbolId, ValueId)> {
    let activation = catalogue.properties(graph.kind(node)).activation?;
    let operand = graph.operand(node, 0)?;
    let dtype = |v: ValueId| match graph.ctx().type_kind(graph.ty(v)) {
        TypeKind::Tensor(ty) => ty.dtype,
        _ => None,
    };
    let (given, made) = (dtype(operand), dtype(graph.output(node)?));
    if activation == Activation::PromotesIntegers && (given.is_none() || given != made) {
        return None;
    }
    let symbol = graph.ctx().find_symbol(&format!("{}_", graph.kind_name(node)))?;
    let types: Vec<_> = graph.operands(node).map(|v| graph.ty(v)).collect();
    catalogue.resolve_types(symbol, &types).found()?;
    Some((symbol, operand))
}
