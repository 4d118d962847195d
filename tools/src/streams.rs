//! Output to folders and to the standard streams, which may be closed or full, or without a reader.

use crate::{Failure, print_failure};
use frazil_syntax::OutputFile;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Parses the options of the process. Help texts (`--help`) and errors are written by this function.
///
/// # Errors
/// The exit status, if there is nothing left to do.
pub fn arguments<O: clap::Parser>() -> Result<O, u8> {
    O::try_parse().map_err(|error| {
        if error.use_stderr() {
            tell(error.render());
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
        match print_line(error.render().to_string().trim_end()) {
            Ok(()) => 0,
            Err(failure) => print_failure(&failure, Path::new("-")),
        }
    })
}

/// Writes `bytes` to standard output. A reader that closes the pipe early (`jit-opt ... | head`) is not an error.
///
/// # Errors
/// If standard output cannot be written for another reason.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|e| Failure::io("write", Path::new("standard output"), e)),
    }
}

/// Writes a line to standard output.
///
/// # Errors
/// See [`print()`].
pub fn print_line(line: impl Display) -> Result<(), Failure> {
    print(format!("{line}\n").as_bytes())
}

/// A folder for results. If the path is a device, such as `/dev/null`, results are written to the device.
pub struct OutputFolder<'p> {
    path: &'p Path,
    is_device: bool,
}

impl OutputFolder<'_> {
    /// Opens the folder, which is created if it does not exist.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path) -> Result<OutputFolder<'_>, Failure> {
        let is_device = std::fs::metadata(path).is_ok_and(|found| !found.is_dir() && !found.is_file());
        if !is_device {
            std::fs::create_dir_all(path).map_err(|e| Failure::io("make", path, e))?;
        }
        Ok(OutputFolder { path, is_device })
    }

    /// Writes a file completely or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        self.write_all(&[(name, bytes)])
    }

    /// Writes files that belong together. All are written before any is renamed.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn write_all(&self, files: &[(&str, &[u8])]) -> Result<(), Failure> {
        let mut written = Vec::new();
        for (name, bytes) in files {
            let path = match self.is_device {
                true => self.path.to_owned(),
                false => self.path.join(name),
            };
            let file = OutputFile::create(&path).and_then(|mut file| {
                file.file().write_all(bytes)?;
                Ok(file)
            });
            match file {
                Ok(file) => written.push((path, file)),
                Err(e) => return Err(Failure::io("write", &path, e)),
            }
        }
        for (path, file) in written {
            file.commit().map_err(|e| Failure::io("write", &path, e))?;
        }
        Ok(())
    }
}

/// Writes `text` to standard error. Failures are ignored, because they cannot be reported.
pub fn tell(text: impl Display) {
    let _ = write!(std::io::stderr().lock(), "{text}");
}
