//! Private folders and files, for data that is trusted when it is read again, in particular machine code. They cannot have been written by other users.
//!
//! Ownership and permissions protect against other users of the machine:
//!
//! - A folder, and missing parent folders, are created with mode 0700 and files with 0600, independently of the process's file mode mask.
//! - A folder, and a file in it, must be owned by the effective user of the process, or by root, and be writable by no other user. Other users only read from a
//!   folder of root.
//! - The folder is opened once for each access, without following a symbolic link, and files are accessed through it. So the checked file is always the one
//!   that is read.
//! - A file is opened without following a link and without waiting for a writer of a FIFO, and must be a regular file.
//! - A file is written under a new random name, and renamed: a link that was planted under its name is replaced, not followed.
//!
//! On systems without such permissions, files are only written under another name and renamed.

use crate::output::temporary::{PREFIX, remove_leftovers};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// A folder of private files; see the [module's documentation](self). It is created on the first write.
#[derive(Clone, Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    /// Whether leftovers of killed processes have been removed, by this folder or a clone of it.
    is_tidied: Arc<AtomicBool>,
}

impl PrivateFolder {
    /// Returns the private folder at `path`, without accessing it.
    pub fn new(path: impl Into<PathBuf>) -> PrivateFolder {
        let path: PathBuf = path.into();
        // Without a slash or a dot at the end, after which the system would follow a link.
        let path: PathBuf = match path.as_os_str().is_empty() {
            true => ".".into(),
            false => path.components().collect(),
        };
        PrivateFolder {
            path,
            is_tidied: Arc::default(),
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the folder if there is none, and checks that it may be used.
    ///
    /// # Errors
    /// If it cannot be created, or others may have written to it; the message contains a remedy.
    pub fn prepare(&self) -> io::Result<()> {
        system::Folder::create(&self.path).map(drop)
    }

    /// Opens the file `name` for reading.
    ///
    /// # Errors
    /// If there is no such file, if it is not a regular one, or if others may have written to it or to the folder.
    pub fn open(&self, name: &str) -> io::Result<File> {
        system::Folder::open(&self.path)?.read(plain(name)?)
    }

    /// Returns the contents of the file `name`.
    ///
    /// # Errors
    /// The errors of [`PrivateFolder::open`]; also if it has more than `most` bytes.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        read_at_most(&self.open(name)?, most)
    }

    /// Replaces the file `name` by the output of `write`. Processes that have opened the old file keep it. Returns false and changes nothing if `write`
    /// returns false, or if another process deletes the folder meanwhile.
    ///
    /// # Errors
    /// The errors of `write` and of [`PrivateFolder::prepare`]; also if the folder or the file cannot be written.
    pub fn write(&self, name: &str, write: impl FnOnce(&mut File) -> io::Result<bool>) -> io::Result<bool> {
        self.put(name, write, system::Folder::rename)
    }

    /// Creates the file `name` with the content `bytes`, unless there is one. The file is complete once it has its name. So all processes that do this at
    /// once read the same content afterwards.
    ///
    /// # Errors
    /// The errors of [`PrivateFolder::write`].
    pub(crate) fn create(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let write = |file: &mut File| file.write_all(bytes).map(|()| true);
        match self.put(name, write, system::Folder::rename_new) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            done => done.map(drop),
        }
    }

