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
    /// The current thread's budget is exceeded.
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
        /// How to convert the file, or what to do instead.
        advice: &'static str,
    },
    /// One entry of the archive is damaged or uses a feature that `.pt` files do not have.
    #[error("archive entry `{entry}` (header at byte {offset}): {reason}")]
    Entry {
        /// The entry's name.
        entry: String,
        /// Offset of the entry's local header in the file, according to the directory.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// An entry's name is absolute, contains `..` that leaves the archive, is not UTF-8, or is outside the top
    /// directory.
    #[error("archive entry name {name:?} is not allowed: {reason}")]
    EntryName {
        /// The name as the directory has it.
        name: String,
        /// The rule that the name violates.
        reason: &'static str,
    },
    /// A required entry is missing.
    #[error("the archive has no entry `{entry}`: {hint}")]
    Missing {
        /// The name of the missing entry.
        entry: String,
        /// The usual cause.
        hint: &'static str,
    },
    /// A bound of [`Limits`](super::Limits) is exceeded.
    #[error("archive{}: {what} is {found}, more than the limit of {limit}", in_entry(entry))]
    Limit {
        /// The entry concerned, empty for the archive as a whole.
        entry: String,
        /// The bounded quantity.
        what: &'static str,
        /// The limit in force.
        limit: u64,
        /// The value found.
        found: u64,
    },
    /// A pickle that is malformed, or that contains an opcode or global that archives never need.
    #[error("archive entry `{entry}`: {source}")]
    Pickle {
        /// The pickle's entry name.
        entry: String,
        /// The error, with its offset.
        source: PickleError,
    },
    /// A well-formed pickle with a value of the wrong kind.
    #[error("archive entry `{entry}`, pickle byte {offset}: expected {expected}, found {found}")]
    Unexpected {
        /// The pickle's entry name.
        entry: String,
        /// Offset in bytes of the opcode that created the value.
        offset: usize,
        /// Description of the expected value.
        expected: String,
        /// Description of the actual value.
        found: String,
    },
    /// A text entry is not UTF-8.
    #[error("archive entry `{entry}`: invalid UTF-8 at byte {offset}")]
    Utf8 {
        /// The entry's name.
        entry: String,
        /// The offset in bytes of the first byte that is not UTF-8.
        offset: usize,
    },
    /// The format version is not one that current PyTorch reads.
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
