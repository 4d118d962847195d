//! Tensor constants: typed, strided views of shared immutable bytes.

use crate::{DType, Device, DeviceKind};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Sizes or strides, in elements.
pub type Shape = SmallVec<[i64; 5]>;

/// Immutable bytes with an identity: two tensors alias if and only if they share one `Arc<Storage>`.
///
/// The bytes are owned, or borrowed from an owner (an open archive); clones of a module and freezing share them, and
/// never copy them.
#[derive(Clone)]
pub struct Storage {
    bytes: Arc<dyn AsRef<[u8]> + Send + Sync>,
    source: Option<Arc<dyn Source>>,
    device: Device,
}

/// An owner of bytes that can reproduce the bytes: an open file, or a computation. It need not store them permanently.
///
/// [`AsRef`] returns all bytes, and stores them; they are always the same.
pub trait Source: AsRef<[u8]> + Send + Sync {
    /// Returns the number of bytes.
    fn len(&self) -> usize {
        self.as_ref().len()
    }

    /// Returns true if there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes in `range`, for temporary use: they are not stored. `None` if the range exceeds the bytes.
    fn read(&self, range: Range<usize>) -> Option<Cow<'_, [u8]>> {
        self.as_ref().get(range).map(Cow::Borrowed)
    }

    /// Copies the bytes from `start` on to `to`, for temporary use as [`Source::read`]. `None` if they exceed the source; `to` is then unspecified.
    fn read_to(&self, start: usize, to: &mut [u8]) -> Option<()> {
        let read = self.read(start..start.checked_add(to.len())?)?;
        (read.len() == to.len()).then(|| to.copy_from_slice(&read))
    }

    /// Hints that the bytes will not be read soon, so that reproducible memory may be released.
    fn release(&self) {}
}

impl Storage {
    /// Returns a storage over `bytes`, which may be a `Vec<u8>`, an aligned buffer, or a part of a larger buffer.
    pub fn new(bytes: Arc<dyn AsRef<[u8]> + Send + Sync>, device: Device) -> Storage {
        let source = None;
        Storage { bytes, source, device }
    }

    /// Returns a storage over the bytes of `source`.
    pub fn of_source<S: Source + 'static>(source: Arc<S>, device: Device) -> Storage {
        Storage {
            bytes: source.clone(),
            source: Some(source),
            device,
        }
    }

    /// Returns the bytes of the storage, in little-endian order.
    pub fn bytes(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    /// Returns the number of bytes, which is known without reading any.
    pub fn len(&self) -> usize {
        match &self.source {
            Some(source) => source.len(),
            None => self.bytes().len(),
        }
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes in `range`, for temporary use; see [`Source::read`]. `None` if the range exceeds the bytes.
    pub fn read(&self, range: Range<usize>) -> Option<Cow<'_, [u8]>> {
        match &self.source {
            Some(source) => source.read(range),
            None => self.bytes().get(range).map(Cow::Borrowed),
        }
    }

    /// Copies the bytes from `start` on to `to`, without other memory if the source can; see [`Source::read_to`].
    pub fn read_to(&self, start: usize, to: &mut [u8]) -> Option<()> {
        match &self.source {
            Some(source) => source.read_to(start, to),
            None => {
                to.copy_from_slice(self.bytes().get(start..start.checked_add(to.len())?)?);
                Some(())
            }
        }
    }

    /// Releases memory that can be filled again; see [`Source::release`].
    pub fn release(&self) {
        if let Some(source) = &self.source {
            source.release();
        }
    }

    /// Returns the owner that keeps the bytes in memory.
    pub fn owner(&self) -> &Arc<dyn AsRef<[u8]> + Send + Sync> {
        &self.bytes
    }

    /// Returns a storage with the same bytes, marked as being on `device`.
    #[must_use]
    pub fn with_device(&self, device: Device) -> Storage {
        Storage { device, ..self.clone() }
    }

    /// Returns the device that the archive records for the bytes.
    pub fn device(&self) -> Device {
        self.device
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes on {})", self.len(), self.device)
    }
}