    /// Returns the regular files in the folder that belong to the user of the process. Files that are removed meanwhile may be missing.
    ///
    /// # Errors
    /// If the folder cannot be used or read.
    pub(crate) fn list(&self) -> io::Result<Vec<Listed>> {
        let folder = system::Folder::open(&self.path)?;
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            if let Some((bytes, modified)) = folder.state(&name) {
                files.push(Listed { name, bytes, modified });
            }
        }
        Ok(files)
    }

    /// Removes a file whose first bytes are `start`, unless it was modified or replaced since it was listed. Returns whether it no longer exists.
    pub(crate) fn remove(&self, file: &Listed, start: &[u8]) -> bool {
        let Ok(folder) = system::Folder::open(&self.path) else {
            return false;
        };
        let mut found = match folder.read(&file.name) {
            Ok(found) => found,
            Err(e) => return e.kind() == io::ErrorKind::NotFound,
        };
        let is_same = found.metadata().and_then(|state| state.modified()).ok() == Some(file.modified);
        let mut bytes = vec![0; start.len()];
        if !is_same || found.read_exact(&mut bytes).is_err() || bytes != start {
            return false;
        }
        folder.remove(&file.name);
        folder.state(&file.name).is_none()
    }

    fn put(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<bool>,
        rename: impl FnOnce(&system::Folder, &str, &str) -> io::Result<()>,
    ) -> io::Result<bool> {
        let name = plain(name)?;
        let (folder, temporary, mut file) = self.temporary()?;
        if !self.is_tidied.swap(true, Ordering::Relaxed) {
            remove_leftovers(&self.path, false);
        }
        // The lock that distinguishes the file from a leftover is held until it is renamed.
        let written = write(&mut file).and_then(|wanted| Ok(wanted && was_there(rename(&folder, &temporary, name))?));
        drop(file);
        if !matches!(written, Ok(true)) {
            folder.remove(&temporary);
        }
        written
    }

    /// Creates a temporary file in the folder. The folder is created if necessary, and again if another process deletes it meanwhile.
    fn temporary(&self) -> io::Result<(system::Folder, String, File)> {
        let mut tries = 0;
        loop {
            let created = system::Folder::create(&self.path).and_then(|folder| {
                if !folder.is_writable() {
                    let text = "it belongs to root, and no other user writes to it";
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
                }
                let (name, file) = folder.temporary()?;
                Ok((folder, name, file))
            });
            match created {
                Err(e) if e.kind() == io::ErrorKind::NotFound && tries < DELETIONS => tries += 1,
                created => return created,
            }
        }
    }
}

/// A file of a folder, as it was when the folder was listed.
pub(crate) struct Listed {
    pub name: String,
    pub bytes: u64,
    pub modified: SystemTime,
}

/// Reads the regular file at `path`, which may be a link and belong to any user. Does not wait for data of a FIFO or a device.
///
/// # Errors
/// If it cannot be read, is not a regular file, or has more than `most` bytes.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_at_most(&system::open_regular(path)?, most)
}

/// Returns false if the file operation failed because the file does not exist.
fn was_there(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        done => done.map(|()| true),
    }
}

