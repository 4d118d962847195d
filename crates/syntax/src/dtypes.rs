//! The names of dtypes in `.safetensors` files.

use frazil_ir::DType;
use safetensors::Dtype;

/// Dtypes that PyTorch and the safetensors format have in common.
const DTYPES: [(DType, Dtype); 11] = [
    (DType::Byte, Dtype::U8),
    (DType::Char, Dtype::I8),
    (DType::Short, Dtype::I16),
    (DType::Int, Dtype::I32),
    (DType::Long, Dtype::I64),
    (DType::Half, Dtype::F16),
    (DType::BFloat16, Dtype::BF16),
    (DType::Float, Dtype::F32),
    (DType::Double, Dtype::F64),
    (DType::ComplexFloat, Dtype::C64),
    (DType::Bool, Dtype::BOOL),
];

/// Returns the dtype for a dtype of `.safetensors` files; `None` if PyTorch has no such dtype.
///
/// See [`to_safetensors`] for an example.
pub fn from_safetensors(dtype: Dtype) -> Option<DType> {
    DTYPES.iter().find(|(_, s)| *s == dtype).map(|(d, _)| *d)
}

/// Returns the name of a dtype in `.safetensors` files; `None` if the format has no such dtype.
///
/// ```
/// use frazil_ir::DType;
/// use frazil_syntax::{from_safetensors, to_safetensors};
///
/// assert_eq!(to_safetensors(DType::Half).and_then(from_safetensors), Some(DType::Half));
/// assert_eq!(to_safetensors(DType::ComplexDouble), None);
/// ```
pub fn to_safetensors(dtype: DType) -> Option<Dtype> {
    DTYPES.iter().find(|(d, _)| *d == dtype).map(|(_, s)| *s)
}
