//! Sums of products of halves as sums of products of floats.
//!
//! PyTorch adds up products of f16 and bf16 in f32 and rounds the sum once. So such a contraction is one of f32 whose operands are converted
//! before and whose result is rounded after: constants are converted once and for all, other conversions go into the nests around
//! the contraction where they can, and the kernels for f32 serve all three dtypes.

use super::state::Specialiser;
use frazil_ir::DType;
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp};
use frazil_runtime::structured::{Access, Combine, Structured, TensorId};
use frazil_tensor_ir::graph::Origin;
use frazil_tensor_ir::transform::simplify::remap;

impl Specialiser<'_> {
    /// Appends a nest; a contraction of halves as one of floats.
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

    /// Whether elements are read so often that arithmetic counts. Where each is read once or twice (a product with a single row), or products are
    /// not even added up, memory does, and halves are half of it.
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

/// The nest with operands and a result of floats in place of halves; `None` when it is no sum of products of halves, or does something
/// else with halves than to convert them.
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

/// The expression over floats, without its last rounding; `None` when it rounds earlier, or computes with halves as they are.
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
