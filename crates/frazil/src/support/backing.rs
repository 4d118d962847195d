//! Files that tensors are read from when they are needed.

use crate::error::{Error, Result};
use frazil_ir::FileBytes;
use std::sync::Arc;

/// The files that tensors of a module are read from: an archive, or what is beside a text. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Backing(Arc<[Arc<FileBytes>]>);

impl Backing {
    pub fn new(files: impl IntoIterator<Item = Arc<FileBytes>>) -> Backing {
        Backing(files.into_iter().collect())
    }

    /// To be called before something that was computed from tensors is given away: where a part of a file could not be read as it was, zeros have taken its
    /// place.
    ///
    /// # Errors
    /// When that has happened, now or before.
    pub fn check(&self) -> Result<()> {
        match self.0.iter().find(|file| !file.is_unchanged()) {
            Some(file) => {
                let changed = std::io::Error::other("it has changed since it was loaded; load it again");
                Err(Error::io("read", file.path(), changed))
            }
            None => Ok(()),
        }
    }
}
