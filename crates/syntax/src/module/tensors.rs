//! The tensor file of a module file: large storages in the safetensors format, whose bytes are read on first use.

use crate::dtypes::to_safetensors;
use frazil_ir::{DType, Device, FileBytes, FileRecord, Storage, TensorData};
use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Size in bytes of the field with the header's length, at the start of the file.
const LENGTH_BYTES: usize = 8;
/// The key of the checksum in the file's metadata. The value is hexadecimal.
const CHECKSUM: &str = "crc32";
/// Maximum size of a header in bytes, as in the `safetensors` crate.
const MOST_HEADER: usize = 100_000_000;

/// The provider of the bytes of storages that are not in the module file's text.
pub trait TensorSource {
    /// Returns the storage with the key `key`, marked as being on `device`.
    fn storage(&self, key: &str, device: Device) -> Option<Storage>;

    /// Returns the recorded checksum of all storages of this source, if there is one: see [`TensorFile::checksum`].
    fn checksum(&self) -> Option<u32> {
        None
    }
}

/// A source without storages, for module files whose text contains all bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTensors;

impl TensorSource for NoTensors {
    fn storage(&self, _: &str, _: Device) -> Option<Storage> {
        None
    }
}

/// An open safetensors file, of which only the header has been read. Its storages keep it open, and read their bytes on first use: [`FileBytes::is_unchanged`]
/// returns whether all reads so far succeeded.
#[derive(Debug)]
pub struct TensorFile {
    file: Arc<FileBytes>,
    metadata: Metadata,
    /// Offset in the file of the first tensor's bytes.
    start: usize,
}

/// The reason why a tensor file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TensorFileError {
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The path of the tensor file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file is not a safetensors file, or is damaged.
    #[error("{path} is not a valid safetensors file: {source}")]
    Format {
        /// The path of the tensor file.
        path: PathBuf,
        /// The error of the format.
        #[source]
        source: SafeTensorError,
    },
}

impl TensorFile {
    /// Opens `path` and reads its header.
    ///
    /// # Errors
    /// If it cannot be read or is not a safetensors file.
    pub fn open(path: &Path) -> Result<TensorFile, TensorFileError> {
        let io = |source| TensorFileError::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(io)?;
        let file = FileBytes::new(file, path).map_err(io)?;
        let header = read_header(&file);
        if !file.is_unchanged() {
            return Err(io(io::Error::other("it cannot be read, or has changed meanwhile")));
        }
        let (metadata, start) = header.map_err(|source| TensorFileError::Format {
            path: path.to_owned(),
            source,
        })?;
        Ok(TensorFile {
            file: Arc::new(file),
            metadata,
            start,
        })
    }

    /// Returns the file from which the tensors' bytes are read.
    pub fn file(&self) -> &Arc<FileBytes> {
        &self.file
    }

    /// Returns the dtype, the sizes, and the byte range of the tensor with the key `key`.
    pub fn info(&self, key: &str) -> Option<&TensorInfo> {
        self.metadata.info(key)
    }

    /// Returns the recorded CRC-32 of the tensors, which covers all bytes after the header. It was computed when the file was written, and is not checked.
    /// Files of other programs have none.
    pub fn checksum(&self) -> Option<u32> {
        let text = self.metadata.metadata().as_ref()?.get(CHECKSUM)?;
        u32::from_str_radix(text, 16).ok()
    }

    /// Returns the bytes of the tensor with the key `key`; `None` if there is no such tensor.
    ///
    /// # Errors
    /// If the file has changed since it was opened.
    pub fn read(&self, key: &str) -> Option<io::Result<Vec<u8>>> {
        let bytes = self.file.read(self.range(key)?)?;
        Some(match self.file.is_unchanged() {
            true => Ok(bytes),
            false => Err(io::Error::other("it has changed since it was opened")),
        })
    }

    fn range(&self, key: &str) -> Option<Range<usize>> {
        let (from, to) = self.metadata.info(key)?.data_offsets;
        Some(self.start.checked_add(from)?..self.start.checked_add(to)?)
    }
}

