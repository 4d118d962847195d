//! What keeps a module from being written.

/// A module that cannot be written as an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// A value that archives have no form for.
    #[error("{place} cannot be written to an archive: {reason}")]
    Value {
        /// The attribute, dotted from the module itself; or the constant of the code.
        place: String,
        /// What is the matter with it.
        reason: String,
    },
    /// A class or file with a name that no archive can have.
    #[error("the name {name:?} cannot be written to an archive: {reason}")]
    Name {
        /// The name.
        name: String,
        /// What is the matter with it.
        reason: &'static str,
    },
    /// A method has no form as source code.
    #[error(transparent)]
    Code(#[from] crate::code::CodeError),
    /// The code would be nested more deeply than readers accept.
    #[error("{entry} cannot be written to an archive: line {line} is nested more deeply than source is read")]
    Nesting {
        /// The entry of the archive.
        entry: String,
        /// The line, from 1.
        line: usize,
    },
    /// Values or types are nested more deeply than readers accept, or values shared more often.
    #[error("the module cannot be written to an archive: {0}")]
    TooDeep(#[from] frazil_ir::nesting::TooDeep),
    /// The graph of a method is not valid.
    #[error("{function} cannot be written to an archive: {source}")]
    Invalid {
        /// Qualified name of the function.
        function: String,
        /// What is wrong.
        source: frazil_ir::verify::VerifyError,
    },
    /// A method uses operators that do not exist, in a namespace whose operators are known: nothing could load the archive.
    #[error("{function} cannot be written to an archive: there is no operator {operator}{}", place.as_ref().map_or(String::new(), |p| format!(" (at {p})")))]
    UnknownOperator {
        /// Qualified name of the function.
        function: String,
        /// The operator.
        operator: String,
        /// Where the source calls it.
        place: Option<String>,
    },
    /// The code calls a function whose body is left to Python.
    #[error(
        "Could not export Python function call '{name}'. Remove calls to Python functions before export. Did you forget to add @script or \
         @script_method annotation? If this is a nn.ModuleList, add it to __constants__:\n  {}",
        .place.as_deref().unwrap_or("<unknown>")
    )]
    Python {
        /// The function.
        name: String,
        /// Where it is called.
        place: Option<String>,
    },
    /// The archive cannot be written where it should go.
    #[error("writing the archive: {0}")]
    Io(#[from] std::io::Error),
}

impl From<zip::result::ZipError> for SaveError {
    fn from(error: zip::result::ZipError) -> SaveError {
        SaveError::Io(error.into())
    }
}

impl SaveError {
    /// The error one level further out: in attribute `name`.
    pub(super) fn within(self, name: &str) -> SaveError {
        match self {
            SaveError::Value { place, reason } => {
                let place = if place.is_empty() {
                    name.to_owned()
                } else {
                    format!("{name}.{place}")
                };
                SaveError::Value { place, reason }
            }
            other => other,
        }
    }
}

/// An error about the value at hand; [`SaveError::within`] adds where that is.
pub(super) fn unwritable(reason: impl Into<String>) -> SaveError {
    SaveError::Value {
        place: String::new(),
        reason: reason.into(),
    }
}
