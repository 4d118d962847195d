//! What can be wrong with an archive, and where.

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
        /// The file that was asked for.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The current thread's budget is exceeded.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
    /// The bytes are not a zip archive, or its directory is damaged.
    #[error("not a readable zip archive ({length} bytes): {reason}")]
    NotAnArchive {
        /// What the directory's reader objected to.
        reason: String,
        /// The length of the input in bytes.
        length: usize,
    },
    /// The file is of another, known kind.
    #[error("this is {what}, not a TorchScript archive: {advice}")]
    Foreign {
        /// The kind of file, with its article.
        what: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// One entry of the archive is damaged or uses a feature that `.pt` files do not have.
    #[error("archive entry `{entry}` (header at byte {offset}): {reason}")]
    Entry {
        /// The entry's name.
        entry: String,
        /// Where the entry's local header is said to be in the file.
        offset: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// An entry's name is absolute, climbs out of the archive, is no UTF-8, or lies outside the top directory.
    #[error("archive entry name {name:?} is not allowed: {reason}")]
    EntryName {
        /// The name as the directory has it.
        name: String,
        /// Which rule it breaks.
        reason: &'static str,
    },
    /// An entry that every archive of this kind has is not there.
    #[error("the archive has no entry `{entry}`: {hint}")]
    Missing {
        /// The name that was looked for.
        entry: String,
        /// What that usually means.
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
    /// A pickle that is malformed, or that asks for something that archives never need.
    #[error("archive entry `{entry}`: {source}")]
    Pickle {
        /// The pickle's entry name.
        entry: String,
        /// What is wrong, with its offset.
        source: PickleError,
    },
    /// A pickle that is well formed but does not describe what is expected in its place.
    #[error("archive entry `{entry}`, pickle byte {offset}: expected {expected}, found {found}")]
    Unexpected {
        /// The pickle's entry name.
        entry: String,
        /// The offset of the opcode that made the value.
        offset: usize,
        /// What should stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A text entry is no UTF-8.
    #[error("archive entry `{entry}`: invalid UTF-8 at byte {offset}")]
    Utf8 {
        /// The entry's name.
        entry: String,
        /// The offset of the first byte that is no UTF-8.
        offset: usize,
    },
    /// The format version is none that current PyTorch reads.
    #[error("archive entry `{entry}`: {reason}")]
    Version {
        /// The entry that states it.
        entry: String,
        /// What it says and what can be read.
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
