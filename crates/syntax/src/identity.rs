//! Which file something came from, so exactly that what was made of it can be kept for the next time.

use std::fs::File;

/// A file and its state: another number, size or time is another content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    /// When content, name or permissions changed last; programs cannot set this one.
    changed: (i64, i64),
}

impl FileIdentity {
    /// The identity of an open file. `None` where the system does not tell enough, and for files that were changed just now: within one tick
    /// of the file system's clock they could change again and look the same.
    #[cfg(unix)]
    pub fn of(file: &File) -> Option<FileIdentity> {
        use std::os::unix::fs::MetadataExt;
        use std::time::{Duration, UNIX_EPOCH};
        /// Longer than any system's tick.
        const TICK: Duration = Duration::from_millis(50);
        let found = file.metadata().ok()?;
        let changed = Duration::new(found.ctime().try_into().ok()?, found.ctime_nsec().try_into().ok()?);
        let age = UNIX_EPOCH.elapsed().ok()?.checked_sub(changed)?;
        (found.is_file() && age > TICK).then(|| FileIdentity {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// The identity of an open file: not known here.
    #[cfg(not(unix))]
    pub fn of(_: &File) -> Option<FileIdentity> {
        None
    }

    /// The identity of the running program: what another build of it keeps is not for this one.
    pub fn of_this_program() -> Option<FileIdentity> {
        FileIdentity::of(&File::open(std::env::current_exe().ok()?).ok()?)
    }
}
