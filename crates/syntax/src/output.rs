//! Output files that are written completely or not at all.

mod folder;
pub(crate) mod temporary;

pub use folder::TemporaryFolder;

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that is being written: under a temporary name until [`OutputFile::commit`], so that existing content survives a failure.
/// Dropping it instead leaves no file.
///
/// A symbolic link is kept, and its target is replaced. A path that is not a regular file (a terminal, a pipe, `/dev/null`) is written to,
/// not replaced: renaming a file over a device would remove the device for all users.
///
/// The folder may belong to a user who renames files in it meanwhile. So the temporary file is written, and its permissions are set, through its open
/// handle only, and the permissions of another user's file are not copied.
pub struct OutputFile {
    destination: Destination,
}

/// The open file that receives the bytes.
enum Destination {
    /// A temporary file beside `path`, which gets `permissions` at the end, or the permissions of new files if there are none.
    Regular {
        temporary: NamedTempFile,
        path: PathBuf,
        permissions: Option<Permissions>,
    },
    /// A file without a name, whose bytes are copied to a path that cannot be replaced.
    Special { bytes: File, path: PathBuf },
}

impl OutputFile {
    /// Starts to write a file at `path`.
    ///
    /// # Errors
    /// If `path` is a folder, or its folder cannot be written to.
    pub fn create(path: &Path) -> io::Result<OutputFile> {
        let found = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) => Some(found),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            let (bytes, path) = (tempfile::tempfile()?, path.to_owned());
            return Ok(OutputFile {
                destination: Destination::Special { bytes, path },
            });
        }
        let path = match found {
            Some(_) => std::fs::canonicalize(path)?,
            None => path.to_owned(),
        };
        OutputFile::regular(path, found)
    }

    /// Starts to write a file at `path`, a name that the user has not chosen: a planted symbolic link is replaced and not followed.
    ///
    /// # Errors
    /// If `path` is neither a file nor a link, or its folder cannot be written to.
    pub fn replacing(path: &Path) -> io::Result<OutputFile> {
        match std::fs::symlink_metadata(path) {
            Ok(found) if found.is_file() => OutputFile::regular(path.to_owned(), Some(found)),
            Ok(found) if found.is_symlink() => OutputFile::regular(path.to_owned(), None),
            Ok(_) => Err(io::Error::other("it is not a regular file")),
            Err(e) if e.kind() == io::ErrorKind::NotFound => OutputFile::regular(path.to_owned(), None),
            Err(e) => Err(e),
        }
    }

    /// Returns an output to the regular file at `path`. The file gets the permissions of the existing file `found`, if that belongs to the user.
    fn regular(path: PathBuf, found: Option<Metadata>) -> io::Result<OutputFile> {
        let temporary = temporary::create_in(match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        })?;
        let permissions = found.as_ref().and_then(own_permissions);
        Ok(OutputFile {
            destination: Destination::Regular {
                temporary,
                path,
                permissions,
            },
        })
    }

    /// Returns whether the path will be a regular file, rather than a device, a pipe or the like to which the bytes are written.
    pub fn is_file(&self) -> bool {
        matches!(self.destination, Destination::Regular { .. })
    }

    /// Returns the file to which the output is written. Writes are not buffered.
    pub fn file(&mut self) -> &mut File {
        match &mut self.destination {
            Destination::Regular { temporary, .. } => temporary.as_file_mut(),
            Destination::Special { bytes, .. } => bytes,
        }
    }

    /// Moves the written file to its path.
    ///
    /// # Errors
    /// If it cannot be moved; an existing regular file is then unchanged.
    pub fn commit(self) -> io::Result<()> {
        match self.destination {
            Destination::Regular {
                temporary,
                path,
                permissions,
            } => {
                if let Some(permissions) = permissions {
                    temporary.as_file().set_permissions(permissions)?;
                }
                temporary.persist(path)?;
            }
            Destination::Special { mut bytes, path } => {
                let mut special = File::options().write(true).open(path)?;
                // A link that was made meanwhile would name a file that the user did not choose to overwrite.
                if special.metadata()?.is_file() {
                    return Err(io::Error::other("it has become a regular file meanwhile"));
                }
                bytes.rewind()?;
                io::copy(&mut bytes, &mut special)?;
            }
        }
        Ok(())
    }
}

