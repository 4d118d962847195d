//! Loops that start with tensors of known elements, such as zeros.
//!
//! In an unrolled loop, everything that the first iteration computes from such tensors alone is computed at compile time, by the interpreter. In a rolled loop,
//! code computes it. The results must be the same bits. That is certain for operations that IEEE 754 defines, and for sums of products with zeros; other sums
//! depend on the order of the terms, and functions such as `exp` on the implementation.

use frazil_runtime::expr::{BinaryOp, Expr, ExprOp, UnaryOp};
use frazil_runtime::structured::{Combine, Structured, TensorId};
use frazil_tensor_ir::graph::{TensorGraph, TensorOp};
use rustc_hash::{FxHashMap, FxHashSet};

/// Returns whether code computes the same bits as the interpreter from the inputs `known` of an iteration, all of whose tensors have ids from `begin` on. The
/// values of `known` state which inputs are zeros.
pub(super) fn is_computed_alike(graph: &TensorGraph, begin: usize, known: &FxHashMap<TensorId, bool>) -> bool {
    // Tensors that the first iteration of an unrolled loop computes at compile time, but that depend on `known`.
    let mut folded: FxHashSet<TensorId> = known.keys().copied().collect();
    let mut zeros: FxHashSet<TensorId> = known
        .iter()
        .filter(|(_, is_zero)| **is_zero)
        .map(|(id, _)| *id)
        .collect();
    let mut constants: FxHashSet<TensorId> = FxHashSet::default();
    for id in graph.ids() {
        let operands = graph.operands(id);
        let is_constant = |id: &TensorId| constants.contains(id);
        match graph.op(id) {
            TensorOp::Constant(_) => {
                constants.insert(id);
            }
            _ if id.index() < begin => {}
            TensorOp::Input(_) => {}
            _ if operands.iter().all(is_constant) => {
                constants.insert(id);
            }
            _ if !operands.iter().all(|o| is_constant(o) || folded.contains(o)) => {}
            TensorOp::View(view) => {
                folded.insert(id);
                if zeros.contains(&view.tensor) {
                    zeros.insert(id);
                }
            }
            TensorOp::Nest(nest) if is_exact(nest, &zeros) => {
                folded.insert(id);
            }
            TensorOp::Gather(_) => {
                folded.insert(id);
            }
            TensorOp::Nest(_) | TensorOp::Call(_) | TensorOp::CallResult { .. } => return false,
        }
    }
    true
}

/// Returns whether the result of a nest does not depend on how it is computed.
fn is_exact(nest: &Structured, zeros: &FxHashSet<TensorId>) -> bool {
    let finish = nest.finish.as_ref().is_none_or(is_exact_expression);
    let body = match nest.combine {
        None => is_exact_expression(&nest.body),
        // Terms that are products with a zero.
        Some(Combine::Add) => {
            let is_factor = |op: &ExprOp| {
                matches!(
                    op,
                    ExprOp::Input(_) | ExprOp::Binary(BinaryOp::Mul, ..) | ExprOp::Cast(_)
                )
            };
            nest.body.nodes().iter().all(|node| is_factor(&node.op))
                && nest.inputs.iter().any(|access| zeros.contains(&access.tensor))
        }
        Some(_) => false,
    };
    finish && body
}

/// Returns whether an expression has only operations whose results are defined to the last bit.
fn is_exact_expression(expression: &Expr) -> bool {
    expression.nodes().iter().all(|node| match node.op {
        ExprOp::Input(_)
        | ExprOp::Const(_)
        | ExprOp::Fma(..)
        | ExprOp::Select(..)
        | ExprOp::Cast(_)
        | ExprOp::Index(_) => true,
        ExprOp::Unary(op, _) => matches!(
            op,
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Sqrt
        ),
        ExprOp::Binary(op, ..) => matches!(
            op,
            BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::Div
                | BinaryOp::Maximum
                | BinaryOp::Minimum
                | BinaryOp::And
                | BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge
        ),
    })
}