/// A tensor constant: element type, sizes, strides and an offset into a [`Storage`].
///
/// Its identity is that of its `Arc`: two attributes with one `Arc<TensorData>` are one tensor.
#[derive(Clone, Debug)]
pub struct TensorData {
    /// Element type.
    pub dtype: DType,
    /// Extent of each dimension, in elements.
    pub sizes: Shape,
    /// Stride of each dimension, in elements.
    pub strides: Shape,
    /// Position of the first element, in elements from the start of the storage.
    pub offset: i64,
    /// The storage that contains the elements.
    pub storage: Arc<Storage>,
    /// True for trainable parameters; stored for archives.
    pub requires_grad: bool,
    /// The encoding of a quantised or sparse tensor; stored for archives.
    pub encoding: Option<Arc<Encoding>>,
}

/// The encoding of a tensor whose elements are not stored as plain numbers.
///
/// The integers of a quantised tensor represent `(integer - zero point) * scale`. The elements of a sparse tensor are in other tensors; the tensor
/// itself has sizes, and a storage without bytes on the device `meta` ([`TensorData::sparse`]).
#[derive(Clone, Debug)]
pub enum Encoding {
    /// One scale for the whole tensor: `torch.per_tensor_affine`.
    PerTensor {
        /// The scale.
        scale: f64,
        /// The integer that represents zero.
        zero_point: i64,
    },
    /// A scale for each index of one dimension: `torch.per_channel_affine`.
    PerChannel {
        /// One scale for each index of the dimension `axis`.
        scales: Arc<TensorData>,
        /// One zero point for each index of the dimension `axis`.
        zero_points: Arc<TensorData>,
        /// The dimension whose indices have different scales.
        axis: i64,
        /// Whether zero points are real numbers: `torch.per_channel_affine_float_qparams`.
        float_zero_points: bool,
    },
    /// `torch.sparse_coo`.
    SparseCoo {
        /// Indices of the stored elements, one column for each: `[dimensions, elements]`.
        indices: Arc<TensorData>,
        /// The stored elements.
        values: Arc<TensorData>,
    },
    /// `torch.sparse_csr`.
    SparseCsr {
        /// Start of each row among the stored elements, and their number at the end.
        rows: Arc<TensorData>,
        /// The column of each stored element.
        columns: Arc<TensorData>,
        /// The stored elements.
        values: Arc<TensorData>,
    },
}

impl Encoding {
    /// Returns the name of the quantisation scheme, or of the layout, in `torch`.
    pub fn name(&self) -> &'static str {
        match self {
            Encoding::PerTensor { .. } => "per_tensor_affine",
            Encoding::PerChannel {
                float_zero_points: false,
                ..
            } => "per_channel_affine",
            Encoding::PerChannel {
                float_zero_points: true,
                ..
            } => "per_channel_affine_float_qparams",
            Encoding::SparseCoo { .. } => "sparse_coo",
            Encoding::SparseCsr { .. } => "sparse_csr",
        }
    }

    /// Returns whether the elements are stored in the tensors of the encoding.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Encoding::SparseCoo { .. } | Encoding::SparseCsr { .. })
    }

    /// Returns the tensors that the encoding consists of.
    pub fn tensors(&self) -> SmallVec<[&Arc<TensorData>; 3]> {
        match self {
            Encoding::PerTensor { .. } => SmallVec::new(),
            Encoding::PerChannel {
                scales, zero_points, ..
            } => SmallVec::from_iter([scales, zero_points]),
            Encoding::SparseCoo { indices, values } => SmallVec::from_iter([indices, values]),
            Encoding::SparseCsr { rows, columns, values } => SmallVec::from_iter([rows, columns, values]),
        }
    }
}

/// The reason why a [`TensorData`] is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// The numbers of sizes and strides differ.
    #[error("a tensor of {sizes} sizes has {strides} strides")]
    Rank {
        /// Number of sizes.
        sizes: usize,
        /// Number of strides.
        strides: usize,
    },
    /// A size, stride or offset is negative, or the arithmetic overflows.
    #[error("sizes {sizes:?}, strides {strides:?}, offset {offset} are out of range")]
    Range {
        /// The sizes.
        sizes: Vec<i64>,
        /// The strides.
        strides: Vec<i64>,
        /// The offset.
        offset: i64,
    },
    /// The storage is too small for the tensor.
    #[error("the tensor needs {needed} bytes of a storage of {available}")]
    Bounds {
        /// Bytes that the tensor needs, up to the end of its last element.
        needed: u64,
        /// Size of the storage in bytes.
        available: u64,
    },
}

