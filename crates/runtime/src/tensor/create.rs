//! New tensors: of zeros, of one value, and of given elements.

use crate::error::TensorError;
use crate::scalar::Scalar;
use crate::shape::{Dims, layout};
use crate::tensor::Tensor;
use crate::tensor::element::{Element, FloatElement, LongElement, with_element};
use crate::tensor::lanes::{Lane, scalar_lanes};
use crate::tensor::marks::Marks;
use crate::tensor::storage::{AlignedBytes, Storage};
use frazil_ir::DType;

impl Tensor {
    /// Returns a row-major tensor whose elements are zero.
    pub fn zeros(dtype: DType, sizes: &[i64]) -> Result<Tensor, TensorError> {
        let bytes = AlignedBytes::zeroed(Tensor::byte_size(dtype, sizes)?)?;
        Ok(Tensor::from_buffer(bytes, dtype, sizes))
    }

    /// Returns a row-major tensor in a buffer of exactly its size, which a kernel has filled.
    pub(crate) fn from_buffer(bytes: AlignedBytes, dtype: DType, sizes: &[i64]) -> Tensor {
        let strides = layout::contiguous_strides(sizes);
        Tensor {
            storage: Storage::from_owned(bytes),
            dtype,
            sizes: Dims::from_slice(sizes),
            strides,
            offset: 0,
            marks: Marks::default(),
            requires_grad: false,
        }
    }

    /// Returns a row-major tensor. `compute` writes its elements into a buffer of zeros.
    pub(crate) fn computed<E: From<TensorError>>(
        dtype: DType,
        sizes: &[i64],
        compute: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Tensor, E> {
        let mut bytes = AlignedBytes::zeroed(Tensor::byte_size(dtype, sizes)?).map_err(TensorError::from)?;
        compute(bytes.as_mut_slice())?;
        Ok(Tensor::from_buffer(bytes, dtype, sizes))
    }

    /// Returns a row-major tensor filled with `value`, converted to `dtype`.
    pub fn full(dtype: DType, sizes: &[i64], value: Scalar) -> Result<Tensor, TensorError> {
        let mut bytes = AlignedBytes::zeroed(Tensor::byte_size(dtype, sizes)?)?;
        let lane = scalar_lanes(value, dtype);
        with_element!(dtype, T => {
            let raw = <T as Element>::Lane::of(&lane).first().map(|&l| T::store(l));
            if let (Some(raw), Ok(out)) = (raw, bytemuck::try_cast_slice_mut(bytes.as_mut_slice())) {
                out.fill(raw);
            }
        });
        Ok(Tensor::from_buffer(bytes, dtype, sizes))
    }

    /// Returns a zero-dimensional tensor.
    pub fn scalar(dtype: DType, value: Scalar) -> Tensor {
        // One element is never too large; the empty tensor below is never reached.
        Tensor::full(dtype, &[], value).unwrap_or_else(|_| Tensor::from_buffer(AlignedBytes::empty(), dtype, &[]))
    }

    /// Returns a row-major tensor of `E`'s dtype with the elements of `data`.
    ///
    /// # Errors
    /// When the number of elements differs from that of `sizes`.
    pub fn from_elements<E: Element>(data: &[E::Raw], sizes: &[i64]) -> Result<Tensor, TensorError> {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        if bytes.len() != Tensor::byte_size(E::DTYPE, sizes)? {
            return Err(TensorError::Mismatch(sizes.to_vec()));
        }
        Ok(Tensor::from_buffer(AlignedBytes::copied(bytes)?, E::DTYPE, sizes))
    }

    /// Returns a row-major tensor with a copy of `bytes`, which are little-endian elements of `dtype`.
    ///
    /// # Errors
    /// When the number of bytes does not fit `sizes`.
    pub fn from_bytes(dtype: DType, sizes: &[i64], bytes: &[u8]) -> Result<Tensor, TensorError> {
        if bytes.len() != Tensor::byte_size(dtype, sizes)? {
            return Err(TensorError::Mismatch(sizes.to_vec()));
        }
        Ok(Tensor::from_buffer(AlignedBytes::copied(bytes)?, dtype, sizes))
    }

    /// Returns a row-major tensor of dtype `Float`.
    pub fn from_f32(data: &[f32], sizes: &[i64]) -> Result<Tensor, TensorError> {
        Tensor::from_elements::<FloatElement>(data, sizes)
    }

    /// Returns a row-major tensor of dtype `Long`.
    pub fn from_i64(data: &[i64], sizes: &[i64]) -> Result<Tensor, TensorError> {
        Tensor::from_elements::<LongElement>(data, sizes)
    }
}
