//! Writing module files.

use super::collect::Collected;
use super::print::{ModulePrintOptions, Place, file_key, files, is_file_inline, place, print_collected, storage_key};
use super::tensors::Entry;
use crate::OutputFile;
use frazil_ir::{DType, Module};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Why a module file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The bytes of the tensors cannot be written.
    #[error("cannot write {path}: {source}")]
    Tensors {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: safetensors::SafeTensorError,
    },
    /// The path has no file name.
    #[error("{path} does not name a file")]
    NoName {
        /// The path.
        path: PathBuf,
    },
}

/// Writes `module` as a text at `path` and, when it has large tensors, their bytes beside it with the extension `.safetensors`.
///
/// Both are written under temporary names first and then renamed, the text last: what stood at `path` stays until all is there.
///
/// # Errors
/// When a file cannot be written; then no new file is left.
pub fn write_module(module: &Module, path: &Path) -> Result<(), WriteError> {
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
    let mut text = OutputFile::create(path).map_err(io(path))?;
    let collected = Collected::new(module);
    let mut options = ModulePrintOptions {
        elide_constants_larger_than: None,
        // Nothing stands beside a terminal or a pipe.
        tensor_file: text.is_file().then_some(tensors_name),
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
        let output = OutputFile::create(&tensors_path).map_err(io(&tensors_path))?;
        safetensors::serialize_to_file(entries, None, output.temporary_path()).map_err(|source| {
            WriteError::Tensors {
                path: tensors_path.clone(),
                source,
            }
        })?;
        Some(output)
    };
    text.file()
        .write_all(print_collected(module, &collected, options).as_bytes())
        .map_err(io(path))?;
    if let Some(tensors) = tensors {
        tensors.commit().map_err(io(&tensors_path))?;
    }
    text.commit().map_err(io(path))
}
