//! Reading and writing of elements at computed positions, for indexing, sorting and scattering.

use crate::error::TensorError;
use crate::tensor::Tensor;
use crate::tensor::element::{Element, with_element};
use crate::tensor::join::Joinable;
use crate::tensor::storage::AlignedBytes;

pub use crate::tensor::join::Join;

impl Tensor {
    /// Returns the elements at row-major `positions` of this tensor, as a new tensor of sizes `sizes`.
    ///
    /// # Errors
    /// When a position is out of range, or the number of positions differs from that of `sizes`.
    pub fn take(&self, positions: &[i64], sizes: &[i64]) -> Result<Tensor, TensorError> {
        let wrong = || TensorError::Mismatch(sizes.to_vec());
        let width = self.dtype().size();
        let mut out = AlignedBytes::zeroed(Tensor::byte_size(self.dtype(), sizes)?)?;
        if out.as_slice().len() != positions.len() * width {
            return Err(wrong());
        }
        let dense = self.contiguous()?;
        let first = dense.offset() as usize * width;
        let bytes = dense.storage().bytes();
        let source = bytes.get(first..first + dense.numel() as usize * width).unwrap_or(&[]);
        for (target, &at) in out.as_mut_slice().chunks_exact_mut(width).zip(positions) {
            let at = usize::try_from(at).map_err(|_| wrong())? * width;
            target.copy_from_slice(source.get(at..at + width).ok_or_else(wrong)?);
        }
        Ok(Tensor::from_buffer(out, self.dtype(), sizes))
    }

    /// Combines `values`, in row-major order and converted to this tensor's dtype, with the elements at row-major `positions`.
    ///
    /// # Errors
    /// When a position is out of range or there are fewer values than positions.
    pub fn put_(&self, positions: &[i64], values: &Tensor, join: Join) -> Result<(), TensorError> {
        let wrong = || TensorError::Mismatch(self.sizes().to_vec());
        let values = values.to_dtype(self.dtype())?.contiguous()?;
        if (values.numel() as usize) < positions.len() {
            return Err(wrong());
        }
        // A copy is changed and written back: the tensor may have any strides.
        let changed = self.deep_copy()?;
        let source = values.storage().bytes();
        let result = changed.storage().write(|target| {
            with_element!(self.dtype(), T => {
                let target = bytemuck::try_cast_slice_mut::<u8, <T as Element>::Raw>(target).map_err(|_| wrong())?;
                let source = crate::tensor::element::elements::<<T as Element>::Raw>(&source);
                let source = source.get(values.offset() as usize..).unwrap_or(&[]);
                for (&at, &value) in positions.iter().zip(source) {
                    let place = usize::try_from(at).ok().and_then(|at| target.get_mut(at)).ok_or_else(wrong)?;
                    *place = if join == Join::Replace { value } else { joined::<T>(*place, value, join) };
                }
                Ok::<(), TensorError>(())
            })
        })?;
        result?;
        self.copy_(&changed)
    }
}

fn joined<T: Element>(a: T::Raw, b: T::Raw, join: Join) -> T::Raw {
    let (x, y) = (T::load(a), T::load(b));
    T::store(<T::Lane as Joinable>::join(x, y, join))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_and_put() {
        let t = Tensor::from_f32(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3]).unwrap();
        let transposed = t.as_strided(&[3, 2], &[1, 3], 0).unwrap();
        assert_eq!(transposed.take(&[1, 4], &[2]).unwrap().to_f64_vec(), [3.0, 2.0]);
        assert!(t.take(&[6], &[1]).is_err() && t.take(&[-1], &[1]).is_err() && t.take(&[1], &[2]).is_err());
        let values = Tensor::from_i64(&[10, 20, 30], &[3]).unwrap();
        transposed.put_(&[0, 1, 1], &values, Join::Add).unwrap();
        assert_eq!(t.to_f64_vec(), [10.0, 1.0, 2.0, 53.0, 4.0, 5.0]);
        assert!(t.put_(&[9], &values, Join::Replace).is_err());
    }
}
