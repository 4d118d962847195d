//! The names that `.safetensors` files have for dtypes.

use frazil_ir::DType;
use safetensors::Dtype;

/// Dtypes that PyTorch and the format share.
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

/// The dtype that a `.safetensors` file means; `None` for those that PyTorch does not share.
///
/// See [`to_safetensors`] for an example.
pub fn from_safetensors(dtype: Dtype) -> Option<DType> {
    DTYPES.iter().find(|(_, s)| *s == dtype).map(|(d, _)| *d)
}

/// How a `.safetensors` file names a dtype; `None` for those that the format has not.
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