impl TensorData {
    /// Returns a tensor over `storage`, which is checked to contain all its elements.
    ///
    /// # Errors
    /// If the numbers of sizes and strides differ, a number is negative or overflows, or an element is outside of the
    /// storage.
    pub fn new(
        dtype: DType,
        sizes: impl Into<Shape>,
        strides: impl Into<Shape>,
        offset: i64,
        storage: Arc<Storage>,
    ) -> Result<TensorData, TensorError> {
        let (sizes, strides) = (sizes.into(), strides.into());
        if sizes.len() != strides.len() {
            return Err(TensorError::Rank {
                sizes: sizes.len(),
                strides: strides.len(),
            });
        }
        let range = || TensorError::Range {
            sizes: sizes.to_vec(),
            strides: strides.to_vec(),
            offset,
        };
        if offset < 0 || sizes.iter().chain(&strides).any(|n| *n < 0) {
            return Err(range());
        }
        let numel = sizes
            .iter()
            .try_fold(1i64, |n, s| n.checked_mul(*s))
            .ok_or_else(range)?;
        if numel > 0 {
            let mut last = offset;
            for (size, stride) in sizes.iter().zip(&strides) {
                last = (size - 1)
                    .checked_mul(*stride)
                    .and_then(|n| last.checked_add(n))
                    .ok_or_else(range)?;
            }
            let end = last
                .checked_add(1)
                .and_then(|n| n.checked_mul(dtype.size() as i64))
                .ok_or_else(range)?;
            let available = storage.len() as u64;
            // Tensors of the device `meta` have no data.
            if end as u64 > available && storage.device().kind != DeviceKind::Meta {
                return Err(TensorError::Bounds {
                    needed: end as u64,
                    available,
                });
            }
        }
        Ok(TensorData {
            dtype,
            sizes,
            strides,
            offset,
            storage,
            requires_grad: false,
            encoding: None,
        })
    }

    /// Returns a contiguous tensor with a storage of its own.
    ///
    /// # Errors
    /// If there are fewer `bytes` than `sizes` require.
    pub fn contiguous(dtype: DType, sizes: &[i64], bytes: Vec<u8>) -> Result<TensorData, TensorError> {
        let storage = Arc::new(Storage::new(Arc::new(bytes), Device::CPU));
        TensorData::new(dtype, sizes, contiguous_strides(sizes), 0, storage)
    }

    /// Returns a sparse tensor of these sizes, whose elements are of type `dtype`.
    ///
    /// # Errors
    /// If a size is negative, or their product overflows.
    pub fn sparse(dtype: DType, sizes: impl Into<Shape>, encoding: Encoding) -> Result<TensorData, TensorError> {
        let sizes = sizes.into();
        let device = Device {
            kind: DeviceKind::Meta,
            index: None,
        };
        let storage = Arc::new(Storage::new(Arc::new(Vec::new()), device));
        let strides: Shape = smallvec::smallvec![0; sizes.len()];
        let mut tensor = TensorData::new(dtype, sizes, strides, 0, storage)?;
        tensor.encoding = Some(Arc::new(encoding));
        Ok(tensor)
    }

    /// Returns the number of elements.
    pub fn numel(&self) -> i64 {
        self.sizes.iter().product()
    }

    /// Returns the position after the last element of the tensor, in elements from the start of the storage.
    pub fn end(&self) -> i64 {
        if self.numel() == 0 {
            return self.offset;
        }
        // `new` has checked that this fits.
        let last = self
            .sizes
            .iter()
            .zip(&self.strides)
            .map(|(size, stride)| (size - 1) * stride);
        self.offset + last.sum::<i64>() + 1
    }

    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Returns true if the elements are in row-major order without gaps; strides of dimensions of extent 1 are ignored.
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.numel() == 0
            || self.sizes.iter().zip(&self.strides).rev().all(|(&size, &stride)| {
                let fits = size == 1 || stride == expected;
                expected *= size;
                fits
            })
    }

    /// Returns the elements' bytes in row-major order, copied only if they are not contiguous.
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        if self.is_contiguous() {
            return self.dense_bytes(0..self.numel() as usize);
        }
        let bytes = self.storage.bytes();
        let size = self.dtype.size();
        let mut out = Vec::with_capacity(self.numel() as usize * size);
        let mut index: Shape = smallvec::smallvec![0; self.rank()];
        for _ in 0..self.numel() {
            let at: i64 = self.offset + index.iter().zip(&self.strides).map(|(i, s)| i * s).sum::<i64>();
            let at = at as usize * size;
            out.extend_from_slice(bytes.get(at..at + size).unwrap_or_default());
            for (i, &n) in index.iter_mut().zip(&self.sizes).rev() {
                *i += 1;
                if *i < n {
                    break;
                }
                *i = 0;
            }
        }
        out.into()
    }

    /// Returns the bytes of a range of elements in storage order, which is row-major if the tensor is contiguous.
    pub fn dense_bytes(&self, elements: Range<usize>) -> Cow<'_, [u8]> {
        let byte = |element: usize| (self.offset as usize + element) * self.dtype.size();
        let range = byte(elements.start)..byte(elements.end);
        self.storage.read(range).unwrap_or_default()
    }

    /// Copies the elements from number `first` on, in the order of [`TensorData::dense_bytes`], to `to`; zeros if the storage has fewer.
    pub fn dense_bytes_to(&self, first: usize, to: &mut [u8]) {
        let start = (self.offset as usize + first) * self.dtype.size();
        if self.storage.read_to(start, to).is_none() {
            to.fill(0);
        }
    }

    /// Returns true if both tensors are views of storages with the same identity.
    pub fn shares_storage(&self, other: &TensorData) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }
}

