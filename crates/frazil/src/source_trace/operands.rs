//! Tensor types as a trace records them, and the tensors that Python makes of numbers.

use frazil_ir::schema::FunctionSchema;
use frazil_ir::{Context, DType, TypeId};
use frazil_runtime::{Scalar, Tensor, Value};

/// Arithmetic with numbers, of which Python's calls make tensors before the tracer sees them.
const WITH_WRAPPED_NUMBERS: [&str; 8] = [
    "aten::add",
    "aten::sub",
    "aten::mul",
    "aten::div",
    "aten::add_",
    "aten::sub_",
    "aten::mul_",
    "aten::div_",
];

/// The number of an arithmetic operator as the tensor that Python makes of it, where the graph gives the same with it.
pub(crate) fn wrapped_number(ctx: &Context, schema: &FunctionSchema, values: &[Value]) -> Option<Tensor> {
    let name = ctx.name(schema.name);
    if !WITH_WRAPPED_NUMBERS.contains(&name) || !ctx.name(schema.overload).starts_with("Scalar") {
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

/// The type of a tensor with all that is known of it.
pub(crate) fn type_of(ctx: &Context, tensor: &Tensor) -> TypeId {
    ctx.tensor_of(tensor.dtype(), tensor.sizes(), tensor.strides(), false)
}
