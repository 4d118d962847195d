//! Transposition of the weights of linears: `transpose-frozen-linear`.
//!
//! `linear(x, w, b)` becomes `matmul(x, wᵀ) + b`, with a contiguous `wᵀ` that is computed here instead of in every call.
//!
//! **Sound when**
//! - weight and bias are constants that are not written;
//! - the weight has two dimensions;
//! - the bias has one, and the weight's dtype, so that the addition changes neither rank nor dtype.
//!
//! PyTorch does not check the weight's rank, and fails on a vector.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::constants::insert_constant;
use crate::support::{self, fold};
use frazil_ir::{Builder, Constant, Graph, TensorData, types};
use std::sync::Arc;

/// Declaration of the pass `transpose-frozen-linear` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "transpose-frozen-linear",
    summary: "Replaces linears with constant weights by matmuls with transposed weights.",
    before: "%y = aten::linear(%x, %self.fc.weight, %self.fc.bias)",
    after: "%p = aten::matmul(%x, %self.fc.weight_transposed)\n%y = aten::add(%p, %self.fc.bias, %one)",
    options: &[],
    build: |_| AnyPass::graph(TransposeFrozenLinear),
};

/// The pass `transpose-frozen-linear`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct TransposeFrozenLinear;

impl GraphPass<TorchScript> for TransposeFrozenLinear {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        fold::each(graph, cx, "linears transposed", &["aten::linear"], |graph, node, db| {
            let layer = fold::Layer::linear(graph, node, db)?;
            let (x, weight, bias) = (
                graph.operand(node, 0)?,
                graph.operand(node, 1)?,
                graph.operand(node, 2)?,
            );
            let (data, ty) = (transpose(&layer.weight)?, graph.ty(weight));
            let new = insert_constant(graph, node, Constant::Tensor(Arc::new(data)), ty);
            if let Some(name) = fold::name_of(graph, weight) {
                graph.name_value(new, &format!("{name}_transposed"));
            }
            let (matmul, add) = (graph.ctx().symbol("aten::matmul"), graph.ctx().symbol("aten::add"));
            let output = graph.output(node)?;
            let ty = graph.ty(output);
            let mut builder = Builder::before(graph, node);
            let result = if layer.bias.is_some() {
                let product = builder.op(matmul, &[x, new], types::TENSOR);
                let one = builder.constant(1);
                builder.op(add, &[product, bias, one], ty)
            } else {
                builder.op(matmul, &[x, new], ty)
            };
            graph.replace_all_uses_with(output, result);
            graph.erase(node);
            Some(())
        });
        Ok(())
    }
}

/// Returns the transposed matrix, in row-major order.
fn transpose(matrix: &TensorData) -> Option<TensorData> {
    let [rows, columns] = [0, 1].map(|d| matrix.sizes.get(d).and_then(|s| usize::try_from(*s).ok()));
    let (rows, columns, size) = (rows?, columns?, matrix.dtype.size());
    let bytes = matrix.to_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    for column in 0..columns {
        for row in 0..rows {
            let at = (row * columns + column) * size;
            out.extend_from_slice(bytes.get(at..at + size)?);
        }
    }
    TensorData::contiguous(matrix.dtype, &[columns as i64, rows as i64], out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::DType;

    #[test]
    fn rows_become_columns() {
        let matrix = TensorData::contiguous(DType::Byte, &[2, 3], vec![1, 2, 3, 4, 5, 6]).unwrap();
        let t = transpose(&matrix).unwrap();
        assert_eq!(
            (t.sizes.as_slice(), t.to_bytes().to_vec()),
            (&[3, 2][..], vec![1, 4, 2, 5, 3, 6])
        );
    }
}
