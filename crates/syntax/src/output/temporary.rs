//! Temporary files in the folder of the files that they will replace, and removal of leftovers of killed processes.
//!
//! A process holds a lock on each temporary file that it writes. The system releases the lock when the process ends in any way. So a temporary file
//! without a lock is a leftover, and the next process that writes to the folder removes it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

/// Prefix of the names of temporary files.
pub(crate) const PREFIX: &str = ".frazil-";

/// Maximum number of names in a folder that are examined for leftovers, so that writing is fast in folders with many files.
const MAX_NAMES: usize = 10_000;

/// Maximum number of attempts to create a file that another process removes before it is locked.
const ATTEMPTS: usize = 16;

/// Creates and locks a file in `folder`, after removing leftovers there.
///
/// # Errors
/// If the folder cannot be written to.
pub(super) fn create_in(folder: &Path) -> io::Result<NamedTempFile> {
    remove_leftovers(folder, false);
    for _ in 0..ATTEMPTS {
        let (file, path) = builder().tempfile_in(folder)?.into_parts();
        let temporary = NamedTempFile::from_parts(not_standard(file)?, path);
        if lock(temporary.as_file()) {
            return Ok(temporary);
        }
    }
    Err(io::Error::other(
        "temporary files are removed as soon as they are created",
    ))
}

/// Locks a temporary file that was just created. Returns false if another process has already removed the file as a leftover.
pub(crate) fn lock(file: &File) -> bool {
    match file.try_lock() {
        Ok(()) => has_name(file),
        Err(TryLockError::WouldBlock) => false,
        // A file system without locks, where other processes cannot lock the file to remove it either.
        Err(TryLockError::Error(_)) => true,
    }
}

/// Moves the file to a descriptor that is not one of the standard streams. If the process was started without standard streams, printed text would otherwise
/// be written to the file.
#[cfg(unix)]
pub(crate) fn not_standard(file: File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    const STANDARD: i32 = 3;
    match file.as_raw_fd() < STANDARD {
        true => Ok(rustix::io::fcntl_dupfd_cloexec(&file, STANDARD)?.into()),
        false => Ok(file),
    }
}

#[cfg(not(unix))]
pub(crate) fn not_standard(file: File) -> io::Result<File> {
    Ok(file)
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    // Temporary files are private by default; these get the permissions of other new files.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

/// Removes the user's own unlocked temporary files (or folders, if `folders`) in `folder`. Failures are ignored.
#[cfg(unix)]
pub(crate) fn remove_leftovers(folder: &Path, folders: bool) {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let Ok(names) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in names.take(MAX_NAMES).flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        // A link or a pipe may have such a name.
        let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
        let opened = File::options().read(true).custom_flags(flags as i32).open(entry.path());
        let Ok(file) = opened else { continue };
        let is_kind = |found: &std::fs::Metadata| if folders { found.is_dir() } else { found.is_file() };
        let is_own = |found: std::fs::Metadata| is_kind(&found) && found.uid() == rustix::process::geteuid().as_raw();
        if file.metadata().is_ok_and(is_own) && file.try_lock().is_ok() {
            let _ = match folders {
                true => std::fs::remove_dir_all(entry.path()),
                false => std::fs::remove_file(entry.path()),
            };
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn remove_leftovers(_: &Path, _: bool) {}

/// Returns whether the open file `file` still has a name in the file system.
#[cfg(unix)]
pub(super) fn has_name(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|found| found.nlink() > 0)
}

#[cfg(not(unix))]
pub(super) fn has_name(_: &File) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn leftovers_without_a_writer_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let living = create_in(folder.path()).unwrap();
        // The state after a process was killed.
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
    fn no_file_takes_the_place_of_a_standard_stream() {
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().unwrap();
        let mut temporary = create_in(folder.path()).unwrap();
        assert!(temporary.as_file().as_raw_fd() > 2);
        io::Write::write_all(temporary.as_file_mut(), b"text").unwrap();
        assert_eq!(std::fs::read_to_string(temporary.path()).unwrap(), "text");
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
