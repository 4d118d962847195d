//! Numbers as tensors, and tensors where the language has numbers.

use frazil_ir::DType;
use frazil_runtime::expr::UnaryOp;
use frazil_runtime::op::{Call, KernelFn, OpError, Results, one};
use frazil_runtime::pointwise::{Pointwise, Promotion};
use frazil_runtime::{Scalar, Tensor};

/// `abs(x)` of a tensor; that of numbers is a host operator.
pub(crate) const ABS: Pointwise = Pointwise::new(&["x"], Promotion::Default, |b| b.x(0).unary(UnaryOp::Abs));

pub(crate) const KERNELS: &[(&str, KernelFn)] = &[("prim::NumToTensor", to_tensor)];

/// A zero-dimensional tensor; floats are `Double`, as numbers of Python are.
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
