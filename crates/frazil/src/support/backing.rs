//! The files from which a model's tensors are read on first use.

use crate::error::{Error, Result};
use frazil_ir::FileBytes;
use std::sync::Arc;

/// The files from which tensors of a module are read: an archive, or the tensor file of a module file. Clones share the files.
#[derive(Clone, Default)]
pub(crate) struct Backing(Arc<[Arc<FileBytes>]>);

impl Backing {
    pub fn new(files: impl IntoIterator<Item = Arc<FileBytes>>) -> Backing {
        Backing(files.into_iter().collect())
    }

    /// Checks that no read of a file has failed. Callers must do this before they return a result that was computed from tensors, because unreadable parts of a
    /// file are replaced by zeros.
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
