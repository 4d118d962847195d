//! Reading and writing of state dictionaries in `.safetensors` files.

use super::StateDict;
use crate::error::{Error, Result};
use frazil_runtime::Tensor;
use frazil_syntax::write_atomically;
use frazil_syntax::{from_safetensors, to_safetensors};
use safetensors::tensor::{SafeTensors, TensorView};
use std::io::Write as _;
use std::path::Path;

/// Reads a state dictionary from a `.safetensors` file.
///
/// ```
/// # use frazil::{StateDict, Tensor, read_safetensors, write_safetensors};
/// # let folder = tempfile::tempdir().map_err(|e| frazil::Error::Text(e.to_string()))?;
/// # let path = folder.path().join("state.safetensors");
/// let state = StateDict::from_iter([("bias".to_owned(), Tensor::from_f32(&[7.0], &[1])?)]);
/// write_safetensors(&state, &path)?;
/// assert_eq!(read_safetensors(&path)?["bias"].to_f64_vec(), [7.0]);
/// # Ok::<(), frazil::Error>(())
/// ```
///
/// # Errors
/// If the file cannot be read, is malformed, or contains a dtype that PyTorch does not have.
pub fn read_safetensors(path: impl AsRef<Path>) -> Result<StateDict> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
    let format = |what: String| Error::StateDict(format!("{}: {what}", path.display()));
    let file = SafeTensors::deserialize(&bytes).map_err(|e| format(e.to_string()))?;
    let mut out = StateDict::new();
    for (name, view) in file.iter() {
        let dtype = from_safetensors(view.dtype()).ok_or_else(|| {
            format(format!(
                "tensor {name} has dtype {:?}, which PyTorch has not",
                view.dtype()
            ))
        })?;
        let sizes: Vec<i64> = view.shape().iter().map(|n| *n as i64).collect();
        out.insert(name.to_owned(), Tensor::from_bytes(dtype, &sizes, view.data())?);
    }
    // The format orders tensors by dtype and name; readers of state dictionaries expect an order by name alone.
    out.sort_keys();
    Ok(out)
}

/// Writes a state dictionary as a `.safetensors` file. No partial file remains after an error.
///
/// See [`read_safetensors`] for an example.
///
/// # Errors
/// If a dtype has no counterpart in the format, or the file cannot be written.
pub fn write_safetensors(state: &StateDict, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let mut bytes = Vec::new();
    for (name, t) in state {
        let dtype = to_safetensors(t.dtype())
            .ok_or_else(|| Error::StateDict(format!("{name}: safetensors cannot hold {}", t.dtype().python_name())))?;
        let sizes: Vec<usize> = t.sizes().iter().map(|n| *n as usize).collect();
        bytes.push((name, dtype, sizes, t.to_bytes()?));
    }
    let views = bytes
        .iter()
        .map(|(name, dtype, sizes, bytes)| Ok((name, TensorView::new(*dtype, sizes.clone(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>();
    let file = views
        .and_then(|views| safetensors::serialize(views, None))
        .map_err(|e| Error::StateDict(format!("{}: {e}", path.display())))?;
    write_atomically(path, |temporary| temporary.write_all(&file)).map_err(|e| Error::io("write", path, e))
}
