//! Errors of reading archives and of compiling source.

use std::fmt;
use std::sync::Arc;

use frazil_ir::Diagnostic;

use crate::archive::{ArchiveError, SourcePlace};

/// The reason why a module cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The archive is damaged, or the file is not an archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The code of the archive does not compile.
    #[error(transparent)]
    Source(#[from] Box<SourceError>),
    /// Loading exceeds the current thread's budget, or the work that the size of the archive allows.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
    /// The system could not start a thread that loading needs.
    #[error("cannot load: {0}")]
    Thread(std::io::Error),
}

pub(crate) type Result<T, E = LoadError> = std::result::Result<T, E>;

/// An error in TorchScript source: a syntax error, a name or type error, or an unsupported construct.
#[derive(Debug, Clone)]
pub struct SourceError {
    /// The name of the file: of an archive entry, or as the caller passed it.
    pub file: Arc<str>,
    /// The text of the file.
    pub text: Arc<str>,
    /// The message about the error, with its location in the text.
    pub diagnostic: Diagnostic,
    /// The location in the original Python program, if the archive has debug records.
    pub original: Option<SourcePlace>,
}

impl SourceError {
    /// Returns the location of the error as `file:line:column`. Lines and columns are counted from 1.
    pub fn place(&self) -> String {
        let start = self
            .diagnostic
            .labels
            .first()
            .map_or(0, |label| label.span.start as usize);
        let before = self.text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.len() - before.rfind('\n').map_or(0, |i| i + 1) + 1;
        format!("{}:{line}:{column}", self.file)
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.diagnostic.message)?;
        if let Some(place) = self.original.as_ref().filter(|place| !place.file.is_empty()) {
            write!(f, " (from {}:{}:{})", place.file, place.line, place.column)?;
        }
        if let Some(help) = &self.diagnostic.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SourceError {}
