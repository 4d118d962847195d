//! Recognition of linear layers: `fuse-linear`.
//!
//! `addmm(bias, x, w.t())`, `matmul(x, w.t())` followed by `add_` of a bias, and `matmul(x, w.t())` alone become `aten::linear`; so does a call of
//! `torch.nn.functional.linear` that is not inlined.
//!
//! **Sound when** the factors of the addition are 1 and the second matrix is an `aten::t`; see [patterns](crate::rewrite_patterns) for the conditions
//! of replacing a match.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::rewrite_patterns::{Match, PatternRewriter, Rule, RuleError};
use crate::support::rewrite::{Replacement, rewrite_nodes};
use frazil_ir::{Constant, Context, Graph, NodeId, TypeKind, symbols};
use std::sync::Arc;

/// Declaration of the pass `fuse-linear` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "fuse-linear",
    summary: "Fuses a matmul with transposed weights, and its bias, into aten::linear.",
    before: "graph(%x : Tensor, %w : Tensor):
  %t : Tensor = aten::t(%w)
  %y : Tensor = aten::matmul(%x, %t)
  return (%y)
",
    after: "graph(%x : Tensor, %w : Tensor):
  %5 : Tensor? = prim::Constant()
  %y : Tensor = aten::linear(%x, %w, %5)
  return (%y)
",
    options: &[],
    build: |_| AnyPass::graph(FuseLinear),
};

/// The pass `fuse-linear`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseLinear;

const ADDMM: [&str; 2] = [
    "graph(%input, %weight_t, %bias, %beta : Scalar, %alpha : Scalar):
  %res = aten::addmm(%bias, %input, %weight_t, %beta, %alpha)
  return (%res)",
    "graph(%input, %weight_t, %bias, %beta : Scalar, %alpha : Scalar):
  %weight = aten::t(%weight_t)
  %res = aten::linear(%input, %weight, %bias)
  return (%res)",
];
const MATMUL_ADD: [&str; 2] = [
    "graph(%input, %weight_t, %bias, %alpha : Scalar):
  %output = aten::matmul(%input, %weight_t)
  %res = aten::add_(%output, %bias, %alpha)
  return (%res)",
    "graph(%input, %weight_t, %bias, %alpha : Scalar):
  %weight = aten::t(%weight_t)
  %res = aten::linear(%input, %weight, %bias)
  return (%res)",
];
const MATMUL: [&str; 2] = [
    "graph(%input, %weight_t):
  %output = aten::matmul(%input, %weight_t)
  return (%output)",
    "graph(%input, %weight_t):
  %weight = aten::t(%weight_t)
  %bias : Tensor? = prim::Constant()
  %res = aten::linear(%input, %weight, %bias)
  return (%res)",
];
const TWICE_TRANSPOSED: [&str; 2] = [
    "graph(%input, %weight, %bias):
  %weight_t1 = aten::t(%weight)
  %weight_t2 = aten::t(%weight_t1)
  %res = aten::linear(%input, %weight_t2, %bias)
  return (%res)",
    "graph(%input, %weight, %bias):
  %res = aten::linear(%input, %weight, %bias)
  return (%res)",
];

impl GraphPass<TorchScript> for FuseLinear {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let rules = rules(graph.ctx()).map_err(|e| PassError::Unsupported(e.to_string()))?;
        PatternRewriter { rules }.run(graph, cx)?;
        rewrite_nodes(graph, cx, "patterns replaced", functional_linear);
        Ok(())
    }
}

fn rules(ctx: &Arc<Context>) -> Result<Vec<Rule>, RuleError> {
    let one = |g: &Graph, m: &Match, name: &str| {
        let constant = m.value(name).and_then(|v| g.constant(v));
        constant.and_then(|c| c.as_float()) == Some(1.0)
    };
    let transposed = |g: &Graph, m: &Match| {
        let maker = m.value("weight_t").and_then(|v| g.defining_node(v));
        maker.is_some_and(|n| g.kind_name(n) == "aten::t")
    };
    let rule = |[pattern, replacement]: [&str; 2]| Rule::new(ctx, pattern, replacement);
    Ok(vec![
        rule(ADDMM)?
            .when(move |g, m| transposed(g, m) && one(g, m, "alpha") && one(g, m, "beta"))
            .with_range_of("res"),
        rule(MATMUL_ADD)?
            .when(move |g, m| {
                // A number is not a bias.
                let tensor = m.value("bias").is_some_and(|v| g.ctx().is_tensor(g.ty(v)));
                tensor && transposed(g, m) && one(g, m, "alpha")
            })
            .with_range_of("output"),
        rule(MATMUL)?.when(transposed).with_range_of("output"),
        rule(TWICE_TRANSPOSED)?.with_range_of("res"),
    ])
}

/// Handles a call of the Python function `torch.nn.functional.linear`.
fn functional_linear(graph: &Graph, node: NodeId) -> Option<Replacement> {
    let function = graph.operand(node, 0)?;
    if graph.kind(node) != symbols::PRIM_CALL_FUNCTION || graph.operand_count(node) != 4 {
        return None;
    }
    let name = match (graph.constant(function), graph.ctx().type_kind(graph.ty(function))) {
        (Some(Constant::Function(name)), _) | (_, TypeKind::Function(name)) => name,
        _ => return None,
    };
    let is_linear = graph.ctx().name(name) == "__torch__.torch.nn.functional.linear";
    is_linear.then(|| Replacement::Operator("aten::linear", graph.operands(node).skip(1).collect()))
}
