//! Open files that are read on demand.
//!
//! A file is read and not mapped: truncating a mapped file kills every process that accesses the missing pages, while a read only fails. Readers of tensors
//! cannot return errors. So if a range cannot be read, or the file has changed since it was opened, zeros are returned, and [`FileBytes::is_unchanged`] returns
//! false from then on. Callers must check it before they return results.

use crate::Source;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;
use tracing::error;

/// An open file whose bytes are read on demand; see the [module's documentation](self).
#[derive(Debug)]
pub struct FileBytes {
    file: File,
    path: PathBuf,
    /// Length of the file in bytes when it was opened.
    length: usize,
    /// Time of the last modification of its content when it was opened. Names and permissions are ignored: a removed or renamed file is still the same.
    modified: Option<SystemTime>,
    has_changed: AtomicBool,
}

impl FileBytes {
    /// Returns the file with its current length. `path` is used in messages.
    ///
    /// # Errors
    /// If the system returns no metadata of the file.
    pub fn new(file: File, path: &Path) -> io::Result<FileBytes> {
        let found = file.metadata()?;
        Ok(FileBytes {
            length: usize::try_from(found.len()).map_err(io::Error::other)?,
            modified: found.modified().ok(),
            path: path.to_owned(),
            file,
            has_changed: AtomicBool::new(false),
        })
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the path with which the file was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length of the file in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns true if the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns whether all reads so far returned the original bytes of the file. A change is detected by the file's size and modification time, with the
    /// resolution of the file system.
    pub fn is_unchanged(&self) -> bool {
        !self.has_changed.load(Ordering::Relaxed)
    }

    /// Fills `bytes` with the bytes of the file from offset `at`, or with zeros.
    pub fn fill(&self, bytes: &mut [u8], at: usize) {
        // The comparison comes second: a writer changes the modification time before the bytes.
        let read = read_exact_at(&self.file, bytes, at as u64).and_then(|()| self.compare());
        if let Err(e) = read {
            bytes.fill(0);
            if !self.has_changed.swap(true, Ordering::Relaxed) {
                error!("{} has changed while it was in use: {e}", self.path.display());
            }
        }
    }

    /// Returns the bytes in `range`; `None` if the range exceeds the file.
    pub fn read(&self, range: Range<usize>) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length_within(&range, self.length)?];
        self.fill(&mut bytes, range.start);
        Some(bytes)
    }

    /// Returns the bytes in `range`, in memory aligned to [`ALIGNMENT`], as records of archives are; `None` if it exceeds the file.
    fn read_aligned(&self, range: Range<usize>) -> Option<Aligned> {
        let length = length_within(&range, self.length)?;
        let mut bytes = vec![0; length.checked_add(ALIGNMENT)?];
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        self.fill(bytes.get_mut(start..start + length)?, range.start);
        Some(Aligned {
            range: start..start + length,
            bytes,
        })
    }

    /// Returns an error if the file has been modified since it was opened.
    fn compare(&self) -> io::Result<()> {
        let found = self.file.metadata()?;
        match found.len() == self.length as u64 && found.modified().ok() == self.modified {
            true => Ok(()),
            false => Err(io::Error::other("it has another size or time of change")),
        }
    }
}

fn length_within(range: &Range<usize>, length: usize) -> Option<usize> {
    (range.end <= length).then_some(range.end)?.checked_sub(range.start)
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

/// Alignment in bytes of records that are kept in memory, as in archives.
const ALIGNMENT: usize = 64;

/// Bytes in memory, aligned to [`ALIGNMENT`].
struct Aligned {
    bytes: Vec<u8>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(self.range.clone()).unwrap_or_default()
    }
}

/// A byte range of a file, read on demand: into a temporary buffer, or permanently.
pub struct FileRecord {
    file: Arc<FileBytes>,
    range: Range<usize>,
    /// The bytes of the range, after they have been read permanently; `None` inside if reading failed.
    kept: OnceLock<Option<Aligned>>,
}

impl FileRecord {
    /// Returns the record of the bytes of `file` in `range`; `None` if the range exceeds the file.
    pub fn new(file: &Arc<FileBytes>, range: Range<usize>) -> Option<FileRecord> {
        length_within(&range, file.len())?;
        Some(FileRecord {
            file: Arc::clone(file),
            range,
            kept: OnceLock::new(),
        })
    }
}