fn read_at_most(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > most {
        return Err(io::Error::other(format!(
            "it has {length} bytes, more than {most} are not expected"
        )));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length as usize)?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Checks that a name is a plain file name, so that the file is inside the folder.
fn plain(name: &str) -> io::Result<&str> {
    let is_plain = Path::new(name).file_name().is_some_and(|only| only == name);
    is_plain
        .then_some(name)
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Returns an unpredictable file name, generated by a hasher with random keys.
fn random_name() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let number = || RandomState::new().build_hasher().finish();
    format!("{PREFIX}{:016x}{:016x}", number(), number())
}

/// Maximum number of times that the folder is created again after other processes have deleted it.
const DELETIONS: usize = 1000;

/// Maximum number of random file names that are tried.
const TRIES: usize = 16;

#[cfg(unix)]
mod system {
    use super::{TRIES, random_name};
    use crate::output::temporary::{lock, not_standard};
    use rustix::fd::OwnedFd;
    use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
    use rustix::io::Errno;
    use std::fs::File;
    use std::io;
    use std::path::Path;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    const FOLDER_MODE: u32 = 0o700;
    const FILE_MODE: u32 = 0o600;
    /// Permission bits that allow writing by the group or by others.
    const FOREIGN_WRITE: u32 = 0o022;

    /// An open folder whose owner and permissions have been checked.
    pub(super) struct Folder {
        fd: OwnedFd,
        is_writable: bool,
    }

    impl Folder {
        /// Opens the folder at `path`, which is created if necessary.
        pub fn create(path: &Path) -> io::Result<Folder> {
            match Folder::open(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                found => return found,
            }
            make(path)?;
            Folder::open(path)
        }

        /// Opens the folder at `path`.
        pub fn open(path: &Path) -> io::Result<Folder> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = fs::open(path, flags, Mode::empty()).map_err(|e| {
                let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
                if is_link { link() } else { e.into() }
            })?;
            let found = fs::fstat(&fd)?;
            check(&found)?;
            let is_writable = found.st_uid == user();
            Ok(Folder { fd, is_writable })
        }

        pub fn is_writable(&self) -> bool {
            self.is_writable
        }

        pub fn read(&self, name: &str) -> io::Result<File> {
            let file = fs::openat(&self.fd, name, READ | OFlags::NOFOLLOW, Mode::empty());
            let file = file.map_err(|e| if e == Errno::LOOP { link() } else { e.into() })?;
            let found = fs::fstat(&file)?;
            regular(&found)?;
            check(&found)?;
            Ok(file.into())
        }

        /// Creates a file with a random name.
        pub fn temporary(&self) -> io::Result<(String, File)> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(FILE_MODE);
            for _ in 0..TRIES {
                let name = random_name();
                match fs::openat(&self.fd, &name, flags, mode) {
                    Ok(file) => {
                        // The mask may have removed some of the mode.
                        if let Err(e) = fs::fchmod(&file, mode) {
                            self.remove(&name);
                            return Err(e.into());
                        }
                        let file = not_standard(file.into())?;
                        // Otherwise another process has deleted it, and possibly the folder.
                        return match lock(&file) {
                            true => Ok((name, file)),
                            false => Err(io::ErrorKind::NotFound.into()),
                        };
                    }
                    Err(Errno::EXIST) => {}
                    Err(e) => return Err(e.into()),
                }
            }
            Err(io::ErrorKind::AlreadyExists.into())
        }

        pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            Ok(fs::renameat(&self.fd, from, &self.fd, to)?)
        }

        /// Renames a file unless there is one with the new name.
        pub fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
            match fs::linkat(&self.fd, from, &self.fd, to, AtFlags::empty()) {
                Ok(()) => {
                    self.remove(from);
                    Ok(())
                }
                Err(e @ (Errno::EXIST | Errno::NOENT)) => Err(e.into()),
                // A file system without links, where the last of several processes replaces the file.
                Err(_) => self.rename(from, to),
            }
        }

        /// Returns size and modification time of a regular file of the process's user.
        pub fn state(&self, name: &str) -> Option<(u64, SystemTime)> {
            let found = fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            regular(&found).ok()?;
            let since = Duration::new(found.st_mtime.try_into().ok()?, found.st_mtime_nsec.try_into().ok()?);
            (found.st_uid == user()).then_some((found.st_size.try_into().ok()?, UNIX_EPOCH + since))
        }

        pub fn remove(&self, name: &str) {
            // A file that cannot be removed is left.
            let _ = fs::unlinkat(&self.fd, name, AtFlags::empty());
        }
    }

    /// Creates a folder at `path` with its missing parents, each with the permissions [`FOLDER_MODE`].
    fn make(path: &Path) -> io::Result<()> {
        let mkdir = || fs::mkdir(path, Mode::from_raw_mode(FOLDER_MODE));
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let made = match (mkdir(), parent) {
            (Err(Errno::NOENT), Some(parent)) => {
                make(parent)?;
                mkdir()
            }
            (made, _) => made,
        };
        match made {
            Ok(()) => open_up(path).inspect_err(|_| {
                // Otherwise the folder could not be used.
                let _ = std::fs::remove_dir(path);
            }),
            // Another process may have made it meanwhile.
            Err(Errno::EXIST) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Restores the bits of [`FOLDER_MODE`] that the process's mask removed from a new folder. Without these bits, the folder may be impossible to open.
    fn open_up(path: &Path) -> io::Result<()> {
        let mode = Mode::from_raw_mode(FOLDER_MODE);
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            use rustix::fd::AsRawFd;
            use std::os::unix::fs::PermissionsExt;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = fs::open(path, flags, Mode::empty())?;
            let found = fs::fstat(&fd)?;
            // A folder that was put in its place must not be changed.
            let may_be_it = found.st_uid == user() && found.st_mode & 0o777 & !FOLDER_MODE == 0;
            if may_be_it && found.st_mode & 0o7777 != mode.as_raw_mode() {
                // The system does not set modes through such a handle, but by its name.
                let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
                std::fs::set_permissions(name, std::fs::Permissions::from_mode(FOLDER_MODE))?;
            }
            Ok(())
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        Ok(fs::chmodat(fs::CWD, path, mode, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn link() -> io::Error {
        io::Error::other("it is a symbolic link, which is not followed")
    }

    const READ: OFlags = OFlags::RDONLY
        .union(OFlags::NONBLOCK)
        .union(OFlags::NOCTTY)
        .union(OFlags::CLOEXEC);

    pub(super) fn open_regular(path: &Path) -> io::Result<File> {
        let file = fs::open(path, READ, Mode::empty())?;
        regular(&fs::fstat(&file)?)?;
        Ok(file.into())
    }

    fn user() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn regular(found: &Stat) -> io::Result<()> {
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Ok(()),
            _ => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// Checks that only the user and root can have written to the file or folder with the state `found`.
    fn check(found: &Stat) -> io::Result<()> {
        let denied = |text: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        let (user, owner, mode) = (user(), found.st_uid, found.st_mode & 0o7777);
        if owner != user && owner != 0 {
            return denied(format!(
                "it belongs to user {owner}, and this process acts for user {user}"
            ));
        }
        if mode & FOREIGN_WRITE != 0 {
            return denied(format!(
                "others than its owner may write to it (mode {mode:03o}), and may have done so: delete it with all that is in it"
            ));
        }
        Ok(())
    }
}

#[cfg(not(unix))]
mod system {
    use super::{TRIES, random_name};
    use std::fs::File;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::time::SystemTime;

    /// An existing folder, on systems without checks of owner and permissions.
    pub(super) struct Folder(PathBuf);

    impl Folder {
        pub fn create(path: &Path) -> io::Result<Folder> {
            std::fs::create_dir_all(path)?;
            Folder::open(path)
        }

        pub fn open(path: &Path) -> io::Result<Folder> {
            match std::fs::symlink_metadata(path)?.is_dir() {
                true => Ok(Folder(path.to_owned())),
                false => Err(io::ErrorKind::NotADirectory.into()),
            }
        }

        pub fn is_writable(&self) -> bool {
            true
        }

        pub fn read(&self, name: &str) -> io::Result<File> {
            open_regular(&self.0.join(name))
        }

        pub fn temporary(&self) -> io::Result<(String, File)> {
            for _ in 0..TRIES {
                let name = random_name();
                match File::create_new(self.0.join(&name)) {
                    Ok(file) => return Ok((name, file)),
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(e) => return Err(e),
                }
            }
            Err(io::ErrorKind::AlreadyExists.into())
        }

        pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            std::fs::rename(self.0.join(from), self.0.join(to))
        }

        pub fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
            std::fs::hard_link(self.0.join(from), self.0.join(to))?;
            self.remove(from);
            Ok(())
        }

        pub fn state(&self, name: &str) -> Option<(u64, SystemTime)> {
            let found = std::fs::symlink_metadata(self.0.join(name)).ok()?;
            let modified = found.modified().ok()?;
            found.is_file().then_some((found.len(), modified))
        }

        pub fn remove(&self, name: &str) {
            let _ = std::fs::remove_file(self.0.join(name));
        }
    }

    pub(super) fn open_regular(path: &Path) -> io::Result<File> {
        match std::fs::metadata(path)?.is_file() {
            true => File::open(path),
            false => Err(io::Error::other("it is not a regular file")),
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
