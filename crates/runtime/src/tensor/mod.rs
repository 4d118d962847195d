//! Tensors: typed, strided views of a storage.

pub(crate) mod access;
mod create;
pub mod element;
pub mod elements;
mod gradients;
pub(crate) mod join;
pub mod lanes;
pub mod marks;
pub mod storage;

use crate::memory;
use crate::scalar::Scalar;
use crate::shape::Dims;
use crate::shape::layout;
use crate::tensor::access::{OperandBytes, Reader, Walk};
use crate::tensor::element::{Element, elements, with_element};
use crate::tensor::lanes::{CHUNK, Lane, Lanes};
use crate::tensor::marks::Marks;
use crate::tensor::storage::Storage;
use bytemuck::Pod;
use frazil_ir::DType;
use num_complex::Complex;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use crate::error::TensorError;

/// A strided view of a [`Storage`]: element `index` is at `offset + Σ index[i] * strides[i]`, in elements. A clone refers to the same elements.
///
/// A tensor may have conjugate and negative bits ([`Marks`]): its elements are then the conjugates, or the negatives, of the stored values. The methods of a
/// tensor and programs take account of them. Code that reads [`Tensor::storage`] directly must call [`Tensor::contiguous`] or [`Tensor::resolved`] first, whose
/// results have no such bits.
pub struct Tensor {
    storage: Arc<Storage>,
    dtype: DType,
    sizes: Dims,
    strides: Dims,
    offset: i64,
    marks: Marks,
    pub(crate) requires_grad: bool,
}

impl Clone for Tensor {
    fn clone(&self) -> Tensor {
        Tensor {
            storage: Arc::clone(&self.storage),
            dtype: self.dtype,
            // Copies all at once; a clone of a `SmallVec` appends one after the other.
            sizes: Dims::from_slice(&self.sizes),
            strides: Dims::from_slice(&self.strides),
            offset: self.offset,
            marks: self.marks,
            requires_grad: self.requires_grad,
        }
    }
}

impl Tensor {
    /// Returns a view of `storage`, after a check that it is within the storage. Sizes, strides and offset are in
    /// elements of `dtype`.
    pub fn from_storage(
        storage: Arc<Storage>,
        dtype: DType,
        sizes: &[i64],
        strides: &[i64],
        offset: i64,
    ) -> Result<Tensor, TensorError> {
        let tensor = Tensor {
            storage,
            dtype,
            sizes: Dims::from_slice(sizes),
            strides: Dims::from_slice(strides),
            offset,
            marks: Marks::default(),
            requires_grad: false,
        };
        if tensor.fits() {
            Ok(tensor)
        } else if sizes.iter().all(|&s| s >= 0) && layout::checked_numel(sizes).is_none() {
            Err(TensorError::TooManyElements)
        } else {
            Err(tensor.out_of_storage())
        }
    }

    fn fits(&self) -> bool {
        if self.sizes.len() != self.strides.len() || self.offset < 0 || self.sizes.iter().any(|&s| s < 0) {
            return false;
        }
        if self.sizes.contains(&0) {
            return true;
        }
        if layout::checked_numel(&self.sizes).is_none() {
            return false;
        }
        let available = (self.storage.len() / self.dtype.size()) as i64;
        match layout::extent(&self.sizes, &self.strides) {
            Some((low, high)) => {
                self.offset.checked_add(low).is_some_and(|l| l >= 0)
                    && self.offset.checked_add(high).is_some_and(|h| h < available)
            }
            None => false,
        }
    }

    fn out_of_storage(&self) -> TensorError {
        TensorError::OutOfStorage {
            sizes: self.sizes.to_vec(),
            strides: self.strides.to_vec(),
            offset: self.offset,
            dtype: self.dtype,
            available: self.storage.len(),
        }
    }

