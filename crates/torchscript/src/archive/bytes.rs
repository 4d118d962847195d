//! The bytes of an archive: a file that is read in pieces, or a buffer in memory.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use frazil_ir::{Device, FileBytes, FileRecord, Storage};

use super::error::ArchiveError;

/// Shared, reference-counted bytes. Cloning increments a reference count.
#[derive(Clone)]
pub struct SharedBytes(Owner);

#[derive(Clone)]
enum Owner {
    Memory(Arc<Vec<u8>>),
    File(Arc<FileBytes>),
}

impl SharedBytes {
    /// Returns the file at `path`, which is read when its bytes are needed.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> Result<SharedBytes, ArchiveError> {
        let file = File::open(path).map_err(|source| ArchiveError::Io {
            path: path.to_owned(),
            source,
        })?;
        SharedBytes::of_file(file, path)
    }

    /// Returns the open file, which is read when its bytes are needed; `path` is for messages.
    ///
    /// # Errors
    /// When the file's metadata cannot be read.
    pub fn of_file(file: File, path: &Path) -> Result<SharedBytes, ArchiveError> {
        let file = FileBytes::new(file, path).map_err(|source| ArchiveError::Io {
            path: path.to_owned(),
            source,
        })?;
        Ok(SharedBytes(Owner::File(Arc::new(file))))
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Owner::Memory(bytes) => bytes.len(),
            Owner::File(file) => file.len(),
        }
    }

    /// Returns true if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether every read so far found the file unchanged since it was opened; see [`FileBytes`].
    pub fn is_whole(&self) -> bool {
        self.file().is_none_or(|file| file.is_unchanged())
    }

    /// Returns the bytes in `range`; `None` if `range` exceeds the length.
    pub fn read(&self, range: Range<usize>) -> Option<Cow<'_, [u8]>> {
        match &self.0 {
            Owner::Memory(bytes) => bytes.get(range).map(Cow::Borrowed),
            Owner::File(file) => file.read(range).map(Cow::Owned),
        }
    }

    /// Returns the file from which the bytes are read; `None` for a buffer in memory.
    pub fn file(&self) -> Option<&Arc<FileBytes>> {
        match &self.0 {
            Owner::Memory(_) => None,
            Owner::File(file) => Some(file),
        }
    }

    /// Returns the bytes in `range` as a storage, which reads the file on first access; `None` when the range reaches beyond the end.
    pub(crate) fn storage(&self, range: Range<usize>, device: Device) -> Option<Storage> {
        Some(match &self.0 {
            Owner::Memory(bytes) => {
                bytes.get(range.clone())?;
                let bytes = Arc::clone(bytes);
                Storage::new(Arc::new(Window { bytes, range }), device)
            }
            Owner::File(file) => Storage::of_source(Arc::new(FileRecord::new(file, range)?), device),
        })
    }
}

/// A range of a shared buffer in memory.
struct Window {
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Window {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(self.range.clone()).unwrap_or_default()
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> SharedBytes {
        SharedBytes(Owner::Memory(Arc::new(bytes)))
    }
}

impl std::fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedBytes({} bytes)", self.len())
    }
}

/// Number of bytes that a read from the file fetches in advance, because directory entries are small.
const AHEAD: usize = 16 << 10;

/// A reader over [`SharedBytes`]: a position, and a buffer of bytes that were read ahead.
pub(super) struct Cursor {
    bytes: SharedBytes,
    at: u64,
    /// Offset and contents of the bytes that were read ahead.
    ahead: (u64, Vec<u8>),
}

impl Cursor {
    pub fn new(bytes: SharedBytes) -> Cursor {
        Cursor {
            bytes,
            at: 0,
            ahead: (0, Vec::new()),
        }
    }
}

impl Clone for Cursor {
    fn clone(&self) -> Cursor {
        Cursor {
            at: self.at,
            ..Cursor::new(self.bytes.clone())
        }
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cursor({:?} at {})", self.bytes, self.at)
    }
}

impl Read for Cursor {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.bytes.len();
        let at = usize::try_from(self.at).unwrap_or(length).min(length);
        let wanted = out.len().min(length - at);
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the file has changed");
        let file = match &self.bytes.0 {
            Owner::Memory(bytes) => {
                let from = bytes.get(at..at + wanted).unwrap_or_default();
                out[..wanted].copy_from_slice(from);
                self.at += wanted as u64;
                return Ok(wanted);
            }
            Owner::File(file) => file,
        };
        if wanted >= AHEAD {
            file.fill(&mut out[..wanted], at);
        } else {
            let (start, ahead) = &mut self.ahead;
            let known = |start: u64, ahead: &[u8]| {
                let from = usize::try_from((at as u64).checked_sub(start)?).ok()?;
                from.checked_add(wanted)
                    .filter(|&end| end <= ahead.len())
                    .map(|end| from..end)
            };
            if known(*start, ahead).is_none() {
                ahead.resize(AHEAD.min(length - at), 0);
                file.fill(ahead, at);
                *start = at as u64;
            }
            let range = known(*start, ahead).ok_or_else(cut)?;
            out[..wanted].copy_from_slice(ahead.get(range).unwrap_or_default());
        }
        if !self.bytes.is_whole() {
            return Err(cut());
        }
        self.at += wanted as u64;
        Ok(wanted)
    }
}

impl Seek for Cursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => (self.bytes.len() as u64).checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_buffers_read_alike_until_a_file_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes");
        let all: Vec<u8> = (0..3 * AHEAD + 100).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &all).unwrap();
        let sources = [SharedBytes::open(&path).unwrap(), SharedBytes::from(all.clone())];
        for bytes in &sources {
            assert_eq!(bytes.len(), all.len());
            for range in [0..0, 5..5, 1..100, 0..all.len(), all.len()..all.len()] {
                assert_eq!(bytes.read(range.clone()).as_deref(), all.get(range));
            }
            assert!(bytes.read(0..all.len() + 1).is_none());
            let mut cursor = Cursor::new(bytes.clone());
            let mut read = vec![0; 2 * AHEAD];
            cursor.seek(SeekFrom::End(-50)).unwrap();
            assert_eq!(cursor.read(&mut read).unwrap(), 50);
            assert_eq!(read[..50], all[all.len() - 50..]);
            assert_eq!(cursor.read(&mut read).unwrap(), 0);
            cursor.seek(SeekFrom::Start(7)).unwrap();
            cursor.clone().read_exact(&mut read).unwrap();
            assert_eq!(read, all[7..7 + 2 * AHEAD]);
            let mut whole = Vec::new();
            io::copy(&mut cursor, &mut whole).unwrap();
            assert_eq!(whole, all[7..]);
            cursor.seek(SeekFrom::Current(-10)).unwrap();
            assert_eq!(cursor.read(&mut read[..3]).unwrap(), 3);
            assert_eq!(read[..3], all[all.len() - 10..][..3]);
            assert!(cursor.seek(SeekFrom::Current(i64::MIN)).is_err());
            assert!(bytes.is_whole());
        }
        File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
        let [file, _] = &sources;
        assert_eq!(file.read(8..12).as_deref(), Some(&[0; 4][..]));
        assert!(!file.is_whole());
        assert!(Cursor::new(file.clone()).read(&mut [0; 20]).is_err());
    }
}
