//! Reading and writing of state dictionaries in the files that `torch.save` writes and `torch.load` reads.

use super::StateDict;
use crate::error::{Error, Result};
use frazil_runtime::export::Exporter;
use frazil_runtime::import::Importer;
use frazil_syntax::write_atomically;
use frazil_torchscript::archive::SharedBytes;
use frazil_torchscript::{LoadError, SaveError, save_checkpoint};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that `torch.save` wrote: a state dictionary, or a dictionary that contains a state dictionary among other values. No code in the file is executed,
/// as with `torch.load(path, weights_only=True)`.
///
/// ```
/// use frazil::{Checkpoint, StateDict, Tensor, write_checkpoint};
///
/// # let folder = tempfile::tempdir().map_err(|e| frazil::Error::Text(e.to_string()))?;
/// # let path = folder.path().join("state.pt");
/// let state = StateDict::from_iter([("bias".to_owned(), Tensor::from_f32(&[7.0], &[1])?)]);
/// write_checkpoint(&state, &path)?; // torch.save(state, path)
/// let checkpoint = Checkpoint::read(&path)?;
/// assert_eq!(checkpoint.entries(&[])?, [("bias", "a tensor")]);
/// assert_eq!(checkpoint.state_dict()?["bias"].to_f64_vec(), [7.0]);
/// assert!(checkpoint.state_dict_at(&["model"]).is_err()); // of torch.save({"model": state, "epoch": 3}, path)
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    file: frazil_torchscript::Checkpoint,
}

impl Checkpoint {
    /// Reads a file.
    ///
    /// See [`Checkpoint`] for an example.
    ///
    /// # Errors
    /// If it cannot be read, is of another kind, or contains objects that only Python can create, such as a whole
    /// module.
    pub fn read(path: impl AsRef<Path>) -> Result<Checkpoint> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
        Checkpoint::from_bytes(path, bytes)
    }

    /// Reads a file from memory; `path` is used in messages.
    ///
    /// ```
    /// use frazil::Checkpoint;
    ///
    /// assert!(Checkpoint::from_bytes("state.pt".as_ref(), b"no zip file".to_vec()).is_err());
    /// ```
    ///
    /// # Errors
    /// See [`read`](Self::read).
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Checkpoint> {
        let file = frazil_torchscript::Checkpoint::new(SharedBytes::from(bytes));
        Ok(Checkpoint {
            path: path.to_owned(),
            file: file.map_err(|source| load_error(path, source))?,
        })
    }

    /// Returns the keys of the dictionary at a path of keys, each with the kind of its value: `a tensor`, `a dictionary`.
    ///
    /// See [`Checkpoint`] for an example.
    ///
    /// # Errors
    /// If there is no dictionary.
    pub fn entries(&self, path: &[&str]) -> Result<Vec<(&str, &'static str)>> {
        self.file.entries(path).map_err(|source| load_error(&self.path, source))
    }

    /// Returns the state dictionary in the file, if the file contains nothing else.
    ///
    /// See [`Checkpoint`] for an example.
    ///
    /// # Errors
    /// If it is not a dictionary, or has entries that are not tensors.
    pub fn state_dict(&self) -> Result<StateDict> {
        self.state_dict_at(&[])
    }

    /// Returns the state dictionary at a path of nested keys. For a file from `torch.save({"model": state, "epoch": 3}, path)`, it is at `["model"]`.
    ///
    /// See [`Checkpoint`] for an example.
    ///
    /// # Errors
    /// If there is none, or it has entries that are not tensors, or are quantised or sparse tensors.
    pub fn state_dict_at(&self, path: &[&str]) -> Result<StateDict> {
        let tensors = self.file.tensors(path);
        // One importer for all, so that tensors on one storage still share it.
        let mut importer = Importer::new();
        let mut state = StateDict::new();
        for (name, data) in tensors.map_err(|source| load_error(&self.path, source))? {
            if let Some(encoding) = &data.encoding {
                return Err(Error::StateDict(format!(
                    "{}: {name} is a tensor of {}, which has no counterpart here",
                    self.path.display(),
                    encoding.name()
                )));
            }
            let tensor = importer.tensor(&data).map_err(|e| {
                let place = self.path.display();
                Error::StateDict(format!("{place}: {name}: {e}"))
            })?;
            state.insert(name, tensor.get());
        }
        Ok(state)
    }
}

fn load_error(path: &Path, source: LoadError) -> Error {
    Error::Load {
        path: path.to_owned(),
        source,
    }
}

/// Returns the state dictionary of a file that `torch.save` wrote: [`Checkpoint::read`], and [`Checkpoint::state_dict`].
///
/// ```
/// # use frazil::{StateDict, Tensor, read_checkpoint, write_checkpoint};
/// # let folder = tempfile::tempdir().map_err(|e| frazil::Error::Text(e.to_string()))?;
/// # let path = folder.path().join("state.pt");
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
/// # def forward(self, x): return self.fc(x)\n";
/// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// write_checkpoint(&model.state_dict()?, &path)?; // torch.save(model.state_dict(), path)
/// model.load_state_dict(&read_checkpoint(&path)?, true)?; // model.load_state_dict(torch.load(path))
/// # Ok::<(), frazil::Error>(())
/// ```
///
/// # Errors
/// The errors of [`Checkpoint::read`] and [`Checkpoint::state_dict`].
pub fn read_checkpoint(path: impl AsRef<Path>) -> Result<StateDict> {
    Checkpoint::read(path)?.state_dict()
}

/// Writes a state dictionary as a file that `torch.load(path, weights_only=True)` reads. Tensors that share memory also share it in the file. Tensors that
/// require gradients become parameters. No partial file remains after an error.
///
/// See [`read_checkpoint`] for an example.
///
/// # Errors
/// If the file cannot be written.
pub fn write_checkpoint(state: &StateDict, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let mut exporter = Exporter::new();
    let mut tensors = Vec::with_capacity(state.len());
    for (name, tensor) in state {
        tensors.push((name.clone(), Arc::new(exporter.tensor(tensor)?)));
    }
    // As in PyTorch, the directory in the zip file has the name of the file.
    let top = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let written = write_atomically(path, |file| {
        let mut out = save_checkpoint(&tensors, BufWriter::new(file), top)?;
        out.flush()?;
        Ok::<(), SaveError>(())
    });
    written.map_err(|error| match error {
        SaveError::Io(source) => Error::io("write", path, source),
        other => Error::Save(other),
    })
}
