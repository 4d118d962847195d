//! Files from which tensors are read when they are needed.

use crate::error::{Error, Result};
use frazil_ir::FileBytes;
use std::sync::Arc;

/// The files from which tensors of a module are read: an archive, or the file beside a text. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Backing(Arc<[Arc<FileBytes>]>);

impl Backing {
    pub fn new(files: impl IntoIterator<Item = Arc<FileBytes>>) -> Backing {
        Backing(files.into_iter().collect())
    }

    /// Checks that no read of a file has failed. Callers must do this before they return anything that was computed from tensors: zeros replace the parts
    /// of a file that could not be read.
    ///
    /// # Errors
    /// If a read has failed, now or before.
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
