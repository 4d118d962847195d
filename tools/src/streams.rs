//! Writing to the standard streams, which may be closed or full, or have lost their reader.

use crate::Failure;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Writes `bytes` to standard output. A reader that has seen enough (`jit-opt ... | head`) is no failure.
///
/// # Errors
/// When standard output cannot be written for another reason.
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
/// As [`print()`].
pub fn print_line(line: impl Display) -> Result<(), Failure> {
    print(format!("{line}\n").as_bytes())
}

/// Writes to standard error; what cannot be written there is lost, since there is nowhere else to say so.
pub fn tell(text: impl Display) {
    let _ = write!(std::io::stderr().lock(), "{text}");
}
