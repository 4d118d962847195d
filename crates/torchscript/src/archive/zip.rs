//! The zip container of a `.pt` file and its checked directory.
//!
//! PyTorch stores every record uncompressed. So a tensor's bytes are a range of the file, and can be read on demand. Deflated records of other tools are
//! accepted too, and are inflated on each read.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use indexmap::IndexMap;
use zip::read::{ArchiveOffset, Config};
use zip::result::ZipResult;
use zip::{CompressionMethod, ZipArchive};

use super::bytes::{Cursor, SharedBytes};
use super::error::ArchiveError;
use super::foreign;

/// Bounds on the sizes that an untrusted archive may claim.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum number of entries in the directory.
    pub entries: usize,
    /// Maximum length of an entry's name, in bytes.
    pub name_bytes: usize,
    /// Maximum total of the inflated sizes of all compressed entries, in bytes. Stored entries are bounded by the
    /// file's size.
    pub inflated_bytes: u64,
    /// Maximum ratio of inflated bytes to bytes of the file, for more than [`SMALL_BYTES`] inflated bytes.
    pub inflation: u64,
    /// Maximum size of an entry with source text, a pickle or a debug record, in bytes.
    pub text_bytes: u64,
}

/// Inflated size in bytes up to which the compression ratio of an entry is not checked.
pub const SMALL_BYTES: u64 = 64 << 20;

/// Memory that reading an archive may need, as a multiple of its size, in addition to [`READING_BYTES`]. Compressed weights count with their inflated size,
/// compressed code and pickles with their compressed size.
const READING_FACTOR: u64 = 20;

/// Memory in bytes that reading may use for an archive of any size.
const READING_BYTES: u64 = 32 << 20;

/// Prefixes of the names of entries that contain weights.
const WEIGHTS: [&str; 2] = ["data/", "constants/"];

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            entries: 1 << 20,
            name_bytes: 4096,
            inflated_bytes: 1 << 32,
            // Weights hardly compress, and code by a factor of ten; deflate itself reaches a thousand.
            inflation: 64,
            text_bytes: 1 << 30,
        }
    }
}

#[derive(Debug)]
struct Entry {
    /// Index of the entry in the zip directory.
    index: usize,
    header_start: u64,
    size: u64,
    /// Byte range of the entry's contents in the file, for uncompressed entries.
    stored: Option<Range<usize>>,
}

/// Opens a zip file that starts at byte 0, or after other data that was prepended to it.
///
/// PyTorch writes 64-bit end-of-directory records that it does not need. If the first entry's name is as long as those, a search for the start of the file
/// finds the second entry instead.
fn open_at_start(bytes: &SharedBytes) -> ZipResult<ZipArchive<Cursor>> {
    let config = Config {
        archive_offset: ArchiveOffset::Known(0),
    };
    ZipArchive::with_config(config, Cursor::new(bytes.clone())).or_else(|_| ZipArchive::new(Cursor::new(bytes.clone())))
}

/// The checked central directory of a zip file in which all entries are in one top directory.
#[derive(Debug)]
pub struct ZipDirectory {
    bytes: SharedBytes,
    zip: ZipArchive<Cursor>,
    entries: IndexMap<String, Entry>,
    top: String,
    limits: Limits,
    /// Total inflated size of the compressed weights, in bytes.
    inflated_weights: u64,
}

