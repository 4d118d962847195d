//! Texts in files, with the elements of large constants in a `.safetensors` file beside them.

use super::parse::{Function, ParseOptions, parse_with};
use super::print::{PrintOptions, is_inline, print_with};
use crate::graph::TensorGraph;
use frazil_ir::{Device, TensorData, contiguous_strides};
use frazil_runtime::registry::Registry;
use frazil_runtime::structured::{TensorId, TensorShape};
use frazil_syntax::{OutputFile, ParseError, TensorFile, TensorFileError, TensorSource, write_tensors};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The reason why a text file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// The file of the constants cannot be used.
    #[error(transparent)]
    Tensors(#[from] TensorFileError),
    /// The file of the constants is not the one that was written with the text.
    #[error("{path} does not belong to the text beside it: its checksum is another one")]
    Mixed {
        /// The file of the constants.
        path: PathBuf,
    },
    /// The text is malformed.
    #[error("{path}: {source}")]
    Text {
        /// The file.
        path: PathBuf,
        /// The text, for messages with excerpts.
        text: String,
        /// The first error.
        #[source]
        source: ParseError,
    },
}

/// Returns whether the file at `path` begins as the text of a function does. Comments do not count.
pub fn is_text_file(path: &Path) -> bool {
    let mut head = [0; 4096];
    let read = File::open(path).and_then(|mut file| file.read(&mut head));
    let head = String::from_utf8_lossy(&head[..read.unwrap_or(0)]);
    let mut lines = head.lines().map(str::trim);
    let first = lines.find(|line| !(line.is_empty() || line.starts_with('#') || line.starts_with("//")));
    let beginnings = ["func @", "constants crc32 ", "symbols {"];
    first.is_some_and(|line| beginnings.iter().any(|beginning| line.starts_with(beginning)))
}

/// Reads the text at `path`, and its large constants from the file of the same name with the extension `.safetensors`. Calls
/// in the text may name the operators of `operators`.
///
/// # Errors
/// If a file cannot be read, or the text is malformed.
pub fn read_file(path: &Path, operators: Option<&Registry>) -> Result<Function, FileError> {
    let text = std::fs::read_to_string(path).map_err(|source| FileError::Read {
        path: path.to_owned(),
        source,
    })?;
    let beside = path.with_extension("safetensors");
    let tensors = match beside.exists() {
        true => Some(TensorFile::open(&beside)?),
        false => None,
    };
    let constant = |key: &str, shape: &TensorShape| {
        let tensors = tensors.as_ref()?;
        let info = tensors.info(key)?;
        let storage = tensors.storage(key, Device::default())?;
        let sizes: frazil_ir::Shape = shape.sizes.iter().copied().collect();
        let strides = contiguous_strides(&sizes);
        let data = TensorData::new(shape.dtype, sizes, strides, 0, Arc::new(storage)).ok()?;
        let bytes = info.data_offsets.1.checked_sub(info.data_offsets.0)?;
        (bytes == usize::try_from(data.numel()).ok()?.checked_mul(shape.dtype.size())?).then(|| Arc::new(data))
    };
    let options = ParseOptions {
        constants: &constant,
        operators,
    };
    let function = parse_with(&text, options).map_err(|source| FileError::Text {
        path: path.to_owned(),
        text: text.clone(),
        source,
    })?;
    match function.checksum {
        Some(checksum) if tensors.as_ref().and_then(TensorFile::checksum) != Some(checksum) => {
            Err(FileError::Mixed { path: beside })
        }
        _ => Ok(function),
    }
}

/// Returns the live constants whose elements texts do not contain by default: large ones, and those with elements that no number represents.
pub fn external_constants(graph: &TensorGraph) -> Vec<(TensorId, &Arc<TensorData>)> {
    let constants = graph.live_ids().into_iter();
    let constants = constants.filter_map(|id| Some((id, graph.as_constant(id)?)));
    constants.filter(|(_, data)| !is_inline(data)).collect()
}

/// Writes `graph` as the function `name` to `path`, and its large constants to the file of the same name with the extension `.safetensors`. Both are written
/// under temporary names and then renamed, the text last.
///
/// # Errors
/// If a file cannot be written; then no new file remains.
pub fn write_file(path: &Path, name: &str, graph: &TensorGraph) -> Result<(), FileError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| FileError::Write { path, source }
    };
    let mut keys: HashMap<TensorId, String> = HashMap::new();
    let mut entries: Vec<(String, &TensorData)> = Vec::new();
    for (id, data) in external_constants(graph) {
        let key = id.index().to_string();
        entries.push((key.clone(), data));
        keys.insert(id, key);
    }
    let mut text = OutputFile::create(path).map_err(failed(path))?;
    // A terminal or a pipe has no files beside it.
    let has_tensors = text.is_file() && !entries.is_empty();
    let mut options = PrintOptions::default();
    let mut tensors = None;
    let beside = path.with_extension("safetensors");
    if has_tensors {
        let mut output = OutputFile::create(&beside).map_err(failed(&beside))?;
        options.checksum = Some(write_tensors(&entries, output.file()).map_err(failed(&beside))?);
        options.keys = Some(&keys);
        tensors = Some(output);
    }
    text.file()
        .write_all(print_with(name, graph, options).as_bytes())
        .map_err(failed(path))?;
    if let Some(tensors) = tensors {
        tensors.commit().map_err(failed(&beside))?;
    }
    text.commit().map_err(failed(path))
}