impl AsRef<[u8]> for FileRecord {
    fn as_ref(&self) -> &[u8] {
        let kept = self.kept.get_or_init(|| self.file.read_aligned(self.range.clone()));
        kept.as_ref().map(AsRef::as_ref).unwrap_or_default()
    }
}

impl Source for FileRecord {
    fn len(&self) -> usize {
        self.range.len()
    }

    fn read(&self, range: Range<usize>) -> Option<Cow<'_, [u8]>> {
        if let Some(Some(kept)) = self.kept.get() {
            return kept.as_ref().get(range).map(Cow::Borrowed);
        }
        let start = self.range.start.checked_add(range.start)?;
        let end = self.range.start.checked_add(range.end)?;
        let is_inside = end <= self.range.end;
        is_inside.then(|| self.file.read(start..end)).flatten().map(Cow::Owned)
    }

    fn read_to(&self, start: usize, to: &mut [u8]) -> Option<()> {
        let range = start..start.checked_add(to.len())?;
        if let Some(Some(kept)) = self.kept.get() {
            to.copy_from_slice(kept.as_ref().get(range)?);
            return Some(());
        }
        (range.end <= self.range.len()).then(|| self.file.fill(to, self.range.start + start))
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::Duration;

    /// A temporary file, which is removed on drop.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("frazil-{name}-{}", std::process::id()));
            std::fs::write(&path, content()).unwrap();
            // Makes sure that the next change has another modification time.
            std::thread::sleep(Duration::from_millis(20));
            Scratch(path)
        }

        fn open(&self) -> Arc<FileBytes> {
            Arc::new(FileBytes::new(File::open(&self.0).unwrap(), &self.0).unwrap())
        }

        /// Overwrites the file in place.
        fn overwrite(&self, bytes: &[u8]) {
            let mut file = File::options().write(true).open(&self.0).unwrap();
            file.write_all(bytes).unwrap();
        }

        fn overwrite_whole(&self, length: usize) {
            std::fs::write(&self.0, vec![7; length]).unwrap();
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn content() -> Vec<u8> {
        (0..1000).map(|i| (i % 251) as u8).collect()
    }

    #[test]
    fn records_are_read_when_they_are_needed() {
        let scratch = Scratch::new("records");
        let (file, all) = (scratch.open(), content());
        let record = FileRecord::new(&file, 100..300).unwrap();
        assert!(FileRecord::new(&file, 100..1001).is_none());
        assert_eq!(record.len(), 200);
        for _ in 0..2 {
            assert_eq!(record.read(10..20).as_deref(), Some(&all[110..120]));
            assert!(record.read(10..201).is_none() && record.read(usize::MAX..usize::MAX).is_none());
            let mut to = [0; 10];
            assert_eq!(record.read_to(10, &mut to), Some(()));
            assert_eq!(to, all[110..120]);
            assert!(record.read_to(191, &mut to).is_none() && record.read_to(usize::MAX, &mut to).is_none());
            assert_eq!(record.as_ref(), &all[100..300]);
            assert_eq!(record.as_ref().as_ptr().align_offset(ALIGNMENT), 0);
        }
        // Changes of names and permissions do not change the content.
        std::fs::remove_file(&scratch.0).unwrap();
        assert_eq!(file.read(0..1000), Some(all));
        assert!(file.is_unchanged());
    }

    #[test]
    fn every_change_in_place_is_found() {
        type Change = fn(&Scratch);
        let changes: [(&str, Change); 4] = [
            ("shorter", |s| s.overwrite_whole(10)),
            ("longer", |s| s.overwrite_whole(2000)),
            ("as long", |s| s.overwrite_whole(1000)),
            ("one byte", |s| s.overwrite(&[1])),
        ];
        for (name, change) in changes {
            let scratch = Scratch::new(name);
            let file = scratch.open();
            let [early, late] = [0..500, 500..1000].map(|range| FileRecord::new(&file, range).unwrap());
            assert_eq!(early.as_ref(), &content()[..500]);
            change(&scratch);
            // Bytes in memory remain right.
            assert_eq!(early.as_ref(), &content()[..500]);
            assert!(file.is_unchanged(), "{name}");
            assert_eq!(late.as_ref(), [0; 500], "{name}");
            assert!(!file.is_unchanged(), "{name}");
            assert_eq!(file.read(0..4), Some(vec![0; 4]));
        }
    }
}