impl ZipDirectory {
    /// Reads and checks the directory of `bytes`.
    ///
    /// # Errors
    /// When this is no zip file, when a bound is exceeded, when a name is not allowed, or when an entry's bytes are not in the file.
    pub fn open(bytes: SharedBytes, limits: Limits) -> Result<ZipDirectory, ArchiveError> {
        let length = bytes.len();
        let damaged = |reason: String| ArchiveError::NotAnArchive { reason, length };
        let mut zip = open_at_start(&bytes).map_err(|e| match foreign::of_bytes(&head(&bytes)) {
            Some(foreign) => foreign.into(),
            None if bytes_start_as_zip(&bytes) => {
                damaged(format!("{e}; it begins as one, so the file is cut off or damaged"))
            }
            None => damaged(e.to_string()),
        })?;
        if zip.len() > limits.entries {
            return Err(ArchiveError::Limit {
                entry: String::new(),
                what: "the number of entries",
                limit: limits.entries as u64,
                found: zip.len() as u64,
            });
        }
        if zip.has_duplicate_names() {
            return Err(damaged("two entries have the same name".into()));
        }
        let top = top_directory(&zip, &limits).map_err(|error| {
            let names: Vec<&str> = zip
                .file_names_raw()
                .filter_map(|n| std::str::from_utf8(n).ok())
                .collect();
            match foreign::of_entries(&names) {
                // Names that no PyTorch writes, and that do no harm.
                Some(foreign) if is_layout(&error) => foreign.into(),
                _ => error,
            }
        })?;
        let mut entries = IndexMap::with_capacity(zip.len());
        let (mut stored_bytes, mut inflated_bytes, mut inflated_weights) = (0_u64, 0_u64, 0_u64);
        let most = SMALL_BYTES.max(limits.inflation.saturating_mul(length as u64));
        let most = most.min(limits.inflated_bytes);
        for index in 0..zip.len() {
            let raw = zip
                .by_index_raw(index)
                .map_err(|e| damaged(format!("entry number {index}: {e}")))?;
            let full = String::from_utf8_lossy(raw.name_raw()).into_owned();
            if full.ends_with('/') {
                continue;
            }
            let name = full[top.len()..].to_owned();
            let broken = |reason: &str| ArchiveError::Entry {
                entry: name.clone(),
                offset: raw.header_start(),
                reason: reason.to_owned(),
            };
            if raw.encrypted() {
                return Err(broken("it is encrypted"));
            }
            let stored = match raw.compression() {
                CompressionMethod::Stored => {
                    let start = raw.data_start().ok_or_else(|| broken("its data cannot be located"))?;
                    let end = start.checked_add(raw.size()).filter(|&end| end <= length as u64);
                    let end = end.ok_or_else(|| broken("its data reach beyond the end of the file"))?;
                    if raw.size() != raw.compressed_size() {
                        return Err(broken("its two sizes differ although it is not compressed"));
                    }
                    stored_bytes = stored_bytes.saturating_add(raw.size());
                    if stored_bytes > length as u64 {
                        return Err(broken("it shares bytes with other entries"));
                    }
                    Some(start as usize..end as usize)
                }
                CompressionMethod::Deflated => {
                    inflated_bytes = inflated_bytes.saturating_add(raw.size());
                    if WEIGHTS.iter().any(|folder| name.starts_with(folder)) {
                        inflated_weights = inflated_weights.saturating_add(raw.size());
                    }
                    if inflated_bytes > most {
                        return Err(ArchiveError::Limit {
                            entry: name,
                            what: "the inflated size in bytes, of this and the entries before it,",
                            limit: most,
                            found: inflated_bytes,
                        });
                    }
                    None
                }
                other => return Err(broken(&format!("compression method {other} is not supported"))),
            };
            let (header_start, size) = (raw.header_start(), raw.size());
            drop(raw);
            entries.insert(
                name,
                Entry {
                    index,
                    header_start,
                    size,
                    stored,
                },
            );
        }
        Ok(ZipDirectory {
            bytes,
            zip,
            entries,
            top,
            limits,
            inflated_weights,
        })
    }

    /// Returns the maximum number of bytes that reading may need in addition to the weights, which are read on demand.
    pub fn reading_bytes(&self) -> u64 {
        let bytes = (self.bytes.len() as u64).saturating_add(self.inflated_weights);
        bytes.saturating_mul(READING_FACTOR).saturating_add(READING_BYTES)
    }

    /// Returns the bytes of the zip file.
    pub fn file(&self) -> &SharedBytes {
        &self.bytes
    }

    /// Returns the name of the top directory, with its closing slash, as in `model/`.
    pub fn top(&self) -> &str {
        &self.top
    }

    /// Returns the names of all entries below the top directory, in the directory's order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns whether there is an entry called `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Returns the bytes of an entry: an unread range of the file, or a new buffer if the entry is compressed.
    ///
    /// # Errors
    /// When there is no such entry, or its compressed form is damaged or too large.
    pub fn bytes(&self, name: &str) -> Result<(SharedBytes, Range<usize>), ArchiveError> {
        let entry = self.entry(name)?;
        match &entry.stored {
            Some(range) => Ok((self.bytes.clone(), range.clone())),
            None => {
                let data = self.inflate(name, entry)?;
                let range = 0..data.len();
                Ok((SharedBytes::from(data), range))
            }
        }
    }

