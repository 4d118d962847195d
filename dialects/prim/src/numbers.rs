//! Conversions of numbers to tensors, and operators on numbers that also accept tensors.

use frazil_ir::DType;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::expr::UnaryOp;
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::pointwise::{Pointwise, Promotion};
use frazil_runtime::{Scalar, Tensor};

/// `abs(x)` of a tensor. The overloads on numbers are registered with the scalar operators.
pub(crate) const ABS: Pointwise = Pointwise::new(&["x"], Promotion::Default, |b| b.x(0).unary(UnaryOp::Abs));

pub(crate) const ENTRIES: &[Row] = &[("prim::NumToTensor", Entry::kernel(to_tensor))];

/// Creates a zero-dimensional tensor from a number. Floats become `Double`, like Python's numbers.
fn to_tensor(call: &Call<'_>) -> Result<Results, OpError> {
    let value = call.scalar(0)?;
    let dtype = match value {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::Long,
        Scalar::Float(_) => DType::Double,
        Scalar::Complex(_) => DType::ComplexDouble,
    };
    one(Tensor::scalar(dtype, value))
}
