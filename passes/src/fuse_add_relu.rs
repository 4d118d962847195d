//! Additions with a relu behind them: `fuse-add-relu`.
//!
//! `relu(a + b)` becomes `aten::_add_relu`, and the same in place and with an output.
//!
//! **Sound when** nobody else uses the sum; see [patterns](crate::rewrite_patterns) for when a match is replaced. **Not done** is a relu of a sum that
//! was written in place, since who else holds that tensor would see the relu too.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError};
use crate::registry::PassInfo;
use crate::rewrite_patterns::{PatternRewriter, Rule, parse_rules};
use frazil_ir::Graph;

/// How the pass is named.
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

/// See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseAddRelu;

impl GraphPass for FuseAddRelu {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let rules = parse_rules(graph.ctx(), RULES).map_err(|e| PassError::Unsupported(e.to_string()))?;
        // Only sums of two tensors have a fused form.
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
