//! Dtypes and sizes of tensors, and the arithmetic of strides.

pub mod layout;

use frazil_ir::DType;
use smallvec::SmallVec;

/// Sizes or strides of a tensor, in elements.
pub type Dims = SmallVec<[i64; 4]>;

/// Dtype and sizes of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorShape {
    /// Element type.
    pub dtype: DType,
    /// Extent of each dimension.
    pub sizes: Dims,
}

impl TensorShape {
    /// Returns the number of elements.
    pub fn numel(&self) -> i64 {
        self.sizes.iter().fold(1, |n, &size| n.saturating_mul(size))
    }
}
