//! One name for each operator: `normalize-ops`.
//!
//! Operators that are other names of one another get the one that the other passes know: `aten::absolute` is `aten::abs`, in place too. `rsub(a, b)` is
//! `b - a`, and `a is b` of truth values is `a == b`.
//!
//! **Sound when** the operator of the new name has an overload that takes these operands; without one the node stays.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError};
use crate::registry::PassInfo;
use crate::support;
use frazil_ir::schema::Catalogue;
use frazil_ir::{Graph, NodeId, SymbolId, TypeId, types};

/// How the pass is named.
pub static INFO: PassInfo = PassInfo {
    name: "normalize-ops",
    summary: "Replaces aliases of operators by one name.",
    before: "graph(%x : Tensor):
  %y : Tensor = aten::absolute(%x)
  return (%y)
",
    after: "graph(%x : Tensor):
  %y : Tensor = aten::abs(%x)
  return (%y)
",
    options: &[],
    build: |_| AnyPass::graph(NormalizeOps),
};

/// Other names, and the name; both without `aten::`.
const ALIASES: &[(&str, &str)] = &[
    ("absolute", "abs"),
    ("clip", "clamp"),
    ("det", "linalg_det"),
    ("matrix_power", "linalg_matrix_power"),
    ("matrix_exp", "linalg_matrix_exp"),
    ("ger", "outer"),
    ("arccos", "acos"),
    ("arcsin", "asin"),
    ("arctan", "atan"),
    ("arctan2", "atan2"),
    ("arccosh", "acosh"),
    ("arcsinh", "asinh"),
    ("arctanh", "atanh"),
    ("fix", "trunc"),
    ("negative", "neg"),
    ("subtract", "sub"),
    ("greater_equal", "ge"),
    ("greater", "gt"),
    ("less_equal", "le"),
    ("less", "lt"),
    ("not_equal", "ne"),
    ("divide", "div"),
    ("multiply", "mul"),
    ("linalg_matmul", "matmul"),
    ("inverse", "linalg_inv"),
    ("true_divide", "div"),
    ("concat", "cat"),
    ("concatenate", "cat"),
    ("row_stack", "vstack"),
    ("swapdims", "transpose"),
    ("swapaxes", "transpose"),
    ("moveaxis", "movedim"),
    ("special_erf", "erf"),
    ("special_erfc", "erfc"),
    ("special_erfinv", "erfinv"),
    ("special_expit", "sigmoid"),
    ("special_exp2", "exp2"),
    ("special_expm1", "expm1"),
    ("special_logit", "logit"),
    ("special_logsumexp", "logsumexp"),
    ("special_round", "round"),
    ("special_log1p", "log1p"),
    ("special_sinc", "sinc"),
    ("special_digamma", "digamma"),
    ("special_psi", "digamma"),
    ("special_i0", "i0"),
    ("special_xlogy", "xlogy"),
    ("special_log_softmax", "log_softmax"),
    ("orgqr", "linalg_householder_product"),
    ("special_multigammaln", "mvlgamma"),
    ("special_polygamma", "polygamma"),
    ("special_softmax", "softmax"),
    ("special_gammainc", "igamma"),
    ("special_gammaincc", "igammac"),
    ("special_gammaln", "lgamma"),
];

/// See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct NormalizeOps;

impl GraphPass for NormalizeOps {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        for node in graph.all_nodes() {
            let Some((kind, swap)) = normal_form(graph, node, cx.operators.catalogue()) else {
                continue;
            };
            if !cx.rewrite("operators renamed") {
                break;
            }
            if swap {
                let mut operands: Vec<_> = graph.operands(node).collect();
                operands.swap(0, 1);
                graph.set_operands(node, &operands);
            }
            graph.set_kind(node, kind);
        }
        Ok(())
    }
}

/// The kind that `node` should have, and whether its first two operands change places.
fn normal_form(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> Option<(SymbolId, bool)> {
    let ctx = graph.ctx();
    let name = graph.kind_name(node).strip_prefix("aten::")?;
    let mut operand_types: Vec<TypeId> = graph.operands(node).map(|v| graph.ty(v)).collect();
    let truth_values = operand_types == [types::BOOL, types::BOOL];
    let (new, swap) = match name {
        "__is__" if truth_values => ("eq".to_owned(), false),
        "__isnot__" if truth_values => ("ne".to_owned(), false),
        "rsub" if operand_types.get(1).is_some_and(|ty| ctx.is_tensor(*ty)) => ("sub".to_owned(), true),
        _ => {
            let functional = name.strip_suffix('_').unwrap_or(name);
            let (_, new) = ALIASES.iter().find(|(other, _)| *other == functional)?;
            let suffix = if functional == name { "" } else { "_" };
            (format!("{new}{suffix}"), false)
        }
    };
    if swap {
        operand_types.swap(0, 1);
    }
    let kind = ctx.symbol(&format!("aten::{new}"));
    catalogue.resolve_types(kind, &operand_types).found()?;
    Some((kind, swap))
}
