//! The zip container of an archive that is being written.
//!
//! Every record is stored as it is and begins on a boundary of 64 bytes, so that whoever maps the file can use tensors where they lie; code
//! and its debug records are deflated when that pays, as PyTorch does.

use std::io::{Seek, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::error::SaveError;

/// Where records begin, in bytes.
const ALIGNMENT: u16 = 64;

/// The header of the padding field, `FB`, that PyTorch aligns with.
const PADDING_FIELD: u16 = u16::from_le_bytes(*b"FB");

/// Records that are no longer are not worth deflating.
const LEAST_DEFLATED: usize = 200;

/// A zip file whose records lie in one top directory.
pub(super) struct RecordWriter<W: Write + Seek> {
    zip: ZipWriter<W>,
    top: String,
    names: crc32fast::Hasher,
    contents: crc32fast::Hasher,
}

impl<W: Write + Seek> RecordWriter<W> {
    /// A file with no records yet, whose top directory is `top`.
    pub(super) fn new(out: W, top: &str) -> Result<RecordWriter<W>, SaveError> {
        if top.contains('/') {
            return Err(SaveError::Name {
                name: top.to_owned(),
                reason: "the top directory is one directory",
            });
        }
        check_name(top)?;
        Ok(RecordWriter {
            zip: ZipWriter::new(out).set_auto_large_file(),
            top: top.to_owned(),
            names: crc32fast::Hasher::new(),
            contents: crc32fast::Hasher::new(),
        })
    }

    /// Writes a record as it is.
    pub(super) fn stored(&mut self, name: &str, bytes: &[u8]) -> Result<(), SaveError> {
        self.record(name, bytes, CompressionMethod::Stored)
    }

    /// Writes a record of text, deflated unless it is tiny.
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

    /// Writes the record that names the archive by its contents, and the directory.
    pub(super) fn finish(mut self) -> Result<W, SaveError> {
        let id = format!(
            "{:020}{:020}",
            self.names.clone().finalize(),
            self.contents.clone().finalize()
        );
        self.stored(".data/serialization_id", id.as_bytes())?;
        Ok(self.zip.finish()?)
    }
}

/// Refuses the names that the reader refuses.
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