    /// Returns the size in bytes of a row-major tensor, before its allocation.
    ///
    /// # Errors
    /// When a size is negative, the product of the sizes overflows, or there are more elements than the budget allows.
    pub fn byte_size(dtype: DType, sizes: &[i64]) -> Result<usize, TensorError> {
        if let Some(&negative) = sizes.iter().find(|&&s| s < 0) {
            return Err(TensorError::NegativeSize(negative, sizes.to_vec()));
        }
        let elements = layout::checked_numel(sizes);
        frazil_limits::check_elements(elements.unwrap_or(0) as u64)?;
        let bytes = elements.and_then(|n| n.checked_mul(dtype.size() as i64));
        bytes
            .map(|b| b as usize)
            .ok_or_else(|| TensorError::TooManyBytes(sizes.to_vec()))
    }

    /// Calls `compute` to write the elements in row-major order; returns `None` if they are not stored like that.
    pub(crate) fn write_dense<E: From<TensorError>>(
        &self,
        compute: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Option<Result<(), E>> {
        if !self.marks.is_none() || !self.is_contiguous() {
            return None;
        }
        let target = self.dense_range();
        match self.storage.write(|bytes| bytes.get_mut(target).map(compute)) {
            Ok(written) => written,
            Err(error) => Some(Err(TensorError::from(error).into())),
        }
    }

    /// Returns the storage, which other tensors may share.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the extent of each dimension.
    pub fn sizes(&self) -> &[i64] {
        &self.sizes
    }

    /// Returns the stride of each dimension, in elements.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// Returns the position of the first element in the storage, in elements.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Returns the number of dimensions.
    pub fn dim(&self) -> usize {
        self.sizes.len()
    }

    /// Returns the number of elements.
    pub fn numel(&self) -> i64 {
        // The product was checked when the tensor was made; only beside a zero may that of the others overflow.
        self.sizes.iter().fold(1, |n, &size| n.wrapping_mul(size))
    }

    /// Returns true if the elements are stored in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        layout::is_contiguous(&self.sizes, &self.strides)
    }

