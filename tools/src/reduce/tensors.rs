//! Reduction of a graph of the tensor IR.

use super::{Candidate, Reducer};
use frazil_ir::TensorData;
use frazil_runtime::expr::{Expr, ExprId, ExprOp};
use frazil_runtime::structured::{TensorId, TensorShape};
use frazil_tensor_ir::transform::simplify::{merge_equal_reads, remap};
use frazil_tensor_ir::verify::verify;
use frazil_tensor_ir::{TensorGraph, TensorOp};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Largest number of elements of a constant that replaces an operation. The text contains them.
const MAX_ELEMENTS: i64 = 64;

impl Candidate for TensorGraph {
    fn round(reducer: &mut Reducer<'_, TensorGraph>, best: &mut TensorGraph) {
        let outputs = |g: &TensorGraph| (0..g.outputs().len()).rev().collect();
        reducer.each(best, &outputs, &drop_output);
        reducer.each(best, &operands_of_outputs, &output_operand);
        reducer.each(best, &computed, &cut);
        reducer.each(best, &computed, &bypass);
        reducer.each(best, &operations, &zeros);
        reducer.each(best, &epilogues, &drop_epilogue);
        reducer.each(best, &body_prefixes, &shorten_body);
        reducer.each(best, &body_operations, &drop_body_operation);
        reducer.each(best, &described, &drop_origins);
    }

    /// Removes dead tensors and unused inputs.
    fn prune(&mut self) {
        let (mut pruned, _) = self.subgraph(&BTreeSet::new(), self.outputs());
        pruned.set_checks(self.checks().to_vec());
        *self = pruned;
    }

    fn is_valid(&self) -> bool {
        verify(self).is_empty()
    }
}

/// Returns the live tensors that are not inputs, in topological order.
fn computed(graph: &TensorGraph) -> Vec<TensorId> {
    let mut ids = graph.live_ids();
    ids.retain(|&id| !matches!(graph.op(id), TensorOp::Input(_)));
    ids
}

/// Returns the live tensors that depend on other tensors.
fn operations(graph: &TensorGraph) -> Vec<TensorId> {
    let mut ids = graph.live_ids();
    ids.retain(|&id| !matches!(graph.op(id), TensorOp::Input(_) | TensorOp::Constant(_)));
    ids
}

/// Removes an output, with its message if it is a check.
fn drop_output(graph: &mut TensorGraph, index: &usize) -> bool {
    let (mut outputs, mut checks) = (graph.outputs().to_vec(), graph.checks().to_vec());
    let results = outputs.len().saturating_sub(checks.len());
    if *index >= outputs.len() {
        return false;
    }
    outputs.remove(*index);
    if let Some(check) = index.checked_sub(results) {
        checks.remove(check);
    }
    graph.set_outputs(&outputs);
    graph.set_checks(checks);
    true
}

/// Returns the operands of each output, with the index of the output.
fn operands_of_outputs(graph: &TensorGraph) -> Vec<(usize, TensorId)> {
    let outputs = graph.outputs().iter().enumerate();
    let operands = outputs.flat_map(|(index, &id)| {
        graph
            .operands(id)
            .into_iter()
            .rev()
            .map(move |operand| (index, operand))
    });
    operands.collect()
}

/// Replaces an output by one of its operands, which may have another shape.
fn output_operand(graph: &mut TensorGraph, (index, operand): &(usize, TensorId)) -> bool {
    let mut outputs = graph.outputs().to_vec();
    let Some(output) = outputs
        .get_mut(*index)
        .filter(|output| graph.operands(**output).contains(operand))
    else {
        return false;
    };
    *output = *operand;
    let checks = graph.checks().to_vec();
    graph.set_outputs(&outputs);
    graph.set_checks(checks);
    true
}

/// Makes a tensor an input, so that its operands are no longer needed.
fn cut(graph: &mut TensorGraph, id: &TensorId) -> bool {
    // A result of a call is not one without the call, which is cut with all of its results.
    let is_call = matches!(graph.op(*id), TensorOp::Call(_));
    if is_call || !graph.is_live(*id) {
        return false;
    }
    graph.set_input(*id);
    true
}

/// Replaces the uses of a tensor by an operand of the same shape, the last one if there are several, or by an earlier input.
fn bypass(graph: &mut TensorGraph, id: &TensorId) -> bool {
    let shape = graph.shape(*id).clone();
    let operands = graph.operands(*id).into_iter().rev();
    let inputs = graph.inputs().iter().copied().filter(|input| input < id);
    let Some(other) = operands.chain(inputs).find(|&other| *graph.shape(other) == shape) else {
        return false;
    };
    let is_used = graph.is_live(*id);
    graph.replace_uses(*id, other);
    is_used
}

/// Replaces an operation by a constant with elements zero.
fn zeros(graph: &mut TensorGraph, id: &TensorId) -> bool {
    let TensorShape { dtype, sizes } = graph.shape(*id);
    let numel = graph.shape(*id).numel();
    if numel > MAX_ELEMENTS || matches!(graph.op(*id), TensorOp::Call(_)) {
        return false;
    }
    let bytes = vec![0; numel.unsigned_abs() as usize * dtype.size()];
    let Ok(data) = TensorData::contiguous(*dtype, sizes, bytes) else {
        return false;
    };
    graph.set_op(*id, TensorOp::Constant(Arc::new(data)));
    true
}

