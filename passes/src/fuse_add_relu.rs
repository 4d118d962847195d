//! Fusion of addition and relu: `fuse-add-relu`.
//!
//! `relu(a + b)` becomes `aten::_add_relu`; likewise the in-place and out variants.
//!
//! **Sound when** the sum has no other use; see [patterns](crate::rewrite_patterns) for the conditions of replacing a match.
//!
//! **Not done:** a relu of a sum that was written in place, because the relu would be visible in other references to that tensor.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::rewrite_patterns::{PatternRewriter, Rule, parse_rules};
use frazil_ir::Graph;

/// Declaration of the pass `fuse-add-relu` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "fuse-add-relu",
    summary: "Fuses an addition and the relu after it into aten::_add_relu.",
    before: "graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %s : Tensor = aten::add(%x, %y, %1)
  %r : Tensor = aten::relu(%s)
  return (%r)
",
    after: "graph(%x : Tensor, %y : Tensor):
  %2 : int = prim::Constant[value=1]()
  %r : Tensor = aten::_add_relu(%x, %y, %2)
  return (%r)
",
    options: &[],
    build: |_| AnyPass::graph(FuseAddRelu),
};

const RULES: &str = "
graph(%a, %b, %alpha):
  %sum = aten::add(%a, %b, %alpha)
  %res = aten::relu(%sum)
  return (%res)
=>
graph(%a, %b, %alpha):
  %res = aten::_add_relu(%a, %b, %alpha)
  return (%res)
---
graph(%a, %b, %alpha):
  %sum = aten::add(%a, %b, %alpha)
  %res = aten::relu_(%sum)
  return (%res)
=>
graph(%a, %b, %alpha):
  %res = aten::_add_relu(%a, %b, %alpha)
  return (%res)
---
graph(%a, %b, %alpha):
  %sum = aten::add_(%a, %b, %alpha)
  %res = aten::relu_(%sum)
  return (%res)
=>
graph(%a, %b, %alpha):
  %res = aten::_add_relu_(%a, %b, %alpha)
  return (%res)
---
graph(%a, %b, %alpha, %out):
  %sum = aten::add(%a, %b, %alpha, %out)
  %res = aten::relu_(%sum)
  return (%res)
=>
graph(%a, %b, %alpha, %out):
  %res = aten::_add_relu(%a, %b, %alpha, %out)
  return (%res)
";

/// The pass `fuse-add-relu`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseAddRelu;

impl GraphPass<TorchScript> for FuseAddRelu {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let rules = parse_rules(graph.ctx(), RULES).map_err(|e| PassError::Unsupported(e.to_string()))?;
        // Only sums of two tensors have a fused variant.
        let tensors = |rule: Rule| {
            rule.when(|g, m| {
                let tensor = |name: &str| m.value(name).is_some_and(|v| g.ctx().is_tensor(g.ty(v)));
                tensor("a") && tensor("b")
            })
        };
        let rules = rules.into_iter().map(tensors).collect();
        PatternRewriter { rules }.run(graph, cx)?;
        Ok(())
    }
}
