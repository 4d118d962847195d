//! Constant folding: nests and views over constants are evaluated at compile time, by the interpreter's own evaluator.

use crate::graph::{TensorGraph, TensorOp};
use crate::ir::TensorIr;
use crate::transform::rewriter::{Rewriter, Transformation};
use frazil_ir::TensorData;
use frazil_pass_manager::{AnyPass, PassInfo};
use frazil_runtime::Tensor;
use frazil_runtime::eval::eval_program;
use frazil_runtime::expr::ExprOp;
use frazil_runtime::import::{Importer, tensor_to_constant};
use frazil_runtime::structured::{Program, Step, Structured, TensorId};
use std::sync::Arc;

/// Results above this many bytes are only folded when their operands are at least a quarter as large.
const SMALL_BYTES: i64 = 1 << 20;
/// Largest number of iterations of a nest for each element of its operands, which bounds the time of folding. A matmul of two square matrices has half
/// as many as their rows.
const MAX_ITERATIONS: i64 = 1024;

/// The declaration of the pass.
pub static INFO: PassInfo<TensorIr> = PassInfo {
    name: "fold-constants",
    summary: "Evaluates tensors that depend on constants only.",
    before: "func @f() {
  %0 = constant float32[2] [1.0, 4.0]
  %1 = nest float32[2] for d0 < 2 {
    x0 = %0[d0]
    v0: float32 = x0
    v1: float32 = sqrt v0
  }
  return %1
}
",
    after: "func @f() {
  %1 = constant float32[2] [1.0, 2.0]
  return %1
}
",
    options: &[],
    build: |_| AnyPass::graph(Transformation(fold_constants)),
};

/// Folds every tensor that depends on constants only: the pass `fold-constants`.
pub fn fold_constants(graph: &mut Rewriter<'_>) {
    for id in graph.live_ids() {
        fold(graph, id);
    }
}

/// Replaces `id` by a constant if it depends on constants only and storing it is worth it.
pub fn fold(graph: &mut Rewriter<'_>, id: TensorId) {
    if let Some(folded) = folded(graph, id)
        && let Some(graph) = graph.rewrite("tensors folded")
    {
        graph.set_op(id, TensorOp::Constant(folded));
    }
}

/// Returns the constant that replaces `id`, if it depends on constants only and storing it is worth it.
fn folded(graph: &TensorGraph, id: TensorId) -> Option<Arc<TensorData>> {
    // A constant has its elements for the representatives only.
    if graph.extents(id).is_some() {
        return None;
    }
    let node = graph.node(id);
    let iterations = match &node.op {
        TensorOp::Nest(s) if !is_fill(s) => s.domain.iter().fold(1i64, |product, &n| product.saturating_mul(n)),
        TensorOp::View(_) | TensorOp::Gather(_) => 0,
        _ => return None,
    };
    let operands: Vec<TensorId> = graph.operands(id).into_iter().collect();
    let constants: Option<Vec<&Arc<TensorData>>> = operands.iter().map(|&t| graph.as_constant(t)).collect();
    let constants = constants?;
    let size = |numel: i64, size: usize| numel.saturating_mul(size as i64);
    let read: i64 = constants.iter().map(|c| size(c.numel(), c.dtype.size())).sum();
    let made = size(node.shape.numel(), node.shape.dtype.size());
    let elements: i64 = constants.iter().map(|c| c.numel()).sum();
    let is_short = iterations <= node.shape.numel().max(elements.saturating_mul(MAX_ITERATIONS));
    let is_worth_it = is_short && made <= SMALL_BYTES.max(read.saturating_mul(4));
    let step = match &node.op {
        _ if !is_worth_it => return None,
        TensorOp::Nest(s) => Step::Compute(s.clone()),
        TensorOp::View(v) => Step::View(v.clone()),
        TensorOp::Gather(g) => Step::Gather(g.clone()),
        _ => return None,
    };
    evaluate(graph, step, &operands, &constants)
}

/// Returns whether all elements of the result equal one number. It is cheaper to compute such a tensor where it is read than to store it.
fn is_fill(s: &Structured) -> bool {
    s.inputs.is_empty() && s.body.nodes().iter().all(|n| !matches!(n.op, ExprOp::Index(_)))
}

fn evaluate(
    graph: &TensorGraph,
    mut step: Step,
    operands: &[TensorId],
    constants: &[&Arc<TensorData>],
) -> Option<Arc<TensorData>> {
    let number = |t: &mut TensorId| {
        *t = TensorId::new(operands.iter().position(|o| o == t).unwrap_or(0));
    };
    match &mut step {
        Step::Compute(s) => s
            .inputs
            .iter_mut()
            .chain(&mut s.finish_inputs)
            .for_each(|a| number(&mut a.tensor)),
        Step::View(v) => number(&mut v.tensor),
        Step::Gather(g) => g.operands_mut().for_each(number),
    }
    let program = Program {
        arguments: operands.iter().map(|&t| graph.shape(t).clone()).collect(),
        steps: vec![step],
        outputs: smallvec::smallvec![TensorId::new(operands.len())],
    };
    let mut importer = Importer::new();
    let tensors: Option<Vec<Tensor>> = constants.iter().map(|c| Some(importer.tensor(c).ok()?.get())).collect();
    let result = eval_program(&program, &tensors?).ok()?;
    tensor_to_constant(result.first()?).ok()
}
