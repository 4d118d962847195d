//! Reading module files with the tensors beside them.

use super::parse::parse_file;
use super::tensors::{NoTensors, TensorFile, TensorFileError, TensorSource};
use crate::diagnostics::{ParseError, render};
use crate::parse::ParseOptions;
use frazil_ir::{Context, Module};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a module file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The tensors beside the text cannot be read.
    #[error(transparent)]
    Tensors(#[from] TensorFileError),
    /// The text is wrong.
    #[error("{path} is not a valid module file:\n{source}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What stands in it.
        text: String,
        /// What is wrong.
        #[source]
        source: ParseError,
    },
}

impl ReadError {
    /// The message, with the lines in question where the text is wrong.
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
/// When a file cannot be read, or the text is wrong.
pub fn read_module(ctx: &Arc<Context>, path: &Path) -> Result<Module, ReadError> {
    read_module_with(ctx, path, ParseOptions::default())
}

/// Reads the module file at `path` with options, which hold for the graphs in it.
///
/// # Errors
/// When a file cannot be read, or the text is wrong.
pub fn read_module_with(ctx: &Arc<Context>, path: &Path, options: ParseOptions<'_>) -> Result<Module, ReadError> {
    let text = std::fs::read_to_string(path).map_err(|source| ReadError::Io {
        path: path.to_owned(),
        source,
    })?;
    let open = |name: &str| -> Result<Box<dyn TensorSource>, TensorFileError> {
        let beside = path.parent().unwrap_or(Path::new("")).join(name);
        Ok(Box::new(TensorFile::open(&beside)?))
    };
    let mut failure = None;
    let result = parse_file(ctx, &text, options, &mut |name| match open(name) {
        Ok(source) => source,
        Err(e) => {
            failure = Some(e);
            Box::new(NoTensors)
        }
    });
    // Without its bytes everything else is wrong as well.
    match (failure, result) {
        (Some(e), _) => Err(e.into()),
        (None, Ok(module)) => Ok(module),
        (None, Err(source)) => Err(ReadError::Parse {
            path: path.to_owned(),
            text,
            source,
        }),
    }
}
