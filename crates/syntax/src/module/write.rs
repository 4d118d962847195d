//! Writing of module files.

use super::collect::Collected;
use super::print::{ModulePrintOptions, Place, file_key, files, is_file_inline, place, print_collected, storage_key};
use super::tensors::{Entry, write_entries};
use crate::OutputFile;
use frazil_ir::nesting::{TooDeep, check_module};
use frazil_ir::{DType, Module};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The reason why a module file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The module file or tensor file cannot be written.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The tensor file cannot be written.
    #[error("cannot write {path}: {source}")]
    Tensors {
        /// The path of the tensor file.
        path: PathBuf,
        /// The error of the safetensors format.
        #[source]
        source: safetensors::SafeTensorError,
    },
    /// A file from which the module's tensors are read has changed.
    #[error("cannot read what is to be written to {path}: {source}")]
    Read {
        /// The path of the file to be written.
        path: PathBuf,
        /// The error of reading the tensors.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The module is nested more deeply than [`read_module`](crate::read_module) accepts.
    #[error("cannot write {path}: {source}")]
    Nesting {
        /// The path of the module file.
        path: PathBuf,
        /// The type, value or block that is nested too deeply.
        #[source]
        source: TooDeep,
    },
    /// The path has no file name.
    #[error("{path} does not name a file")]
    NoName {
        /// The path without a file name.
        path: PathBuf,
    },
}

/// Writes `module` as a text to `path` and, if it has large tensors, their bytes to a file beside it with the extension `.safetensors`.
///
/// Both are written under temporary names first and then renamed, the text last: an existing file at `path` is kept until everything has been written. The
/// text contains the checksum of the tensors. If only one of the two could be renamed, readers report that they do not belong together.
///
/// # Errors
/// If a file cannot be written; then no new file remains.
pub fn write_module(module: &Module, path: &Path) -> Result<(), WriteError> {
    write_module_if(module, path, || Ok(()))
}

/// Writes a module as [`write_module`] does, if `check` succeeds after all bytes of the module's tensors have been read, and before files are renamed: see
/// [`FileBytes`](frazil_ir::FileBytes).
///
/// # Errors
/// The errors of [`write_module`] and of `check`.
pub fn write_module_if(
    module: &Module,
    path: &Path,
    check: impl FnOnce() -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
) -> Result<(), WriteError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| WriteError::Io { path, source }
    };
    let tensors_path = path.with_extension("safetensors");
    let tensors_name = tensors_path
        .file_name()
        .filter(|_| path.file_name().is_some() && tensors_path != path)
        .and_then(|n| n.to_str())
        .ok_or_else(|| WriteError::NoName { path: path.to_owned() })?;
    check_module(module).map_err(|source| WriteError::Nesting {
        path: path.to_owned(),
        source,
    })?;
    let mut text = OutputFile::create(path).map_err(io(path))?;
    let collected = Collected::new(module);
    let mut options = ModulePrintOptions {
        elide_constants_larger_than: None,
        // A terminal or a pipe has no files beside it.
        tensor_file: text.is_file().then_some(tensors_name),
        tensor_checksum: None,
    };
    let mut entries = Vec::new();
    for (i, s) in collected.storages.values().enumerate() {
        if place(&collected, s, options) == Place::File {
            entries.push((storage_key(i), Entry::of_storage(&s.storage, s.dtype)));
        }
    }
    for (keyword, name, bytes) in files(module) {
        if !is_file_inline(bytes) {
            entries.push((file_key(keyword, name), Entry::new(bytes, DType::Byte)));
        }
    }
    let tensors = if entries.is_empty() {
        options.tensor_file = None;
        None
    } else {
        let mut output = OutputFile::create(&tensors_path).map_err(io(&tensors_path))?;
        let checksum = write_entries(entries, output.file()).map_err(|source| WriteError::Tensors {
            path: tensors_path.clone(),
            source,
        })?;
        options.tensor_checksum = Some(checksum);
        Some(output)
    };
    text.file()
        .write_all(print_collected(module, &collected, options).as_bytes())
        .map_err(io(path))?;
    check().map_err(|source| WriteError::Read {
        path: path.to_owned(),
        source,
    })?;
    if let Some(tensors) = tensors {
        tensors.commit().map_err(io(&tensors_path))?;
    }
    text.commit().map_err(io(path))
}