/// Returns the loop nests with an epilogue.
fn epilogues(graph: &TensorGraph) -> Vec<TensorId> {
    let mut ids = graph.live_ids();
    ids.retain(|&id| graph.as_nest(id).is_some_and(|nest| nest.finish.is_some()));
    ids
}

fn drop_epilogue(graph: &mut TensorGraph, id: &TensorId) -> bool {
    let Some(mut nest) = graph.as_nest(*id).cloned() else {
        return false;
    };
    nest.finish_inputs.clear();
    let changed = nest.finish.take().is_some();
    graph.set_op(*id, TensorOp::Nest(Box::new(nest)));
    changed
}

/// Returns the operations of loop nests that could be the last one of their body by their dtype, shortest bodies first.
fn body_prefixes(graph: &TensorGraph) -> Vec<(TensorId, u32)> {
    let mut found = Vec::new();
    for id in graph.live_ids() {
        let Some(nest) = graph.as_nest(id) else { continue };
        let nodes = nest.body.nodes();
        let last = nodes.len().saturating_sub(1);
        let fits = |at: &usize| Some(nodes[*at].dtype) == nest.body.dtype();
        found.extend((0..last).filter(fits).map(|at| (id, at as u32)));
    }
    found.sort_by_key(|(_, at)| *at);
    found
}

/// Removes the operations of a body after operation `at`, and the reads that are no longer used.
fn shorten_body(graph: &mut TensorGraph, (id, at): &(TensorId, u32)) -> bool {
    let Some(mut nest) = graph.as_nest(*id).cloned() else {
        return false;
    };
    let is_shorter = (*at as usize) + 1 < nest.body.nodes().len();
    if is_shorter {
        nest.body = nest.body.finish(*at);
        merge_equal_reads(&mut nest);
        graph.set_op(*id, TensorOp::Nest(Box::new(nest)));
    }
    is_shorter
}

/// Returns the operations of bodies with an operand of their dtype, the last ones first.
fn body_operations(graph: &TensorGraph) -> Vec<(TensorId, u32)> {
    let mut found = Vec::new();
    for id in graph.live_ids() {
        let Some(nest) = graph.as_nest(id) else { continue };
        let operations = 0..nest.body.nodes().len() as u32;
        found.extend(
            operations
                .filter(|&at| alike_operand(&nest.body, at).is_some())
                .map(|at| (id, at)),
        );
    }
    found.sort_by_key(|(_, at)| std::cmp::Reverse(*at));
    found
}

/// Returns the operands of a scalar operation.
fn scalar_operands(op: ExprOp) -> Vec<ExprId> {
    match op {
        ExprOp::Input(_) | ExprOp::Const(_) | ExprOp::Index(_) => Vec::new(),
        ExprOp::Cast(a) | ExprOp::Unary(_, a) => vec![a],
        ExprOp::Binary(_, a, b) => vec![a, b],
        ExprOp::Fma(a, b, c) | ExprOp::Select(a, b, c) => vec![a, b, c],
    }
}

/// Returns an operand of operation `at` with its dtype.
fn alike_operand(body: &Expr, at: ExprId) -> Option<ExprId> {
    let node = body.nodes().get(at as usize)?;
    let mut operands = scalar_operands(node.op).into_iter();
    operands.find(|&operand| body.node(operand).dtype == node.dtype)
}

/// Replaces operation `at` of a body by its operand, and removes what is no longer used.
fn drop_body_operation(graph: &mut TensorGraph, (id, at): &(TensorId, u32)) -> bool {
    let Some(mut nest) = graph.as_nest(*id).cloned() else {
        return false;
    };
    let Some(instead) = alike_operand(&nest.body, *at) else {
        return false;
    };
    let nodes = nest.body.nodes();
    let replaced = |operand: ExprId| if operand == *at { instead } else { operand };
    let result = replaced(nodes.len() as u32 - 1);
    let mut is_used = vec![false; nodes.len()];
    is_used[result as usize] = true;
    for (number, node) in nodes.iter().enumerate().rev() {
        if is_used[number] {
            let operands = scalar_operands(node.op).into_iter().map(replaced);
            operands.for_each(|operand| is_used[operand as usize] = true);
        }
    }
    let mut body = Expr::new();
    let mut ids = vec![0; nodes.len()];
    for (number, node) in nodes.iter().enumerate().filter(|(number, _)| is_used[*number]) {
        let renamed: Vec<ExprId> = (0..nodes.len() as u32).map(|old| ids[replaced(old) as usize]).collect();
        ids[number] = body.push(remap(node.op, &renamed), node.dtype);
    }
    nest.body = body.finish(ids[result as usize]);
    merge_equal_reads(&mut nest);
    graph.set_op(*id, TensorOp::Nest(Box::new(nest)));
    true
}

