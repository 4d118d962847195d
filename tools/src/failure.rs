//! How the tools fail: a message on standard error, and an exit status.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// Why a tool stops.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line asks for something that there is not: exit status 2.
    #[error("{0}")]
    Usage(String),
    /// The input is bad, or cannot be processed: exit status 1.
    #[error(transparent)]
    Frazil(#[from] frazil::Error),
    /// A case, or its results.
    #[error(transparent)]
    Case(#[from] crate::case::CaseError),
    /// A file that cannot be read or written.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// "read" or "write".
        action: &'static str,
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Anything else that is the input's fault.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// Bad usage.
    pub fn usage(message: String) -> Failure {
        Failure::Usage(message)
    }

    /// A file that could not be read or written.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> Failure {
        Failure::Io {
            action,
            path: path.display().to_string(),
            source,
        }
    }
}

/// Prints `failure` with its causes and gives the exit status.
pub fn print_failure(failure: &Failure) -> ExitCode {
    match failure {
        // Text is shown with the lines that are wrong.
        Failure::Frazil(frazil::Error::Text(report)) => eprint!("{report}"),
        other => {
            eprintln!("error: {other}");
            let mut shown = other.to_string();
            let mut source = other.source();
            while let Some(cause) = source {
                let text = cause.to_string();
                // Transparent errors, and those that quote their cause, say it once.
                if !shown.contains(&text) {
                    eprintln!("  caused by: {text}");
                    shown = text;
                }
                source = cause.source();
            }
        }
    }
    match failure {
        Failure::Usage(_) => ExitCode::from(2),
        _ => ExitCode::from(1),
    }
}
