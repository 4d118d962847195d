//! Types of tensors in a traced graph, and conversion of numbers to tensors as in Python.

use frazil_ir::{Context, DType, TypeId};
use frazil_runtime::entry::{NumberRule, TensorVariant};
use frazil_runtime::{Operator, Scalar, Tensor, Value};

/// Returns the scalar operand of an arithmetic operator as the tensor to which Python converts it before tracing, if the graph computes the same with it.
pub(crate) fn wrapped_number(operator: &Operator, values: &[Value]) -> Option<Tensor> {
    let traits = operator.traits();
    let is_arithmetic = |v: &TensorVariant| matches!(v.rule, NumberRule::Arithmetic | NumberRule::Quotient);
    if traits.scalar_variant.is_none() || !traits.tensor_variant.is_some_and(is_arithmetic) {
        return None;
    }
    let (tensor, number) = (values.first()?.as_tensor()?, values.get(1)?.as_scalar()?);
    let of_tensor = tensor.dtype();
    let (dtype, same) = match number {
        Scalar::Int(_) => (
            DType::Long,
            of_tensor != DType::Bool && (tensor.dim() > 0 || of_tensor == DType::Long),
        ),
        Scalar::Float(_) => (DType::Double, of_tensor.is_floating_point() && tensor.dim() > 0),
        _ => return None,
    };
    same.then(|| Tensor::scalar(dtype, number))
}

/// Returns the refined type of a tensor: dtype, device, sizes, strides and `requires_grad`.
pub(crate) fn type_of(ctx: &Context, tensor: &Tensor) -> TypeId {
    ctx.tensor_of(tensor.dtype(), tensor.sizes(), tensor.strides(), false)
}
