//! The bytes of an archive: a file that is read piece by piece, or a buffer.
//!
//! A file is read and not mapped. Whoever shortens a mapped file ends every process that touches the pages that were there; a read only fails.
//! Where a piece cannot be read, zeros take its place, and [`SharedBytes::is_whole`] says so from then on: readers of tensors have no way to fail,
//! so those who make use of results look there before they give them to anybody.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::error;

use super::error::ArchiveError;

/// Bytes that several owners share. Cloning is a reference count.
#[derive(Clone)]
pub struct SharedBytes(Owner);

#[derive(Clone)]
enum Owner {
    Memory(Arc<Vec<u8>>),
    File(Arc<OpenFile>),
}

struct OpenFile {
    file: File,
    path: PathBuf,
    /// Bytes when it was opened.
    length: usize,
    is_cut: AtomicBool,
}

impl SharedBytes {
    /// The file at `path`, which is read when its bytes are needed.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> Result<SharedBytes, ArchiveError> {
        let io = |source| ArchiveError::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let length = usize::try_from(length).map_err(|e| io(io::Error::other(e)))?;
        Ok(SharedBytes(Owner::File(Arc::new(OpenFile {
            file,
            path: path.to_owned(),
            length,
            is_cut: AtomicBool::new(false),
        }))))
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Owner::Memory(bytes) => bytes.len(),
            Owner::File(file) => file.length,
        }
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all bytes could be read so far.
    pub fn is_whole(&self) -> bool {
        match &self.0 {
            Owner::Memory(_) => true,
            Owner::File(file) => !file.is_cut.load(Ordering::Relaxed),
        }
    }

    /// The bytes in `range`; `None` when it reaches beyond the end.
    pub fn read(&self, range: Range<usize>) -> Option<Cow<'_, [u8]>> {
        match &self.0 {
            Owner::Memory(bytes) => bytes.get(range).map(Cow::Borrowed),
            Owner::File(file) => {
                let mut bytes = vec![0; self.length_of(&range)?];
                file.fill(&mut bytes, range.start);
                Some(Cow::Owned(bytes))
            }
        }
    }

    /// The bytes in `range`, to be kept: the first lies at a multiple of [`ALIGNMENT`], as records of archives do. `None` as of [`SharedBytes::read`].
    pub(crate) fn keep(&self, range: Range<usize>) -> Option<Kept> {
        let length = self.length_of(&range)?;
        let mut bytes = vec![0; length + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let to = bytes.get_mut(start..start + length)?;
        match &self.0 {
            Owner::Memory(all) => to.copy_from_slice(all.get(range)?),
            Owner::File(file) => file.fill(to, range.start),
        }
        Some(Kept {
            range: start..start + length,
            bytes,
        })
    }

    /// All bytes, where they are in memory anyway.
    pub(crate) fn in_memory(&self) -> Option<&[u8]> {
        match &self.0 {
            Owner::Memory(bytes) => Some(bytes),
            Owner::File(_) => None,
        }
    }

    fn length_of(&self, range: &Range<usize>) -> Option<usize> {
        (range.end <= self.len()).then_some(range.end)?.checked_sub(range.start)
    }
}

impl OpenFile {
    /// Reads what is at `at`, all of it or zeros.
    fn fill(&self, bytes: &mut [u8], at: usize) {
        if let Err(e) = read_exact_at(&self.file, bytes, at as u64) {
            bytes.fill(0);
            if !self.is_cut.swap(true, Ordering::Relaxed) {
                error!("{} has changed while it was in use: {e}", self.path.display());
            }
        }
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[n..];
        at += n as u64;
    }
    Ok(())
}

/// Where records of archives begin: at multiples of this many bytes.
const ALIGNMENT: usize = 64;

/// Bytes in memory at a multiple of [`ALIGNMENT`].
pub(crate) struct Kept {
    bytes: Vec<u8>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Kept {
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

/// Bytes that are read at once for the next reads: entries of directories are small.
const AHEAD: usize = 16 << 10;

/// Reads [`SharedBytes`] from a place on. A clone is at the same place.
pub(super) struct Cursor {
    bytes: SharedBytes,
    at: u64,
    /// What has been read ahead, and where it begins.
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
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter");
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
                assert_eq!(bytes.read(range.clone()).as_deref(), all.get(range.clone()));
                let kept = bytes.keep(range.clone()).unwrap();
                assert_eq!(kept.as_ref(), &all[range]);
                assert_eq!(kept.as_ref().as_ptr().align_offset(ALIGNMENT), 0);
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
        assert_eq!(file.read(0..4).as_deref(), Some(&all[..4]));
        assert!(file.is_whole());
        assert_eq!(file.read(8..12).as_deref(), Some(&[0; 4][..]));
        assert!(!file.is_whole());
        assert!(Cursor::new(file.clone()).read(&mut [0; 20]).is_err());
    }
}
