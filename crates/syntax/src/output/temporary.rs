//! Temporary files beside those that they will replace, and what is left of them when a process was killed.
//!
//! A process holds a lock on each temporary file that it writes. The system takes the lock away when the process ends, in whatever way. So a temporary
//! file without a lock is nobody's, and the next process that writes to the folder removes it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

/// How the names of temporary files begin.
const PREFIX: &str = ".frazil-";

/// Names of a folder beyond which no more are looked at: writing a file must not take longer for what else is beside it.
const MAX_NAMES: usize = 10_000;

/// Attempts to create a file that no other process removes before it is locked.
const ATTEMPTS: usize = 16;

/// A new file in `folder`, locked; those that dead processes have left there are removed.
///
/// # Errors
/// When the folder cannot be written to.
pub(super) fn create_in(folder: &Path) -> io::Result<NamedTempFile> {
    remove_leftovers(folder);
    for _ in 0..ATTEMPTS {
        let temporary = builder().tempfile_in(folder)?;
        match temporary.as_file().try_lock() {
            Ok(()) if has_name(temporary.as_file()) => return Ok(temporary),
            // Another process took it for a leftover before it was locked.
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            // A file system without locks. Nobody can lock the file to remove it, either.
            Err(TryLockError::Error(_)) => return Ok(temporary),
        }
    }
    Err(io::Error::other(
        "temporary files are removed as soon as they are created",
    ))
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    // Temporary files are private by default; these get what the user's mask leaves, as other new files do.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

/// Removes the user's own temporary files in `folder` that nobody holds a lock on. What cannot be removed stays.
#[cfg(unix)]
fn remove_leftovers(folder: &Path) {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let Ok(names) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in names.take(MAX_NAMES).flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        // Somebody may have given such a name to a link or a pipe.
        let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
        let opened = File::options().read(true).custom_flags(flags as i32).open(entry.path());
        let Ok(file) = opened else { continue };
        let is_own = |found: std::fs::Metadata| found.is_file() && found.uid() == rustix::process::geteuid().as_raw();
        if file.metadata().is_ok_and(is_own) && file.try_lock().is_ok() {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(not(unix))]
fn remove_leftovers(_: &Path) {}

/// Whether the open file still has a name.
#[cfg(unix)]
fn has_name(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|found| found.nlink() > 0)
}

#[cfg(not(unix))]
fn has_name(_: &File) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_writes_any_more_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let living = create_in(folder.path()).unwrap();
        // As a process leaves it that was killed.
        std::fs::write(path(".frazil-dead"), "half").unwrap();
        std::fs::write(path("other"), "whole").unwrap();
        std::os::unix::fs::symlink(path("other"), path(".frazil-link")).unwrap();
        std::fs::create_dir(path(".frazil-folder")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path(".frazil-pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        let next = create_in(folder.path()).unwrap();
        assert!(living.path().exists() && next.path().exists());
        assert!(!path(".frazil-dead").exists());
        for name in ["other", ".frazil-link", ".frazil-folder", ".frazil-pipe"] {
            assert!(path(name).symlink_metadata().is_ok(), "{name} is removed");
        }
        drop(living);
        assert_eq!(std::fs::read_to_string(path("other")).unwrap(), "whole");
    }

    #[test]
    fn many_at_once_remove_none_of_each_other() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..4 {
                let path = folder.path().join(format!("out{number}"));
                scope.spawn(move || {
                    for round in 0..100 {
                        super::super::write_atomically(&path, |file| io::Write::write_all(file, &[round])).unwrap();
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
    }
}
