//! The file of large storages: safetensors, read through a memory map.

use crate::dtypes::to_safetensors;
use frazil_ir::{DType, Storage};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, View};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are shared.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Where the bytes of a module file's large storages come from.
pub trait TensorSource {
    /// The bytes under `key`.
    fn bytes(&self, key: &str) -> Option<SharedBytes>;
}

/// No bytes, for texts that hold all of theirs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTensors;

impl TensorSource for NoTensors {
    fn bytes(&self, _: &str) -> Option<SharedBytes> {
        None
    }
}

/// A safetensors file that is mapped into memory. Storages that are taken from it keep the mapping alive.
#[derive(Debug)]
pub struct TensorFile {
    map: Arc<memmap2::Mmap>,
    entries: HashMap<String, Range<usize>>,
}

/// Why a tensor file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TensorFileError {
    /// It cannot be opened or mapped.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is no safetensors file, or a damaged one.
    #[error("{path} is not a valid safetensors file: {source}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: safetensors::SafeTensorError,
    },
}

impl TensorFile {
    /// Maps `path`.
    ///
    /// The file must not be changed while the module that was read from it is in use; [`write_module`](super::write_module) puts a new file
    /// in its place and leaves the mapped one alone.
    ///
    /// # Errors
    /// When it cannot be read or is no safetensors file.
    pub fn open(path: &Path) -> Result<TensorFile, TensorFileError> {
        let io = |source| TensorFileError::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(io)?;
        #[expect(unsafe_code, reason = "mapping a file has no safe form")]
        // SAFETY: the mapping is private to the returned value and only read. Somebody who truncates the file meanwhile gets a fault, as
        // with every mapped file; our own writer replaces files and never changes one.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
        let format = |source| TensorFileError::Format {
            path: path.to_owned(),
            source,
        };
        let tensors = SafeTensors::deserialize(&map).map_err(format)?;
        let start = map.as_ptr().addr();
        let entries = tensors
            .iter()
            .map(|(name, view)| {
                let from = view.data().as_ptr().addr() - start;
                (name.to_owned(), from..from + view.data().len())
            })
            .collect();
        Ok(TensorFile {
            map: Arc::new(map),
            entries,
        })
    }
}

/// Bytes of a mapped file.
struct Window {
    map: Arc<memmap2::Mmap>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Window {
    fn as_ref(&self) -> &[u8] {
        self.map.get(self.range.clone()).unwrap_or_default()
    }
}

impl TensorSource for TensorFile {
    fn bytes(&self, key: &str) -> Option<SharedBytes> {
        let range = self.entries.get(key)?.clone();
        let window = Window {
            map: self.map.clone(),
            range,
        };
        // Elements of every dtype are read in place, so they must lie on their boundaries.
        const ALIGNMENT: usize = 8;
        let bytes = window.as_ref();
        if bytes.as_ptr().addr().is_multiple_of(ALIGNMENT) {
            Some(Arc::new(window))
        } else {
            Some(Arc::new(bytes.to_vec()))
        }
    }
}

/// An entry to be written: bytes with the element type that a reader may see them as.
pub(super) struct Entry<'a> {
    bytes: Cow<'a, [u8]>,
    dtype: Dtype,
    shape: [usize; 1],
}

impl<'a> Entry<'a> {
    pub(super) fn of_storage(storage: &'a Storage, dtype: DType) -> Entry<'a> {
        Entry::new(storage.bytes(), dtype)
    }

    pub(super) fn new(bytes: &'a [u8], dtype: DType) -> Entry<'a> {
        // Raw bytes where the format has no such elements; bools too, whose bytes may be other than 0 and 1.
        let dtype = match dtype {
            DType::Bool => Dtype::U8,
            dtype => to_safetensors(dtype).unwrap_or(Dtype::U8),
        };
        let size = dtype.bitsize() / 8;
        let (dtype, size) = if bytes.len().is_multiple_of(size) {
            (dtype, size)
        } else {
            (Dtype::U8, 1)
        };
        Entry {
            bytes: Cow::Borrowed(bytes),
            dtype,
            shape: [bytes.len() / size],
        }
    }
}

impl View for Entry<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

impl<T: TensorSource + ?Sized> TensorSource for &T {
    fn bytes(&self, key: &str) -> Option<SharedBytes> {
        (**self).bytes(key)
    }
}