    /// Returns a copy of the bytes of a small entry, with its checksum verified.
    ///
    /// # Errors
    /// When there is no such entry, it is longer than [`Limits::text_bytes`], or damaged.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, ArchiveError> {
        let entry = self.entry(name)?;
        frazil_limits::charge(usize::try_from(entry.size).unwrap_or(usize::MAX))?;
        if entry.size > self.limits.text_bytes {
            return Err(ArchiveError::Limit {
                entry: name.to_owned(),
                what: "the size in bytes",
                limit: self.limits.text_bytes,
                found: entry.size,
            });
        }
        self.inflate(name, entry)
    }

    /// Returns an entry as text.
    ///
    /// # Errors
    /// As [`ZipDirectory::read`], and when the entry is no UTF-8.
    pub fn text(&self, name: &str) -> Result<String, ArchiveError> {
        String::from_utf8(self.read(name)?).map_err(|e| ArchiveError::Utf8 {
            entry: name.to_owned(),
            offset: e.utf8_error().valid_up_to(),
        })
    }

    fn entry(&self, name: &str) -> Result<&Entry, ArchiveError> {
        self.entries.get(name).ok_or_else(|| ArchiveError::Missing {
            entry: name.to_owned(),
            hint: "the archive refers to it, so the file is incomplete",
        })
    }

    fn inflate(&self, name: &str, entry: &Entry) -> Result<Vec<u8>, ArchiveError> {
        let broken = |reason: String| ArchiveError::Entry {
            entry: name.to_owned(),
            offset: entry.header_start,
            reason,
        };
        let mut zip = self.zip.clone();
        let reader = zip.by_index(entry.index).map_err(|e| broken(e.to_string()))?;
        // The claimed size is not trusted with an allocation, and one byte more than claimed is read to notice a lie.
        let mut data = Vec::with_capacity(entry.size.min(1 << 20) as usize);
        reader
            .take(entry.size.saturating_add(1))
            .read_to_end(&mut data)
            .map_err(|e| broken(e.to_string()))?;
        if data.len() as u64 != entry.size {
            return Err(broken(format!(
                "it has not the {} bytes that the directory claims",
                entry.size
            )));
        }
        Ok(data)
    }
}

const NO_DIRECTORY: &str = "it lies in no directory";
const OTHER_DIRECTORY: &str = "it lies in another top directory than the first entry";

fn bytes_start_as_zip(bytes: &SharedBytes) -> bool {
    head(bytes).starts_with(b"PK")
}

/// Returns whether `error` says that an entry's name is outside of the one top directory.
fn is_layout(error: &ArchiveError) -> bool {
    matches!(error, ArchiveError::EntryName { reason, .. } if [NO_DIRECTORY, OTHER_DIRECTORY].contains(reason))
}

/// Returns the first bytes of a file, by which most formats can be detected.
fn head(bytes: &SharedBytes) -> Vec<u8> {
    let range = 0..bytes.len().min(foreign::HEAD);
    bytes.read(range).map(Cow::into_owned).unwrap_or_default()
}

/// Checks all names and returns their common top directory. As in PyTorch, this is the part of the first name up to the first slash.
fn top_directory(zip: &ZipArchive<Cursor>, limits: &Limits) -> Result<String, ArchiveError> {
    let mut top: Option<String> = None;
    for raw in zip.file_names_raw() {
        let bad = |reason| ArchiveError::EntryName {
            name: String::from_utf8_lossy(raw).into_owned(),
            reason,
        };
        if raw.len() > limits.name_bytes {
            let shown = raw.get(..64).unwrap_or(raw);
            return Err(ArchiveError::Limit {
                entry: String::from_utf8_lossy(shown).into_owned(),
                what: "the length of the name in bytes",
                limit: limits.name_bytes as u64,
                found: raw.len() as u64,
            });
        }
        let name = std::str::from_utf8(raw).map_err(|_| bad("it is no UTF-8"))?;
        if name.starts_with('/') || name.contains('\\') || name.as_bytes().get(1) == Some(&b':') {
            return Err(bad("it is an absolute path"));
        }
        if name.contains('\0') {
            return Err(bad("it contains a NUL"));
        }
        if name.split('/').any(|part| part == "..") {
            return Err(bad("it climbs out of the archive with `..`"));
        }
        let first = name
            .split_once('/')
            .map(|(first, _)| first)
            .ok_or_else(|| bad(NO_DIRECTORY))?;
        match &top {
            None => top = Some(format!("{first}/")),
            Some(top) if name.starts_with(top.as_str()) => {}
            Some(_) => return Err(bad(OTHER_DIRECTORY)),
        }
    }
    top.ok_or(ArchiveError::Missing {
        entry: "data.pkl".into(),
        hint: "the archive is empty",
    })
}