/// Returns the permissions of the existing file, if the user owns it, without the setuid and setgid bits.
#[cfg(unix)]
fn own_permissions(found: &Metadata) -> Option<Permissions> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    is_own.then(|| Permissions::from_mode(found.mode() & 0o777))
}

#[cfg(not(unix))]
fn own_permissions(found: &Metadata) -> Option<Permissions> {
    Some(found.permissions())
}

/// Writes a file at `path` as [`OutputFile`] does. `write` receives the temporary file; its errors are passed on.
///
/// # Errors
/// The errors of `write`; also if the file cannot be moved to its path.
pub fn write_atomically<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let mut output = OutputFile::create(path)?;
    write(output.file())?;
    Ok(output.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn put(path: &Path, text: &str) -> io::Result<()> {
        write_atomically(path, |file| file.write_all(text.as_bytes()))
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.ir");
        put(&path, "old").unwrap();
        let failed = write_atomically(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("no"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(put(folder.path(), "x").unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["real", "link"].map(|name| folder.path().join(name));
        put(&path, "old").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        symlink(&path, &link).unwrap();
        put(&link, "new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        // A link at a name that the user did not choose may have been planted.
        let mut output = OutputFile::replacing(&link).unwrap();
        output.file().write_all(b"other").unwrap();
        output.commit().unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "other");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert!(OutputFile::replacing(folder.path()).is_err());
    }

    /// Simulates an owner of the folder who replaces the temporary file with a link while it is written.
    #[cfg(unix)]
    #[test]
    fn a_planted_link_changes_no_other_file() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [path, victim] = ["out", "victim"].map(|name| folder.path().join(name));
        std::fs::write(&victim, "precious").unwrap();
        std::fs::set_permissions(&victim, Permissions::from_mode(0o600)).unwrap();
        put(&path, "old").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o4755)).unwrap();
        let mut output = OutputFile::create(&path).unwrap();
        let names = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let others: Vec<_> = names.filter(|name| *name != path && *name != victim).collect();
        let [temporary] = others.as_slice() else {
            panic!("one temporary file");
        };
        std::fs::remove_file(temporary).unwrap();
        symlink(&victim, temporary).unwrap();
        output.file().write_all(b"new").unwrap();
        output.commit().unwrap();
        let found = std::fs::metadata(&victim).unwrap();
        assert_eq!(found.mode() & 0o7777, 0o600);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }

    /// Setuid and setgid bits are not copied, and neither are the permissions of another user's file.
    #[cfg(unix)]
    #[test]
    fn permissions_are_taken_over_from_own_files_only() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
        let folder = tempfile::tempdir().unwrap();
        let [path, plain] = ["out", "plain"].map(|name| folder.path().join(name));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
        put(&plain, "new").unwrap();
        for planted in [0o4755, 0o2755, 0o6711, 0o1700] {
            put(&path, "old").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(planted)).unwrap();
            put(&path, "new").unwrap();
            assert_eq!(mode(&path), planted & 0o777);
        }
        if !rustix::process::geteuid().is_root() {
            eprintln!("only root can give files away: not tested with another user's");
            return;
        }
        std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        chown(&path, Some(12345), None).unwrap();
        put(&path, "new").unwrap();
        assert_eq!(mode(&path), mode(&plain));
        assert_eq!(std::fs::metadata(&path).unwrap().uid(), 0);
    }

    /// A pipe represents devices: it receives the bytes, and is not replaced by a file.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_no_regular_file_is_written_to() {
        use std::os::fd::AsRawFd;
        let (mut reader, writer) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", writer.as_raw_fd()));
        put(&path, "through").unwrap();
        drop(writer);
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "through");
    }
}
