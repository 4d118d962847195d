//! Dtypes and sizes of tensors, and the arithmetic of strides.

pub mod layout;

use frazil_ir::DType;
use smallvec::SmallVec;

/// Sizes or strides of a tensor, in elements.
pub type Dims = SmallVec<[i64; 4]>;

/// Dtype and sizes of a tensor.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct TensorShape {
    /// Element type.
    pub dtype: DType,
    /// Extent of each dimension.
    pub sizes: Dims,
}

impl Clone for TensorShape {
    fn clone(&self) -> TensorShape {
        TensorShape {
            dtype: self.dtype,
            // Much faster than a clone, which copies the elements one by one.
            sizes: Dims::from_slice(&self.sizes),
        }
    }
}

impl TensorShape {
    /// Returns the number of elements.
    pub fn numel(&self) -> i64 {
        self.sizes.iter().fold(1, |n, &size| n.saturating_mul(size))
    }
}