    /// Returns true if both tensors use one storage.
    pub fn shares_storage(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// Returns the conjugate and negative bits.
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// Returns the same tensor with `marks` in place of its conjugate and negative bits.
    pub fn with_marks(&self, marks: Marks) -> Tensor {
        Tensor {
            marks,
            requires_grad: false,
            ..self.clone()
        }
    }

    /// Returns the tensor itself if it has no conjugate or negative bit. Otherwise returns a copy, with the same strides if they are dense.
    pub fn resolved(&self) -> Result<Tensor, TensorError> {
        if self.marks.is_none() {
            Ok(self.clone())
        } else {
            self.deep_copy_preserving_strides()
        }
    }

    /// Returns a tensor with the same storage, dtype, and conjugate and negative bits, and with the given sizes, strides and offset, in elements.
    pub fn as_strided(&self, sizes: &[i64], strides: &[i64], offset: i64) -> Result<Tensor, TensorError> {
        let mut view = Tensor::from_storage(self.storage.clone(), self.dtype, sizes, strides, offset)?;
        view.marks = self.marks;
        Ok(view)
    }

    /// Returns a tensor of another dtype over the same bytes, without conjugate and negative bits. `view_as_real` and `view(dtype)` use this.
    pub fn reinterpret(
        &self,
        dtype: DType,
        sizes: &[i64],
        strides: &[i64],
        offset: i64,
    ) -> Result<Tensor, TensorError> {
        Tensor::from_storage(self.storage.clone(), dtype, sizes, strides, offset)
    }

    /// Returns a view with new sizes of the same elements in the same order; `None` if the strides do not allow it or the numbers of elements differ.
    pub fn view(&self, sizes: &[i64]) -> Option<Tensor> {
        if layout::checked_numel(sizes) != Some(self.numel()) {
            return None;
        }
        let strides = layout::view_strides(&self.sizes, &self.strides, sizes)?;
        Some(Tensor {
            strides,
            sizes: sizes.into(),
            requires_grad: false,
            ..self.clone()
        })
    }

    /// Returns [`Tensor::view`], or a copy if a view is not possible.
    pub fn reshape(&self, sizes: &[i64]) -> Result<Tensor, TensorError> {
        match self.view(sizes) {
            Some(view) => Ok(view),
            None => {
                let expected = Tensor::byte_size(self.dtype, sizes)?;
                let copy = self.deep_copy()?;
                if copy.storage.len() != expected {
                    return Err(TensorError::Expand {
                        from: self.sizes.to_vec(),
                        to: sizes.to_vec(),
                    });
                }
                let strides = layout::contiguous_strides(sizes);
                Ok(Tensor {
                    sizes: sizes.into(),
                    strides,
                    ..copy
                })
            }
        }
    }

    /// Returns the tensor repeated along broadcast dimensions, as a view.
    pub fn expand(&self, sizes: &[i64]) -> Result<Tensor, TensorError> {
        let strides = layout::expand_strides(&self.sizes, &self.strides, sizes).ok_or_else(|| TensorError::Expand {
            from: self.sizes.to_vec(),
            to: sizes.to_vec(),
        })?;
        if layout::checked_numel(sizes).is_none() {
            return Err(TensorError::TooManyElements);
        }
        Ok(Tensor {
            sizes: sizes.into(),
            strides,
            requires_grad: false,
            ..self.clone()
        })
    }

    /// Returns the tensor itself if it is row-major and has no conjugate or negative bit, else a row-major copy.
    pub fn contiguous(&self) -> Result<Tensor, TensorError> {
        if self.is_contiguous() && self.marks.is_none() {
            Ok(self.clone())
        } else {
            self.deep_copy()
        }
    }

    /// Returns a row-major copy.
    pub fn deep_copy(&self) -> Result<Tensor, TensorError> {
        self.converted(self.dtype)
    }

    /// Returns a copy with the same order of dimensions (`torch.preserve_format`). Its strides are the same if the tensor is dense and without overlap.
    pub fn deep_copy_preserving_strides(&self) -> Result<Tensor, TensorError> {
        let strides = layout::elementwise_strides(&[(&self.sizes, &self.strides)], &self.sizes);
        if layout::is_contiguous(&self.sizes, &strides) {
            return self.deep_copy();
        }
        self.dense_copy(&strides)
    }

    /// Returns a tensor with the same elements and the strides `strides`, which must be dense. A tensor with these strides is returned itself.
    pub fn with_strides(&self, strides: &[i64]) -> Result<Tensor, TensorError> {
        if self.strides[..] == *strides {
            return Ok(self.clone());
        }
        self.dense_copy(strides)
    }

    fn dense_copy(&self, strides: &[i64]) -> Result<Tensor, TensorError> {
        let flat = Tensor::zeros(self.dtype, &[self.numel()])?;
        let copy = flat.as_strided(&self.sizes, strides, 0)?;
        copy.copy_(self)?;
        Ok(copy)
    }

    /// Returns the tensor itself if it has `dtype`, else a converted row-major copy.
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor, TensorError> {
        if self.dtype == dtype {
            Ok(self.clone())
        } else {
            self.converted(dtype)
        }
    }

    fn converted(&self, dtype: DType) -> Result<Tensor, TensorError> {
        let out = Tensor::zeros(dtype, &self.sizes)?;
        out.copy_(self)?;
        Ok(out)
    }

    /// Returns a view that contains one element for each position of `window`, a tensor of the same sizes. A dimension in which `window` has stride 0 is
    /// reduced to its first index.
    pub(crate) fn once(&self, window: &Tensor) -> Result<Tensor, TensorError> {
        let kept = self.sizes.iter().zip(&window.strides);
        let sizes: Dims = kept
            .map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size })
            .collect();
        self.as_strided(&sizes, &self.strides, self.offset)
    }

    /// Writes the elements of `src`, broadcast and converted, into this tensor (`Tensor.copy_`). If both tensors share a storage, the old contents are read.
    pub fn copy_(&self, src: &Tensor) -> Result<(), TensorError> {
        let src = src.expand(&self.sizes)?;
        // Equal marks on both sides are none.
        let same = self.dtype == src.dtype && self.marks == src.marks;
        let (read_as, write_as) = if same {
            Default::default()
        } else {
            (src.marks, self.marks)
        };
        if layout::repeats_elements(&self.sizes, &self.strides) {
            return Err(TensorError::Overlap);
        }
        if src.is_same_window(self) {
            return Ok(());
        }
        let numel = self.numel() as usize;
        if numel == 0 {
            return Ok(());
        }
        if same && self.is_whole() && src.is_whole() && self.storage.adopt(&src.storage) {
            return Ok(());
        }
        let bytes = OperandBytes::of(&src)?;
        let reader = Reader::dense(bytes.as_slice(), src.dtype, src.strides.clone()).at(src.offset);
        let zeros: Dims = smallvec::smallvec![0; self.dim()];
        let walk = Walk {
            extents: &self.sizes,
            first: 0,
            end: self.dim(),
            fixed: &zeros,
        };
        let mut loaded = Lanes::new(src.dtype);
        let mut converted = Lanes::new(self.dtype);
        self.storage.write(|target| {
            let mut start = 0;
            while start < numel {
                let len = CHUNK.min(numel - start);
                reader.read(&walk, start, len, &mut loaded);
                read_as.apply(&mut loaded, src.dtype);
                let lanes = if src.dtype == self.dtype {
                    &mut loaded
                } else {
                    converted.convert_from(&loaded, src.dtype, self.dtype);
                    &mut converted
                };
                write_as.apply(lanes, self.dtype);
                self.write_chunk(target, &walk, start, lanes);
                start += len;
            }
        })?;
        Ok(())
    }

    /// Returns true if both tensors are dense and without gaps, and their memory ranges overlap without being identical element by element.
    ///
    /// PyTorch's in-place operators refuse such an operand. They accept overlap if either tensor has gaps.
    pub fn partially_overlaps(&self, other: &Tensor) -> bool {
        if !self.shares_storage(other) || self.numel() == 0 || other.numel() == 0 {
            return false;
        }
        let dense = |t: &Tensor| layout::is_non_overlapping_and_dense(&t.sizes, &t.strides);
        if !dense(self) || !dense(other) {
            return false;
        }
        let bytes = |t: &Tensor| {
            let size = t.dtype.size() as i64;
            let start = t.offset.saturating_mul(size);
            (start, start.saturating_add(t.numel().saturating_mul(size)))
        };
        let (a, b) = (bytes(self), bytes(other));
        match a == b {
            true => self.strides != other.strides,
            false => a.0 < b.1 && b.0 < a.1,
        }
    }

    fn is_same_window(&self, other: &Tensor) -> bool {
        let layout = |t: &Tensor| (t.dtype, t.marks, t.offset);
        self.shares_storage(other)
            && layout(self) == layout(other)
            && self.sizes == other.sizes
            && self.strides == other.strides
    }

    /// Returns true if the tensor consists of its whole storage in row-major order.
    fn is_whole(&self) -> bool {
        self.offset == 0 && self.is_contiguous() && self.numel() as usize * self.dtype.size() == self.storage.len()
    }

    /// Stores `lanes`, of this tensor's dtype, as the elements from row-major index `start` on.
    fn write_chunk(&self, target: &mut [u8], walk: &Walk<'_>, start: usize, lanes: &Lanes) {
        with_element!(self.dtype, T => {
            let lanes = <T as Element>::Lane::of(lanes);
            let position = Reader::dense(&[], self.dtype, self.strides.clone()).at(self.offset);
            match bytemuck::try_cast_slice_mut::<u8, <T as Element>::Raw>(target) {
                Ok(target) => position.write::<T>(walk, start, lanes, target),
                // A mapped source copied on write is aligned; only odd lengths come here, and they have a whole prefix.
                Err(_) => {
                    let whole = target.len() / self.dtype.size() * self.dtype.size();
                    if let Ok(target) = bytemuck::try_cast_slice_mut(&mut target[..whole]) {
                        position.write::<T>(walk, start, lanes, target);
                    }
                }
            }
        });
    }

    /// Sets every element to `value`, converted to the tensor's dtype.
    pub fn fill_(&self, value: Scalar) -> Result<(), TensorError> {
        self.copy_(&Tensor::scalar(self.dtype, value))
    }

    /// Returns the element of a one-element tensor.
    pub fn item(&self) -> Result<Scalar, TensorError> {
        if self.numel() != 1 {
            return Err(TensorError::NotOneElement(self.numel()));
        }
        let bytes = OperandBytes::of(self)?;
        let reader = Reader::dense(bytes.as_slice(), self.dtype, self.strides.clone()).at(self.offset);
        let zeros: Dims = smallvec::smallvec![0; self.dim()];
        let walk = Walk {
            extents: &self.sizes,
            first: 0,
            end: self.dim(),
            fixed: &zeros,
        };
        let mut lanes = Lanes::new(self.dtype);
        reader.read(&walk, 0, 1, &mut lanes);
        self.marks.apply(&mut lanes, self.dtype);
        Ok(match &lanes {
            Lanes::F32(v) => Scalar::Float(v.first().copied().map_or(0.0, f64::from)),
            Lanes::F64(v) => Scalar::Float(v.first().copied().unwrap_or_default()),
            Lanes::I64(v) if self.dtype == DType::Bool => Scalar::Bool(v.first().is_some_and(|&x| x != 0)),
            Lanes::I64(v) => Scalar::Int(v.first().copied().unwrap_or_default()),
            Lanes::Complex(v) => Scalar::Complex(v.first().copied().unwrap_or(Complex::ZERO)),
        })
    }

    /// Returns the stored elements in row-major order. Empty if the width of `T` differs from that of the dtype.
    pub fn to_vec<T: Pod>(&self) -> Vec<T> {
        if size_of::<T>() != self.dtype.size() {
            return Vec::new();
        }
        let Ok(dense) = self.contiguous() else {
            return Vec::new();
        };
        let bytes = dense.storage.bytes();
        elements(bytes.get(dense.dense_range()).unwrap_or(&[])).into_owned()
    }

    /// Returns the range of bytes of a row-major tensor in its storage. A tensor without elements may start anywhere, and has no bytes.
    pub(crate) fn dense_range(&self) -> Range<usize> {
        let size = self.dtype.size();
        match self.numel() as usize * size {
            0 => 0..0,
            bytes => {
                let first = self.offset as usize * size;
                first..first + bytes
            }
        }
    }

    /// Returns the bytes of the elements in row-major order.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TensorError> {
        let dense = self.contiguous()?;
        let bytes = dense.storage.bytes();
        let own = bytes.get(dense.dense_range()).unwrap_or_default();
        Ok(memory::copied(own)?)
    }

    /// Returns the elements in row-major order, converted to `f64`.
    pub fn to_f64_vec(&self) -> Vec<f64> {
        self.to_dtype(DType::Double).map(|t| t.to_vec()).unwrap_or_default()
    }

    /// Returns the elements in row-major order, converted to `i64`.
    pub fn to_i64_vec(&self) -> Vec<i64> {
        self.to_dtype(DType::Long).map(|t| t.to_vec()).unwrap_or_default()
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}, {:?}", self.dtype, self.sizes.as_slice())?;
        if self.numel() <= 16 {
            write!(f, ", {:?}", self.to_f64_vec())?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::element::{ByteElement, CharElement, DoubleElement, IntElement};

    fn iota(sizes: &[i64]) -> Tensor {
        let n = sizes.iter().product::<i64>();
        Tensor::from_f32(&(0..n).map(|x| x as f32).collect::<Vec<_>>(), sizes).expect("fits")
    }

    #[test]
    fn windows_are_checked() {
        let t = iota(&[2, 3]);
        assert!(t.as_strided(&[3, 2], &[1, 3], 0).is_ok());
        assert!(t.as_strided(&[3, 2], &[1, 3], 1).is_err());
        assert!(t.as_strided(&[3], &[-1], 2).is_ok());
        assert!(t.as_strided(&[3], &[-1], 1).is_err());
        assert!(t.as_strided(&[i64::MAX, 3], &[i64::MAX, 1], 0).is_err());
        assert!(Tensor::zeros(DType::Float, &[1 << 40, 1 << 40]).is_err());
        assert!(Tensor::zeros(DType::Float, &[-1]).is_err());
    }

    #[test]
    fn views_alias_and_copies_do_not() {
        let t = iota(&[2, 3]);
        let transposed = t.as_strided(&[3, 2], &[1, 3], 0).expect("fits");
        let copy = transposed.deep_copy().expect("copies");
        transposed.fill_(Scalar::Int(5)).expect("fills");
        assert_eq!(t.to_f64_vec(), [5.0; 6]);
        assert_eq!(copy.to_f64_vec(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert!(transposed.shares_storage(&t) && !copy.shares_storage(&t));
    }

    #[test]
    fn copy_reads_the_old_contents() {
        let t = iota(&[3, 3]);
        t.copy_(&t.as_strided(&[3, 3], &[1, 3], 0).expect("fits"))
            .expect("copies");
        assert_eq!(t.to_f64_vec(), [0.0, 3.0, 6.0, 1.0, 4.0, 7.0, 2.0, 5.0, 8.0]);
        let expanded = iota(&[3, 1]).expand(&[3, 2]).expect("expands");
        assert_eq!(
            expanded.copy_(&t.as_strided(&[3, 2], &[1, 3], 0).expect("fits")),
            Err(TensorError::Overlap)
        );
    }

    #[test]
    fn conversions_are_pytorchs() {
        // torch.tensor([-1.5, 2.9, 300., nan, 1e20], dtype=torch.float64).to(...)
        let t = Tensor::from_elements::<DoubleElement>(&[-1.5, 2.9, 300.0, f64::NAN, 1e20], &[5]).expect("fits");
        assert_eq!(
            t.to_dtype(DType::Long).expect("converts").to_vec::<i64>()[..4],
            [-1, 2, 300, i64::MIN]
        );
        let ints = t.to_dtype(DType::Int).expect("converts");
        assert_eq!(ints.to_vec::<i32>(), [-1, 2, 300, i32::MIN, i32::MIN]);
        assert_eq!(
            t.to_dtype(DType::Byte).expect("converts").to_vec::<u8>()[..3],
            [255, 2, 44]
        );
        assert_eq!(
            t.to_dtype(DType::Bool).expect("converts").to_vec::<u8>(),
            [1, 1, 1, 1, 1]
        );
        let wide = Tensor::from_elements::<IntElement>(&[255, 256, -1], &[3]).expect("fits");
        assert_eq!(
            wide.to_dtype(DType::Char).expect("converts").to_vec::<i8>(),
            [-1, 0, -1]
        );
        let half = Tensor::from_f32(&[2049.0, 65520.0, 1e-8], &[3])
            .expect("fits")
            .to_dtype(DType::Half);
        assert_eq!(half.expect("converts").to_f64_vec(), [2048.0, f64::INFINITY, 0.0]);
        let bf = Tensor::from_f32(&[257.0, 259.0], &[2])
            .expect("fits")
            .to_dtype(DType::BFloat16);
        assert_eq!(bf.expect("converts").to_f64_vec(), [256.0, 260.0]);
        let small = Tensor::from_elements::<CharElement>(&[-128], &[1]).expect("fits");
        assert_eq!(small.to_dtype(DType::Byte).expect("converts").to_vec::<u8>(), [128]);
        let bytes = Tensor::from_elements::<ByteElement>(&[200], &[1]).expect("fits");
        assert_eq!(bytes.item(), Ok(Scalar::Int(200)));
    }
}
