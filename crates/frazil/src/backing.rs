//! Archives that tensors are read from when they are needed.

use crate::{Error, Result};
use frazil_torchscript::archive::SharedBytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The archive that tensors of a module are read from, if there is one. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Backing(Option<Arc<(PathBuf, SharedBytes)>>);

impl Backing {
    /// The archive at `path`.
    pub fn new(path: &Path, bytes: SharedBytes) -> Backing {
        Backing(Some(Arc::new((path.to_owned(), bytes))))
    }

    /// To be called before something that was computed from tensors is given away: where a part of the archive could not be read, zeros have taken its
    /// place.
    ///
    /// # Errors
    /// When that has happened, now or before.
    pub fn check(&self) -> Result<()> {
        match self.0.as_deref() {
            Some((path, bytes)) if !bytes.is_whole() => {
                let changed = std::io::Error::other("it has changed since it was loaded; load it again");
                Err(Error::io("read", path, changed))
            }
            _ => Ok(()),
        }
    }
}
