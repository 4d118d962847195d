//! Errors of writing a module.

/// The reason why a module cannot be written as an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// A value has no representation in archives.
    #[error("{place} cannot be written to an archive: {reason}")]
    Value {
        /// Location of the value: the dotted name of the attribute, or the constant of the code.
        place: String,
        /// The reason why the value cannot be written.
        reason: String,
    },
    /// The name of a class or file is not allowed in archives.
    #[error("the name {name:?} cannot be written to an archive: {reason}")]
    Name {
        /// The name that is not allowed.
        name: String,
        /// The reason why the name is not allowed.
        reason: &'static str,
    },
    /// A method cannot be printed as source code.
    #[error(transparent)]
    Code(#[from] crate::code::CodeError),
    /// The code would be nested more deeply than readers of archives accept.
    #[error("{entry} cannot be written to an archive: line {line} is nested more deeply than source is read")]
    Nesting {
        /// The name of the entry with the code.
        entry: String,
        /// The line in the entry, from 1.
        line: usize,
    },
    /// Values or types that are nested more deeply, or shared values that are referenced more often, than readers
    /// accept.
    #[error("the module cannot be written to an archive: {0}")]
    TooDeep(#[from] frazil_ir::nesting::TooDeep),
    /// The graph of a method is not valid.
    #[error("{function} cannot be written to an archive: {source}")]
    Invalid {
        /// Qualified name of the function or method.
        function: String,
        /// Description of the error.
        source: frazil_ir::verify::VerifyError,
    },
    /// A method uses unknown operators of a namespace that the catalogue has: the archive could not be loaded.
    #[error("{function} cannot be written to an archive: there is no operator {operator}{}", place.as_ref().map_or(String::new(), |p| format!(" (at {p})")))]
    UnknownOperator {
        /// Qualified name of the method.
        function: String,
        /// The name of the operator.
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
        /// The name of the Python function.
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
    /// Returns the error with `name` prepended to the path of attributes that leads to the value.
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

/// Returns the error that the current value cannot be written; [`SaveError::within`] adds the path to the value.
pub(super) fn unwritable(reason: impl Into<String>) -> SaveError {
    SaveError::Value {
        place: String::new(),
        reason: reason.into(),
    }
}
