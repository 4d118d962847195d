//! Temporary folders for the files of one process.

use super::temporary::{PREFIX, has_name, remove_leftovers};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use tempfile::{Builder, TempDir};

/// Maximum number of attempts to create a folder that another process removes before it is locked.
const ATTEMPTS: usize = 16;

/// A folder in the system's folder for temporary files, which is removed on drop. Leftovers of killed processes are removed by the next process
/// that creates such a folder.
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: TempDir,
    /// The lock that marks the folder as in use by this process; `None` on systems without locks.
    _lock: Option<File>,
}

impl TemporaryFolder {
    /// Creates a folder.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn create() -> io::Result<TemporaryFolder> {
        TemporaryFolder::create_in(&std::env::temp_dir())
    }

    fn create_in(parent: &Path) -> io::Result<TemporaryFolder> {
        remove_leftovers(parent, true);
        for _ in 0..ATTEMPTS {
            let folder = Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            // On systems where folders cannot be opened, other processes cannot lock them either.
            let Ok(lock) = File::open(folder.path()) else {
                return Ok(TemporaryFolder { folder, _lock: None });
            };
            match lock.try_lock() {
                Ok(()) if !has_name(&lock) => {}
                Ok(()) | Err(TryLockError::Error(_)) => {
                    let lock = Some(lock);
                    return Ok(TemporaryFolder { folder, _lock: lock });
                }
                // Another process considered it a leftover before it was locked, and removes it.
                Err(TryLockError::WouldBlock) => {}
            }
        }
        Err(io::Error::other(
            "temporary folders are removed as soon as they are created",
        ))
    }

    /// Returns the path of the temporary folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_processes_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        let living = TemporaryFolder::create_in(parent.path()).unwrap();
        std::fs::write(living.path().join("part"), "half").unwrap();
        for name in [".frazil-dead", "other"] {
            std::fs::create_dir_all(path(name).join("inner")).unwrap();
        }
        std::os::unix::fs::symlink(path("other"), path(".frazil-link")).unwrap();
        let next = TemporaryFolder::create_in(parent.path()).unwrap();
        assert!(living.path().join("part").exists() && next.path().exists());
        assert!(!path(".frazil-dead").exists());
        assert!(path("other").join("inner").exists() && path(".frazil-link").symlink_metadata().is_ok());
        let gone = living.path().to_owned();
        drop(living);
        assert!(!gone.exists());
    }
}