impl TensorSource for TensorFile {
    fn storage(&self, key: &str, device: Device) -> Option<Storage> {
        let record = FileRecord::new(&self.file, self.range(key)?)?;
        Some(Storage::of_source(Arc::new(record), device))
    }

    fn checksum(&self) -> Option<u32> {
        self.checksum()
    }
}

/// Returns the header of `file`, and its length in bytes. The tensors must fill the rest of the file.
fn read_header(file: &FileBytes) -> Result<(Metadata, usize), SafeTensorError> {
    let length = file.read(0..LENGTH_BYTES).ok_or(SafeTensorError::HeaderTooSmall)?;
    let length = <[u8; LENGTH_BYTES]>::try_from(length).map_err(|_| SafeTensorError::HeaderTooSmall)?;
    let length = usize::try_from(u64::from_le_bytes(length)).map_err(|_| SafeTensorError::HeaderTooLarge)?;
    if length > MOST_HEADER {
        return Err(SafeTensorError::HeaderTooLarge);
    }
    let start = LENGTH_BYTES + length;
    let header = file
        .read(LENGTH_BYTES..start)
        .ok_or(SafeTensorError::InvalidHeaderLength)?;
    let text = std::str::from_utf8(&header).map_err(SafeTensorError::InvalidHeader)?;
    let metadata: Metadata = serde_json::from_str(text).map_err(SafeTensorError::InvalidHeaderDeserialization)?;
    match start.checked_add(metadata.data_len()) == Some(file.len()) {
        true => Ok((metadata, start)),
        false => Err(SafeTensorError::MetadataIncompleteBuffer),
    }
}

/// Writes a safetensors file with the elements of these tensors, by key, in row-major order, to `out`, which is empty. Returns its checksum: see
/// [`TensorFile::checksum`].
///
/// # Errors
/// If `out` cannot be written.
pub fn write_tensors(tensors: &[(String, &TensorData)], out: &mut File) -> io::Result<u32> {
    let bytes: Vec<_> = tensors.iter().map(|(_, data)| data.to_bytes()).collect();
    let entries = tensors.iter().zip(&bytes);
    let entries = entries.map(|((key, data), bytes)| (key.clone(), Entry::new(bytes, data.dtype)));
    write_entries(entries.collect(), out).map_err(|error| match error {
        SafeTensorError::IoError(error) => error,
        other => io::Error::other(other),
    })
}

/// Writes a safetensors file with these entries and their checksum to the empty file `out`, and returns the checksum. The bytes are those that the
/// `safetensors` crate would write, but the crate can only write to a path.
pub(super) fn write_entries(mut entries: Vec<(String, Entry<'_>)>, out: &mut File) -> Result<u32, SafeTensorError> {
    // As in that crate: by descending alignment, then by name.
    entries.sort_by(|(name, a), (other, b)| b.dtype.cmp(&a.dtype).then_with(|| name.cmp(other)));
    let mut end = 0;
    let infos = entries.iter().map(|(name, entry)| {
        let start = end;
        end += entry.bytes.len();
        let info = TensorInfo {
            dtype: entry.dtype,
            shape: entry.shape.to_vec(),
            data_offsets: (start, end),
        };
        (name.clone(), info)
    });
    let infos: Vec<(String, TensorInfo)> = infos.collect();
    let header = |checksum: u32| {
        let said = HashMap::from([(CHECKSUM.to_owned(), format!("{checksum:08x}"))]);
        let metadata = Metadata::new(Some(said), infos.clone())?;
        let mut header = serde_json::to_vec(&metadata)?;
        header.resize(header.len().next_multiple_of(LENGTH_BYTES), b' ');
        match header.len() > MOST_HEADER {
            true => Err(SafeTensorError::HeaderTooLarge),
            false => Ok(header),
        }
    };
    // Bytes are read once: the header, whose length does not depend on the checksum, is written again once it is known.
    let preliminary = header(0)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffered = BufWriter::new(&mut *out);
    buffered.write_all(&(preliminary.len() as u64).to_le_bytes())?;
    buffered.write_all(&preliminary)?;
    for (_, entry) in &entries {
        buffered.write_all(entry.bytes)?;
        hasher.update(entry.bytes);
    }
    buffered.flush()?;
    drop(buffered);
    let checksum = hasher.finalize();
    out.seek(SeekFrom::Start(LENGTH_BYTES as u64))?;
    out.write_all(&header(checksum)?)?;
    Ok(checksum)
}

/// An entry to be written to a tensor file: its bytes, and the dtype that the header states for other programs.
pub(super) struct Entry<'a> {
    bytes: &'a [u8],
    dtype: Dtype,
    shape: [usize; 1],
}

