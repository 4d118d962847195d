//! Reading of module files with their tensor files.

use super::parse::parse_file;
use super::tensors::{NoTensors, TensorFile, TensorFileError};
use crate::diagnostics::{ParseError, render};
use crate::parse::ParseOptions;
use frazil_ir::{Context, FileBytes, Module};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The reason why a module file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The module file cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The path of the module file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The tensor file cannot be read.
    #[error(transparent)]
    Tensors(#[from] TensorFileError),
    /// The text of the module file has errors.
    #[error("{path} is not a valid module file:\n{source}")]
    Parse {
        /// The path of the module file.
        path: PathBuf,
        /// The text of the module file.
        text: String,
        /// The errors in the text.
        #[source]
        source: ParseError,
    },
}

impl ReadError {
    /// Returns the error message, for errors in the text with the affected lines.
    pub fn render(&self, color: bool) -> String {
        match self {
            ReadError::Parse { path, text, source } => {
                render(&path.display().to_string(), text, &source.diagnostics, color)
            }
            other => format!("error: {other}\n"),
        }
    }
}

/// Reads the module file at `path`.
///
/// # Errors
/// If a file cannot be read, or the text has errors.
pub fn read_module(ctx: &Arc<Context>, path: &Path) -> Result<Module, ReadError> {
    read_module_with(ctx, path, ParseOptions::default())
}

/// Reads the module file at `path` with options, which apply to the graphs in it.
///
/// # Errors
/// If a file cannot be read, or the text has errors.
pub fn read_module_with(ctx: &Arc<Context>, path: &Path, options: ParseOptions<'_>) -> Result<Module, ReadError> {
    Ok(read_module_open(ctx, path, options)?.0)
}

/// Reads a module file as [`read_module_with`] does. Also returns the files from which the module's tensors are read on first use.
///
/// # Errors
/// If a file cannot be read, or the text has errors.
pub fn read_module_open(
    ctx: &Arc<Context>,
    path: &Path,
    options: ParseOptions<'_>,
) -> Result<(Module, Vec<Arc<FileBytes>>), ReadError> {
    let text = std::fs::read_to_string(path).map_err(|source| ReadError::Io {
        path: path.to_owned(),
        source,
    })?;
    let (mut failure, mut opened) = (None, Vec::new());
    let result = parse_file(ctx, &text, options, &mut |name| match TensorFile::open(
        &path.parent().unwrap_or(Path::new("")).join(name),
    ) {
        Ok(tensors) => {
            opened.push(Arc::clone(tensors.file()));
            Box::new(tensors)
        }
        Err(e) => {
            failure = Some(e);
            Box::new(NoTensors)
        }
    });
    // Reads of extra files that have been made already.
    if let Some(file) = opened.iter().find(|file| !file.is_unchanged()) {
        return Err(ReadError::Io {
            path: file.path().to_owned(),
            source: std::io::Error::other("it has changed meanwhile"),
        });
    }
    // Without its bytes, further errors would only be consequences.
    match (failure, result) {
        (Some(e), _) => Err(e.into()),
        (None, Ok(module)) => Ok((module, opened)),
        (None, Err(source)) => Err(ReadError::Parse {
            path: path.to_owned(),
            text,
            source,
        }),
    }
}
