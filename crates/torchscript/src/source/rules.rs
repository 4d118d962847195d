//! The rules by which a source file is compiled.

/// The qualifier of the definitions in the user's source text.
pub(crate) const SOURCE_QUALIFIER: &str = "__torch__";

/// The rules by which a file is compiled. PyTorch's compiler checks handwritten source more strictly than the generated code of archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Code of an archive. Types and names are written in full, and were checked when the archive was made.
    Archive,
    /// A handwritten source text. Its top level is run as Python.
    Source,
    /// A library file with the given qualifier of its definitions. It is compiled as user source is, but may use forms that user source may not.
    Library(&'static str),
}

impl Rules {
    /// Returns the qualifier of the file's own definitions, which its code may omit. `None` for code of archives, where all names are qualified.
    pub(crate) fn qualifier(self) -> Option<&'static str> {
        match self {
            Rules::Archive => None,
            Rules::Source => Some(SOURCE_QUALIFIER),
            Rules::Library(qualifier) => Some(qualifier),
        }
    }

    /// Returns true for the rules of the user's source text.
    pub(crate) fn is_source(self) -> bool {
        self == Rules::Source
    }

    /// Returns true for the rules of library files.
    pub(crate) fn is_library(self) -> bool {
        matches!(self, Rules::Library(_))
    }

    /// Returns true for the rules of handwritten code: the user's source text and library files.
    pub(crate) fn is_written(self) -> bool {
        self != Rules::Archive
    }
}
