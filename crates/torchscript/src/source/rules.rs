//! The rules that source is compiled by.

/// The qualifier of the definitions of a source text.
pub(crate) const SOURCE_QUALIFIER: &str = "__torch__";

/// The rules that a file is compiled by. PyTorch's compiler checks source that people write more strictly than the code of archives, which its
/// own printer wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Code of an archive. Types and names are written in full, and were checked when the archive was made.
    Archive,
    /// A source text that people write. Python runs its top level.
    Source,
    /// A file of the library, compiled as source is. Its definitions are found under this qualifier, and it may use forms that no other source has.
    Library(&'static str),
}

impl Rules {
    /// The qualifier of the file's own definitions, which its code may name without it. Code of archives writes all names in full.
    pub(crate) fn qualifier(self) -> Option<&'static str> {
        match self {
            Rules::Archive => None,
            Rules::Source => Some(SOURCE_QUALIFIER),
            Rules::Library(qualifier) => Some(qualifier),
        }
    }

    /// True for the source text itself.
    pub(crate) fn is_source(self) -> bool {
        self == Rules::Source
    }

    /// True for files of the library.
    pub(crate) fn is_library(self) -> bool {
        matches!(self, Rules::Library(_))
    }

    /// True for code that people write: the source text and the library.
    pub(crate) fn is_written(self) -> bool {
        self != Rules::Archive
    }
}
