//! Writer for the zip container of an archive.
//!
//! Every record begins at a multiple of 64 bytes and tensors are uncompressed, so that a process that maps the file can use tensors in place. As in PyTorch,
//! code and debug records are deflated if that makes them smaller.

use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::error::SaveError;

/// Alignment of the contents of entries, in bytes.
const ALIGNMENT: u16 = 64;

/// The id of the extra field `FB` in entry headers, by which PyTorch pads entries to the alignment.
const PADDING_FIELD: u16 = u16::from_le_bytes(*b"FB");

/// Maximum size in bytes of text entries that are not compressed.
const LEAST_DEFLATED: usize = 200;

/// The output of a zip file.
///
/// Dropping an unfinished [`ZipWriter`] finishes the file, and prints to the standard error stream if that fails. So the output ignores all writes once a write
/// has failed or the file was abandoned.
struct Output<W> {
    out: W,
    is_abandoned: Arc<AtomicBool>,
    /// Current position and length of the file, in bytes. They are needed to finish an abandoned file.
    position: u64,
    end: u64,
}

impl<W> Output<W> {
    /// Returns the result of `work`; `None` for an abandoned file.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<Option<T>> {
        if self.is_abandoned.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let result = work(&mut self.out);
        let is_over = result.as_ref().is_err_and(|e| e.kind() != io::ErrorKind::Interrupted);
        self.is_abandoned.fetch_or(is_over, Ordering::Relaxed);
        result.map(Some)
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.guarded(|out| out.write(bytes))?.unwrap_or(bytes.len());
        self.position = self.position.saturating_add(written as u64);
        self.end = self.end.max(self.position);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.guarded(W::flush).map(|_| ())
    }
}

impl<W: Seek> Seek for Output<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = self.guarded(|out| out.seek(to))?;
        self.position = position.unwrap_or_else(|| match to {
            SeekFrom::Start(position) => position,
            SeekFrom::Current(by) => self.position.saturating_add_signed(by),
            SeekFrom::End(by) => self.end.saturating_add_signed(by),
        });
        Ok(self.position)
    }
}

/// Guard that marks the output as abandoned when it is dropped.
struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A writer of a zip file in which all entries are in one top directory.
pub(super) struct RecordWriter<W: Write + Seek> {
    /// Declared before the zip file, because it must be dropped first.
    abandon: Abandon,
    zip: ZipWriter<Output<W>>,
    top: String,
    names: crc32fast::Hasher,
    contents: crc32fast::Hasher,
}

impl<W: Write + Seek> RecordWriter<W> {
    /// Returns a writer of a zip file without entries, whose top directory is `top`.
    pub(super) fn new(out: W, top: &str) -> Result<RecordWriter<W>, SaveError> {
        if top.contains('/') {
            return Err(SaveError::Name {
                name: top.to_owned(),
                reason: "the top directory is one directory",
            });
        }
        check_name(top)?;
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let abandon = Abandon(Arc::clone(&is_abandoned));
        let output = Output {
            out,
            is_abandoned,
            position: 0,
            end: 0,
        };
        Ok(RecordWriter {
            abandon,
            zip: ZipWriter::new(output).set_auto_large_file(),
            top: top.to_owned(),
            names: crc32fast::Hasher::new(),
            contents: crc32fast::Hasher::new(),
        })
    }

    /// Writes an uncompressed entry.
    pub(super) fn stored(&mut self, name: &str, bytes: &[u8]) -> Result<(), SaveError> {
        self.record(name, bytes, CompressionMethod::Stored)
    }

    /// Writes an entry with text, compressed unless it is tiny.
    pub(super) fn deflated(&mut self, name: &str, bytes: &[u8]) -> Result<(), SaveError> {
        let method = if bytes.len() > LEAST_DEFLATED {
            CompressionMethod::Deflated
        } else {
            CompressionMethod::Stored
        };
        self.record(name, bytes, method)
    }

    fn record(&mut self, name: &str, bytes: &[u8], method: CompressionMethod) -> Result<(), SaveError> {
        check_name(name)?;
        let full = format!("{}/{name}", self.top);
        // No date: equal modules give equal archives.
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .last_modified_time(DateTime::default())
            .with_alignment_and_header_id(ALIGNMENT, PADDING_FIELD);
        self.zip.start_file(full, options)?;
        self.zip.write_all(bytes)?;
        self.names.update(name.as_bytes());
        self.contents.update(bytes);
        Ok(())
    }

    /// Writes the entry with the hash of the archive's contents, and the zip directory.
    pub(super) fn finish(mut self) -> Result<W, SaveError> {
        let id = format!(
            "{:020}{:020}",
            self.names.clone().finalize(),
            self.contents.clone().finalize()
        );
        self.stored(".data/serialization_id", id.as_bytes())?;
        let output = self.zip.finish()?;
        drop(self.abandon);
        Ok(output.out)
    }
}

/// Returns an error for names of entries that the reader does not accept.
fn check_name(name: &str) -> Result<(), SaveError> {
    let bad = |reason| {
        Err(SaveError::Name {
            name: name.to_owned(),
            reason,
        })
    };
    if name.split('/').any(str::is_empty) {
        return bad("it is no file's name");
    }
    if name.contains(['\\', '\0']) {
        return bad("it has a character that paths in archives cannot have");
    }
    if name.split('/').any(|part| part == "..") {
        return bad("it climbs out of the archive with `..`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A file of limited size, in bytes.
    struct Full(Cursor<Vec<u8>>, usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.1.saturating_sub(self.0.position() as usize);
            match room.min(bytes.len()) {
                0 if !bytes.is_empty() => Err(io::ErrorKind::StorageFull.into()),
                length => self.0.write(&bytes[..length]),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Full {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    fn write(room: usize) -> Result<Full, SaveError> {
        let mut records = RecordWriter::new(Full(Cursor::new(Vec::new()), room), "top")?;
        records.stored("a", &[1; 500])?;
        records.deflated("b", &[2; 5000])?;
        records.finish()
    }

    #[test]
    fn a_full_disk_is_one_error_and_nothing_is_written_after_it() {
        let whole = write(usize::MAX).unwrap().0.into_inner().len();
        for room in 0..whole {
            let error = write(room).err().map(|e| e.to_string());
            assert!(
                error.is_some_and(|e| e.contains("no storage space")),
                "{room} of {whole}"
            );
        }
    }

    #[test]
    fn what_is_not_finished_is_not_written() {
        let mut file = Cursor::new(Vec::new());
        let mut records = RecordWriter::new(&mut file, "top").unwrap();
        records.stored("a", &[1; 500]).unwrap();
        records.stored("../b", &[]).unwrap_err();
        drop(records);
        let bytes = file.into_inner();
        assert!(
            !bytes.windows(4).any(|four| four == b"PK\x05\x06"),
            "there is no end of a directory"
        );
    }
}