impl<'a> Entry<'a> {
    pub(super) fn of_storage(storage: &'a Storage, dtype: DType) -> Entry<'a> {
        Entry::new(storage.bytes(), dtype)
    }

    pub(super) fn new(bytes: &'a [u8], dtype: DType) -> Entry<'a> {
        // Raw bytes if the format has no such elements; also for bools, whose bytes may differ from 0 and 1.
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
            bytes,
            dtype,
            shape: [bytes.len() / size],
        }
    }
}

impl<T: TensorSource + ?Sized> TensorSource for &T {
    fn storage(&self, key: &str, device: Device) -> Option<Storage> {
        (**self).storage(key, device)
    }

    fn checksum(&self) -> Option<u32> {
        (**self).checksum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::TensorView;

    #[test]
    fn files_are_those_of_the_crate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let tensors: [(&str, DType, Dtype, usize, &[u8]); 5] = [
            ("b", DType::Float, Dtype::F32, 2, &[1, 2, 3, 4, 5, 6, 7, 8]),
            ("a", DType::Float, Dtype::F32, 1, &[9; 4]),
            ("odd", DType::Long, Dtype::U8, 3, &[1, 2, 3]),
            ("long", DType::Long, Dtype::I64, 1, &[7; 8]),
            ("none", DType::Byte, Dtype::U8, 0, &[]),
        ];
        let entries = tensors
            .iter()
            .map(|&(name, dtype, _, _, bytes)| (name.to_owned(), Entry::new(bytes, dtype)));
        let checksum = write_entries(entries.collect(), &mut File::create(&path).unwrap()).unwrap();
        let views = tensors
            .iter()
            .map(|&(name, _, dtype, n, bytes)| (name, TensorView::new(dtype, vec![n], bytes).unwrap()));
        assert_eq!(
            std::fs::read(&path).unwrap(),
            safetensors::serialize(views, Some([("crc32".to_owned(), format!("{checksum:08x}"))].into())).unwrap()
        );

        let file = TensorFile::open(&path).unwrap();
        assert_eq!(file.checksum(), Some(checksum));
        for (name, _, dtype, n, bytes) in tensors {
            assert_eq!(file.read(name).unwrap().unwrap(), bytes);
            assert_eq!(file.storage(name, Device::CPU).unwrap().bytes(), bytes);
            let info = file.info(name).unwrap();
            assert_eq!((info.dtype, &info.shape[..]), (dtype, &[n][..]));
        }
        assert!(file.read("c").is_none() && file.storage("c", Device::CPU).is_none());
    }

    /// No signal kills the process, and wrong numbers are never used.
    #[test]
    fn a_file_that_is_cut_or_rewritten_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes = vec![7; 100_000];
        let change = |length: u64, byte: u8| {
            let mut file = File::options().write(true).open(&path).unwrap();
            file.set_len(length).unwrap();
            if length > 0 {
                file.write_all(&[byte]).unwrap();
            }
        };
        for (length, byte) in [(0, 0), (50, 0), (5000, 0), (200_000, 0), (100_100, 1)] {
            write_entries(
                vec![("a".to_owned(), Entry::new(&bytes, DType::Byte))],
                &mut File::create(&path).unwrap(),
            )
            .unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let file = TensorFile::open(&path).unwrap();
            let storage = file.storage("a", Device::CPU).unwrap();
            change(length, byte);
            assert!(file.read("a").unwrap().is_err(), "{length}");
            assert_eq!(storage.bytes(), vec![0; 100_000]);
            assert!(!file.file().is_unchanged());
            assert!(TensorFile::open(&path).is_err());
        }
    }
}
