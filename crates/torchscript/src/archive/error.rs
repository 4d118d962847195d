//! Errors of reading an archive, with their locations.

use std::path::PathBuf;

use super::pickle::PickleError;

/// An archive that cannot be read. Every variant that concerns an entry carries the entry's name, without the archive's
/// top directory; offsets are in bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The file could not be opened or read.
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// The file that was requested.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Reading exceeds the current thread's budget.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
    /// The bytes are not a zip archive, or its directory is damaged.
    #[error("not a readable zip archive ({length} bytes): {reason}")]
    NotAnArchive {
        /// The error message of the zip reader.
        reason: String,
        /// The length of the input in bytes.
        length: usize,
    },
    /// The file has another known format, which is not a TorchScript archive.
    #[error("this is {what}, not a TorchScript archive: {advice}")]
    Foreign {
        /// Name of the file's format, with an article: `a TensorFlow Lite model`.
        what: &'static str,
        /// Instructions for converting the file, or for what to do instead.
        advice: &'static str,
    },
    /// An entry of the archive is damaged, or uses a feature that `.pt` files do not have.
    #[error("archive entry `{entry}` (header at byte {offset}): {reason}")]
    Entry {
        /// The name of the entry.
        entry: String,
        /// Offset of the entry's local header in the file, according to the directory.
        offset: u64,
        /// The reason why the entry cannot be read.
        reason: String,
    },
    /// An entry's name is absolute, contains `..` that leaves the archive, is not UTF-8, or is outside the top
    /// directory.
    #[error("archive entry name {name:?} is not allowed: {reason}")]
    EntryName {
        /// The name of the entry, as in the directory.
        name: String,
        /// The rule that the name violates.
        reason: &'static str,
    },
    /// A required entry is missing.
    #[error("the archive has no entry `{entry}`: {hint}")]
    Missing {
        /// The name of the missing entry.
        entry: String,
        /// The most frequent cause.
        hint: &'static str,
    },
    /// A size or count exceeds its bound in [`Limits`](super::Limits).
    #[error("archive{}: {what} is {found}, more than the limit of {limit}", in_entry(entry))]
    Limit {
        /// The name of the entry that exceeds the bound; empty for the archive as a whole.
        entry: String,
        /// The bounded quantity, such as the number of entries.
        what: &'static str,
        /// The maximum value.
        limit: u64,
        /// The value in the archive.
        found: u64,
    },
    /// A pickle that is malformed, or that contains an opcode or global that archives never need.
    #[error("archive entry `{entry}`: {source}")]
    Pickle {
        /// The name of the pickle's entry.
        entry: String,
        /// The error with its offset in the pickle.
        source: PickleError,
    },
    /// A well-formed pickle contains a value of the wrong type.
    #[error("archive entry `{entry}`, pickle byte {offset}: expected {expected}, found {found}")]
    Unexpected {
        /// The name of the pickle's entry.
        entry: String,
        /// Offset in bytes of the opcode that created the value.
        offset: usize,
        /// Description of the expected value.
        expected: String,
        /// Description of the actual value.
        found: String,
    },
    /// A text entry is not valid UTF-8.
    #[error("archive entry `{entry}`: invalid UTF-8 at byte {offset}")]
    Utf8 {
        /// The name of the entry.
        entry: String,
        /// The offset in bytes of the first byte that is not UTF-8.
        offset: usize,
    },
    /// The format version is not one that current PyTorch can read.
    #[error("archive entry `{entry}`: {reason}")]
    Version {
        /// The entry that contains the version.
        entry: String,
        /// The version in the file, and the supported versions.
        reason: String,
    },
}

fn in_entry(entry: &str) -> String {
    if entry.is_empty() {
        String::new()
    } else {
        format!(" entry `{entry}`")
    }
}