/// Returns the tensors with the operators that they were computed by.
fn described(graph: &TensorGraph) -> Vec<TensorId> {
    let mut ids = graph.live_ids();
    ids.retain(|&id| !graph.node(id).origins.is_empty());
    ids
}

fn drop_origins(graph: &mut TensorGraph, id: &TensorId) -> bool {
    let changed = !graph.node(*id).origins.is_empty();
    graph.set_origins(*id, Vec::new());
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_runtime::expr::{ExprNode, UnaryOp};
    use frazil_tensor_ir::text::{parse, print};

    /// A chain of 40 elementwise operations with a matmul in its middle.
    fn chain() -> String {
        let mut text = "func @f(%0: float32[4, 4], %1: float32[4, 4]) {\n".to_owned();
        for i in 2..42 {
            let before = i - 1;
            text += &match i {
                20 => format!(
                    "%{i} = nest float32[4, 4] for d0 < 4, d1 < 4 reduce d2 < 4 {{ x0 = %{before}[d0, d2] x1 = %1[d2, d1] v0: float32 = x0 \
                     v1: float32 = x1 v2: float32 = mul v0, v1 combine add float32 epilogue w0: float32 = acc w1: float32 = exp w0 }}\n"
                ),
                _ => format!(
                    "%{i} = nest float32[4, 4] for d0 < 4, d1 < 4 {{ x0 = %{before}[d0, d1] x1 = %0[d1, d0] v0: float32 = x0 \
                     v1: float32 = x1 v2: float32 = add v0, v1 v3: float32 = neg v2 v4: float32 = sin v3 v5: float32 = mul v4, v1 }} from \"aten::add\"\n"
                ),
            };
        }
        text + "return %41, %30 }"
    }

    /// The number of loop nests with a combiner.
    fn reductions(graph: &TensorGraph) -> usize {
        let ids = graph.live_ids().into_iter();
        ids.filter_map(|id| graph.as_nest(id))
            .filter(|nest| nest.combine.is_some())
            .count()
    }

    #[test]
    fn only_the_operation_that_matters_remains() {
        let graph = parse(&chain()).unwrap().graph;
        let mut runs = 0;
        let mut test = |graph: &TensorGraph| {
            assert_eq!(verify(graph), []);
            runs += 1;
            reductions(graph) == 1
        };
        let small = Reducer::new(&mut test, 10_000).reduce(&graph);
        assert_eq!(small.runs, runs);
        assert!(runs < 100, "{runs}");
        let expected = "func @f(%0: float32[4, 4]) {
  %1 = nest float32[4, 4] for d0 < 4, d1 < 4 reduce d2 < 4 {
    x0 = %0[d0, d2]
    v0: float32 = x0
    combine add float32
  }
  return %1
}
";
        assert_eq!(print("f", &small.smallest), expected);
    }

    #[test]
    fn bodies_lose_operations_before_and_after_the_one_that_matters() {
        let graph = parse(&chain()).unwrap().graph;
        let is_sine = |node: &ExprNode| matches!(node.op, ExprOp::Unary(UnaryOp::Sin, _));
        let mut test = |graph: &TensorGraph| {
            assert_eq!(verify(graph), []);
            let mut nests = graph.live_ids().into_iter().filter_map(|id| graph.as_nest(id));
            nests.any(|nest| nest.body.nodes().iter().any(is_sine))
        };
        let small = Reducer::new(&mut test, 10_000).reduce(&graph).smallest;
        let expected = "func @f(%0: float32[4, 4]) {
  %1 = nest float32[4, 4] for d0 < 4, d1 < 4 {
    x0 = %0[d0, d1]
    v0: float32 = x0
    v1: float32 = sin v0
  }
  return %1
}
";
        assert_eq!(print("f", &small), expected);
    }

    #[test]
    fn constants_stay_if_the_test_needs_them() {
        let text = "func @f(%0: float32[2]) {
  %1 = constant float32[2] [1.0, 2.0]
  %2 = nest float32[2] for d0 < 2 { x0 = %0[d0] v0: float32 = x0 v1: float32 = neg v0 }
  %3 = nest float32[2] for d0 < 2 { x0 = %1[d0] x1 = %2[d0] v0: float32 = x0 v1: float32 = x1 v2: float32 = mul v0, v1 }
  check %4 \"no\"
  return %3
}";
        let text = text.replace("  check", "  %4 = constant bool[] [0]\n  check");
        let graph = parse(&text).unwrap().graph;
        // All operands of a nest that multiplies are constants.
        let mut test = |graph: &TensorGraph| {
            let ids = graph.live_ids().into_iter();
            let mut products = ids.filter(|&id| graph.as_nest(id).is_some_and(|nest| nest.inputs.len() == 2));
            products.any(|id| graph.operands(id).iter().all(|&t| graph.as_constant(t).is_some()))
        };
        let mut constant = graph.clone();
        zeros(&mut constant, &TensorId::new(2));
        let small = Reducer::new(&mut test, 10_000).reduce(&constant).smallest;
        assert!(small.inputs().is_empty() && small.checks().is_empty());
        assert_eq!(operations(&small).len(), 1, "{}", print("f", &small));
    }
}
