//! In-place activations: `functional-to-inplace-activation`.
//!
//! An activation of a tensor without other uses becomes its in-place variant, which saves a tensor.
//!
//! **Sound when**
//! - the operand is new: its node creates it, in the same block, and nothing shares its memory;
//! - it has no other use;
//! - the in-place variant has the same dtype as the functional one. For activations that promote integers, the types must state that the dtypes are equal.

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::remove_tensor_mutation::is_new;
use crate::support;
use frazil_ir::schema::Catalogue;
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

/// Activation functions: names of the functional operators, and whether they promote integers to floating point.
pub(crate) const ACTIVATIONS: &[(&str, bool)] = &[
    ("aten::sigmoid", true),
    ("aten::tanh", true),
    ("aten::celu", false),
    ("aten::elu", false),
    ("aten::gelu", false),
    ("aten::hardshrink", false),
    ("aten::hardsigmoid", false),
    ("aten::hardswish", false),
    ("aten::hardtanh", false),
    ("aten::leaky_relu", false),
    ("aten::prelu", false),
    ("aten::relu6", false),
    ("aten::relu", false),
    ("aten::rrelu", false),
    ("aten::selu", false),
    ("aten::silu", false),
];

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
    let (name, promotes) = ACTIVATIONS.iter().find(|(n, _)| *n == graph.kind_name(node))?;
    let operand = graph.operand(node, 0)?;
    let dtype = |v: ValueId| match graph.ctx().type_kind(graph.ty(v)) {
        TypeKind::Tensor(ty) => ty.dtype,
        _ => None,
    };
    let (given, made) = (dtype(operand), dtype(graph.output(node)?));
    if *promotes && (given.is_none() || given != made) {
        return None;
    }
    let symbol = graph.ctx().find_symbol(&format!("{name}_"))?;
    let types: Vec<_> = graph.operands(node).map(|v| graph.ty(v)).collect();
    catalogue.resolve_types(symbol, &types).found()?;
    Some((symbol, operand))
}
