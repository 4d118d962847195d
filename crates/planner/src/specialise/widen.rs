//! Contractions of f16 and bf16 as contractions of f32.
//!
//! PyTorch adds products of f16 and bf16 in f32 and rounds the sum once. So such a contraction is replaced by one of f32, whose operands are converted before
//! and whose result is rounded after. Constants are converted at compile time, and other conversions are fused into adjacent nests if possible. The kernels
//! for f32 serve all three dtypes.

use super::state::Specialiser;
use frazil_ir::DType;
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp};
use frazil_runtime::structured::{Access, Combine, Structured, TensorId};
use frazil_tensor_ir::graph::Origin;
use frazil_tensor_ir::transform::simplify::remap;

impl Specialiser<'_> {
    /// Appends a nest. A contraction of f16 or bf16 is appended as one of f32.
    pub(super) fn compute(&mut self, s: Structured, origins: &[Origin]) -> TensorId {
        let wide = of_floats(&s).filter(|s| self.reads_often(s));
        let Some(mut wide) = wide else {
            return self.nest(s, origins);
        };
        for access in wide.inputs.iter_mut().chain(&mut wide.finish_inputs) {
            if is_half(self.tensors.shape(access.tensor).dtype) {
                access.tensor = self.converted(access.tensor, DType::Float);
            }
        }
        let sums = self.nest(wide, origins);
        self.converted(sums, s.output.dtype)
    }

    /// Returns whether elements are read so often that the time depends on arithmetic. If each is read once or twice (a matmul with a single row), or nothing
    /// is summed, the time depends on memory traffic, which 16-bit elements halve.
    fn reads_often(&self, s: &Structured) -> bool {
        let reads: i64 = s.domain.iter().product();
        let elements = |a: &Access| self.tensors.shape(a.tensor).sizes.iter().product::<i64>();
        let adds = s.domain[s.parallel_rank()..].iter().any(|&n| n != 1);
        adds && s.inputs.iter().map(elements).max().is_none_or(|most| reads > 2 * most)
    }
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::Half | DType::BFloat16)
}

/// Returns the nest with f32 operands and an f32 result in place of f16 or bf16; `None` if it is no sum of products, or uses 16-bit floats otherwise than by
/// converting them.
fn of_floats(s: &Structured) -> Option<Structured> {
    let last = s.body.nodes().last()?;
    let products = matches!(last.op, ExprOp::Binary(BinaryOp::Mul, ..)) && last.dtype == DType::Float;
    let halves = s.body.nodes().iter().any(|n| is_half(n.dtype));
    if s.combine != Some(Combine::Add)
        || s.accumulate != DType::Float
        || !products
        || !halves
        || !is_half(s.output.dtype)
    {
        return None;
    }
    let mut wide = s.clone();
    wide.body = without_halves(&s.body)?;
    wide.finish = match &s.finish {
        Some(finish) => Some(without_halves(finish)?),
        None => None,
    };
    wide.output.dtype = DType::Float;
    Some(wide)
}

/// Returns the expression over f32, without its final rounding; `None` if it rounds earlier, or computes in f16 or bf16.
fn without_halves(e: &Expr) -> Option<Expr> {
    let mut out = Expr::new();
    let mut ids: Vec<u32> = Vec::new();
    let last = e.nodes().len().checked_sub(1)?;
    for (i, node) in e.nodes().iter().enumerate() {
        let id = match node.op {
            ExprOp::Input(n) if is_half(node.dtype) => out.input(n, DType::Float),
            ExprOp::Cast(a) if is_half(node.dtype) && i == last => ids[a as usize],
            ExprOp::Cast(a) => {
                let a = ids[a as usize];
                match out.node(a).dtype == node.dtype {
                    true => a,
                    false => out.cast(a, node.dtype),
                }
            }
            _ if is_half(node.dtype) => return None,
            op => out.push(remap(op, &ids), node.dtype),
        };
        ids.push(id);
    }
    let result = *ids.last()?;
    (out.node(result).dtype == DType::Float).then(|| out.finish(result))
}