/// Returns the row-major strides for `sizes`, with PyTorch's convention that an extent of 0 counts as 1.
pub fn contiguous_strides(sizes: &[i64]) -> Shape {
    let mut strides: Shape = smallvec::smallvec![1; sizes.len()];
    for i in (0..sizes.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1].saturating_mul(sizes[i + 1].max(1));
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_checked() {
        let storage = Arc::new(Storage::new(Arc::new(vec![0u8; 16]), Device::CPU));
        let t = |sizes: &[i64], strides: &[i64], offset| {
            TensorData::new(DType::Float, sizes, strides, offset, storage.clone())
        };
        assert!(t(&[2, 2], &[2, 1], 0).is_ok());
        assert!(matches!(
            t(&[2, 2], &[2, 1], 1),
            Err(TensorError::Bounds {
                needed: 20,
                available: 16
            })
        ));
        assert!(matches!(t(&[2], &[2, 1], 0), Err(TensorError::Rank { .. })));
        assert!(matches!(t(&[-1], &[1], 0), Err(TensorError::Range { .. })));
        assert!(matches!(t(&[i64::MAX, 4], &[1, 1], 0), Err(TensorError::Range { .. })));
        assert!(t(&[0, 100], &[100, 1], 99).is_ok(), "nothing is read");
    }

    /// A source that computes its bytes on first use.
    struct Counted(std::sync::OnceLock<Vec<u8>>);

    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            self.0.get_or_init(|| (0..8).collect())
        }
    }

    impl Source for Counted {
        fn len(&self) -> usize {
            8
        }

        fn read(&self, range: Range<usize>) -> Option<Cow<'_, [u8]>> {
            (range.end <= 8).then(|| range.map(|i| i as u8).collect::<Vec<u8>>().into())
        }
    }

    #[test]
    fn a_source_is_read_for_a_moment() {
        let source = Arc::new(Counted(std::sync::OnceLock::new()));
        let storage = Arc::new(Storage::of_source(source.clone(), Device::CPU));
        let t = TensorData::new(DType::Byte, [3].as_slice(), [1].as_slice(), 2, storage.clone()).unwrap();
        assert_eq!(*t.to_bytes(), [2, 3, 4]);
        assert_eq!(*t.dense_bytes(1..2), [3]);
        let mut to = [0; 2];
        t.dense_bytes_to(1, &mut to);
        assert_eq!(to, [3, 4]);
        t.dense_bytes_to(5, &mut to);
        assert_eq!(to, [0, 0], "beyond the source");
        assert!(storage.read(7..9).is_none() && storage.len() == 8);
        storage.release();
        assert!(source.0.get().is_none(), "nothing has been kept");
        assert!(TensorData::new(DType::Byte, [9].as_slice(), [1].as_slice(), 0, storage.clone()).is_err());
        assert_eq!(storage.bytes(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn bytes_come_in_row_major_order() {
        let storage = Arc::new(Storage::new(Arc::new(vec![0u8, 1, 2, 3, 4, 5]), Device::CPU));
        let t = TensorData::new(DType::Byte, [3, 2].as_slice(), [1, 3].as_slice(), 0, storage).unwrap();
        assert!(!t.is_contiguous());
        assert_eq!(*t.to_bytes(), [0, 3, 1, 4, 2, 5]);
        assert_eq!(contiguous_strides(&[2, 0, 3]).as_slice(), [3, 3, 1]);
    }
}
