//! `.pt` archives: a zip file of source code, pickled objects and raw tensor data.
//!
//! All records are in one top directory:
//!
//! | record | content |
//! | --- | --- |
//! | `version` (or `.data/version`) | the format version in decimal |
//! | `byteorder` | `little` or `big`; little when absent |
//! | `code/a/b.py` | the source of the classes and functions `__torch__.a.b.*` |
//! | `code/a/b.py.debug_pkl` | where that code came from ([`SourceMap`]) |
//! | `data.pkl`, `data/N` | the module object, and the storages that it refers to |
//! | `constants.pkl`, `constants/N` | the tensors that code names `CONSTANTS.c0`, `CONSTANTS.c1`, ... |
//! | `extra/...` | files that the program's author added |
//! | `traced_inputs.pkl`, `traced_inputs/N` | shapes of the inputs that a traced module was traced with |

mod bytes;
mod debug;
mod error;
pub mod foreign;
mod pickle;
mod zip;

use std::ops::Range;
use std::path::Path;

pub use bytes::SharedBytes;
pub use debug::{SourceMap, SourcePiece, SourcePlace};
pub use error::ArchiveError;
pub use pickle::{MAX_VALUES, Pickle, PickleError, PickleId, PickleValue};
pub use zip::{Limits, SMALL_BYTES};

use zip::ZipDirectory;

/// The format versions that current PyTorch reads.
const SUPPORTED_VERSIONS: std::ops::RangeInclusive<u64> = 1..=10;

/// An open archive. Only the zip directory and the version are read when it is opened.
#[derive(Debug)]
pub struct Archive {
    directory: ZipDirectory,
    version: u64,
}

impl Archive {
    /// Opens the archive at `path`, whose records are read when they are needed.
    ///
    /// # Errors
    /// When the file cannot be read, is no archive, or its format version is not supported.
    pub fn open(path: &Path) -> Result<Archive, ArchiveError> {
        Archive::new(SharedBytes::open(path)?, Limits::default())
    }

    /// Opens an archive that is in memory.
    ///
    /// # Errors
    /// When the bytes are no archive, exceed a limit, or the format version is not supported.
    pub fn new(bytes: SharedBytes, limits: Limits) -> Result<Archive, ArchiveError> {
        let directory = ZipDirectory::open(bytes, limits)?;
        let version = read_version(&directory)?;
        if directory.contains("byteorder") {
            let order = directory.text("byteorder")?;
            if order != "little" {
                return Err(ArchiveError::Version {
                    entry: "byteorder".into(),
                    reason: format!("byte order {order:?} is not supported, only \"little\""),
                });
            }
        }
        Ok(Archive { directory, version })
    }

    /// Returns all of the archive's bytes.
    pub fn file(&self) -> &SharedBytes {
        self.directory.file()
    }

    /// Returns the maximum number of bytes that reading the archive may need in addition to its weights: 20 times its size, and 32 MiB. Compressed weights
    /// count with their inflated size.
    pub fn reading_bytes(&self) -> u64 {
        self.directory.reading_bytes()
    }

    /// Returns the format version, which selects the semantics of operators that have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the name of the top directory, which contains all entries, with its closing slash.
    pub fn top(&self) -> &str {
        self.directory.top()
    }

    /// Returns the names of all entries, without the top directory.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.directory.names()
    }

    /// Returns whether the archive has an entry called `name` (without the top directory).
    pub fn contains(&self, name: &str) -> bool {
        self.directory.contains(name)
    }

    /// Returns a copy of an entry's bytes, with its checksum verified.
    ///
    /// # Errors
    /// When there is no such entry, or it is damaged or too large.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, ArchiveError> {
        self.directory.read(name)
    }

    /// Returns a text entry.
    ///
    /// # Errors
    /// As [`Archive::read`], and when the entry is no UTF-8.
    pub fn text(&self, name: &str) -> Result<String, ArchiveError> {
        self.directory.text(name)
    }

    /// Returns a pickled entry.
    ///
    /// # Errors
    /// As [`Archive::read`], and when the entry is no pickle that archives may have.
    pub fn pickle(&self, name: &str) -> Result<Pickle, ArchiveError> {
        Pickle::parse(&self.read(name)?).map_err(|source| ArchiveError::Pickle {
            entry: name.to_owned(),
            source,
        })
    }

    /// Returns the debug records of the code file `name`, if the archive has them.
    ///
    /// # Errors
    /// When the record is damaged.
    pub fn source_map(&self, name: &str) -> Result<Option<SourceMap>, ArchiveError> {
        let record = format!("{name}.debug_pkl");
        if !self.contains(&record) {
            return Ok(None);
        }
        SourceMap::parse(&record, &self.read(&record)?).map(Some)
    }

    /// Returns the bytes of an entry as a range that has not been read yet: tensor data.
    ///
    /// # Errors
    /// When there is no such entry, or its compressed form is damaged.
    pub fn bytes(&self, name: &str) -> Result<(SharedBytes, Range<usize>), ArchiveError> {
        self.directory.bytes(name)
    }
}

fn read_version(directory: &ZipDirectory) -> Result<u64, ArchiveError> {
    let names = ["version", ".data/version"];
    let entry = names.into_iter().find(|name| directory.contains(name)).ok_or_else(|| {
        match foreign::of_entries(&directory.names().collect::<Vec<_>>()) {
            Some(foreign) => foreign.into(),
            None => ArchiveError::Missing {
                entry: "version".into(),
                hint: "a TorchScript archive states its format version",
            },
        }
    })?;
    let text = directory.text(entry)?;
    let refuse = || ArchiveError::Version {
        entry: entry.to_owned(),
        reason: format!(
            "format version {:?} is not supported, only {} to {}",
            text.trim(),
            SUPPORTED_VERSIONS.start(),
            SUPPORTED_VERSIONS.end()
        ),
    };
    text.trim()
        .parse()
        .ok()
        .filter(|version| SUPPORTED_VERSIONS.contains(version))
        .ok_or_else(refuse)
}
