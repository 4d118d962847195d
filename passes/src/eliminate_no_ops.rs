//! Removal of operators without effect: `eliminate-no-ops`.
//!
//! `detach(x)` in a program that computes no gradients is `x` with another identity, so it is removed where identities are not observed.
//!
//! **Sound when** every user of the result only reads its elements. Such an operator has a schema, neither aliases nor writes that argument, and does not
//! compare identities. Results that are returned, stored, viewed or written stay detached, so that tensors that leave the graph never carry additional
//! gradients.

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::{self, effects};
use frazil_ir::schema::Catalogue;
use frazil_ir::{Graph, ValueId};

/// Declaration of the pass `eliminate-no-ops` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "eliminate-no-ops",
    summary: "Removes `detach` if only the elements of its result are read.",
    before: "graph(%x : Tensor):
  %d : Tensor = aten::detach(%x)
  %y : Tensor = aten::mul(%d, %d)
  return (%y)
",
    after: "graph(%x : Tensor):
  %y : Tensor = aten::mul(%x, %x)
  return (%y)
",
    options: &[],
    build: |_| AnyPass::graph(EliminateNoOps),
};

/// The pass `eliminate-no-ops`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct EliminateNoOps;

impl GraphPass<TorchScript> for EliminateNoOps {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        for node in graph.all_nodes() {
            let (true, Some(input), Some(output)) = (
                graph.kind_name(node) == "aten::detach",
                graph.operand(node, 0),
                graph.output(node),
            ) else {
                continue;
            };
            if only_read(graph, output, cx.operators().catalogue()) && cx.rewrite("operators removed") {
                graph.replace_all_uses_with(output, input);
                graph.erase(node);
            }
        }
        Ok(())
    }
}

/// Returns true if every user of `value` is an operator that only reads the tensor's elements.
fn only_read(graph: &Graph, value: ValueId, catalogue: &Catalogue) -> bool {
    graph.uses(value).all(|u| {
        let identity = matches!(graph.kind_name(u.user), "aten::__is__" | "aten::__isnot__");
        let schema = effects::schema(graph, u.user, catalogue);
        let argument = schema.as_ref().and_then(|s| s.arguments.get(u.index));
        !identity && argument.is_some_and(|a| a.alias.is_none() && graph.ctx().is_tensor(a.ty))
    })
}
