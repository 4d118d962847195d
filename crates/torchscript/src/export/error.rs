//! Errors of writing a module.

/// A module that cannot be written as an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// A value that archives cannot represent.
    #[error("{place} cannot be written to an archive: {reason}")]
    Value {
        /// Location of the value: the dotted name of the attribute, or the constant of the code.
        place: String,
        /// The reason.
        reason: String,
    },
    /// A class or file with a name that no archive can have.
    #[error("the name {name:?} cannot be written to an archive: {reason}")]
    Name {
        /// The name.
        name: String,
        /// The reason.
        reason: &'static str,
    },
    /// A method that cannot be expressed as source code.
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
    /// Values or types that are nested more deeply, or shared values that are referenced more often, than readers
    /// accept.
    #[error("the module cannot be written to an archive: {0}")]
    TooDeep(#[from] frazil_ir::nesting::TooDeep),
    /// The graph of a method is not valid.
    #[error("{function} cannot be written to an archive: {source}")]
    Invalid {
        /// Qualified name of the function.
        function: String,
        /// Description of the error.
        source: frazil_ir::verify::VerifyError,
    },
    /// A method uses unknown operators of a namespace that the catalogue has: the archive could not be loaded.
    #[error("{function} cannot be written to an archive: there is no operator {operator}{}", place.as_ref().map_or(String::new(), |p| format!(" (at {p})")))]
    UnknownOperator {
        /// Qualified name of the method.
        function: String,
        /// The operator.
        operator: String,
        /// Source location of the call.
        place: Option<String>,
    },
    /// The code calls a Python function (`@torch.jit.ignore`).
    #[error(
        "Could not export Python function call '{name}'. Remove calls to Python functions before export. Did you forget to add @script or \
         @script_method annotation? If this is a nn.ModuleList, add it to __constants__:\n  {}",
        .place.as_deref().unwrap_or("<unknown>")
    )]
    Python {
        /// The function.
        name: String,
        /// Source location of the call.
        place: Option<String>,
    },
    /// Writing to the output failed.
    #[error("writing the archive: {0}")]
    Io(#[from] std::io::Error),
}

impl From<zip::result::ZipError> for SaveError {
    fn from(error: zip::result::ZipError) -> SaveError {
        SaveError::Io(error.into())
    }
}

impl SaveError {
    /// Returns the error with `name` added to the path of attributes.
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

/// Returns an error about the current value; [`SaveError::within`] adds its path.
pub(super) fn unwritable(reason: impl Into<String>) -> SaveError {
    SaveError::Value {
        place: String::new(),
        reason: reason.into(),
    }
}
