//! Output files that are there whole or not at all.

use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// Writes a file at `path` through a temporary one in the same folder, so that a failure leaves what was there before. `write` gets the
/// temporary file; what fails there is passed on, and no file stays.
///
/// # Errors
/// Those of `write`, and when the folder cannot be written to.
pub fn write_atomically<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut NamedTempFile) -> Result<(), E>,
) -> Result<(), E> {
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let mut file = NamedTempFile::new_in(folder)?;
    write(&mut file)?;
    // Temporary files are private; what is written has the usual permissions.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}
