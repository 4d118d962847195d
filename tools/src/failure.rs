//! Failures of the tools: a message on standard error, and an exit status.

use crate::streams::tell;
use frazil_ir::{Diagnostic, Severity, Span};
use std::error::Error;
use std::io::IsTerminal;
use std::path::Path;

/// The reason why a tool stops.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line is invalid: exit status 2.
    #[error("{0}")]
    Usage(String),
    /// The input is invalid, or cannot be processed: exit status 1.
    #[error(transparent)]
    Frazil(#[from] frazil::Error),
    /// A case file, or its recorded results, cannot be read.
    #[error(transparent)]
    Case(#[from] frazil_recorded::RecordedError),
    /// The result of a call cannot be written.
    #[error("the result of call {call} cannot be written: {error}; the results of the calls before it are")]
    Result {
        /// The index of the call, from 0.
        call: usize,
        /// The reason why the result cannot be written.
        error: frazil_recorded::RecordedError,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The attempted operation: "read" or "write".
        action: &'static str,
        /// The path of the file.
        path: String,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The input cannot be processed for another reason.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// Returns the failure for an invalid command line, with exit status 2.
    pub fn usage(message: String) -> Failure {
        Failure::Usage(message)
    }

    /// Returns the failure for a request of native code in a build without the code generator.
    #[cfg(not(feature = "codegen"))]
    pub(crate) fn without_codegen() -> Failure {
        Failure::usage("this program was built without code generation (Cargo's feature `codegen`)".into())
    }

    /// Returns the failure of reading or writing a file.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> Failure {
        Failure::Io {
            action,
            path: path.display().to_string(),
            source,
        }
    }
}

/// Prints `failure` with its causes, and the lines of the text `input` to which it refers. Returns the exit status.
pub fn print_failure(failure: &Failure, input: &Path) -> u8 {
    match failure {
        // Errors in text are shown with their lines.
        Failure::Frazil(frazil::Error::Text(report)) => tell(report),
        other => {
            let mut message = format!("error: {other}\n");
            let mut shown = other.to_string();
            let mut source = other.source();
            while let Some(cause) = source {
                let text = cause.to_string();
                // Transparent errors, and those that quote their cause, contain it already.
                if !shown.contains(&text) {
                    message += &format!("  caused by: {text}\n");
                    shown = text;
                }
                source = cause.source();
            }
            tell(with_lines(&message, input));
        }
    }
    match failure {
        Failure::Usage(_) => 2,
        _ => 1,
    }
}

/// Maximum number of lines of the input that an error message shows.
const MAX_LINES: usize = 20;

/// Returns `message`, followed by those lines of the `.ir` text `input` to which it refers as `input:line:column`, each with a caret.
fn with_lines(message: &str, input: &Path) -> String {
    let name = input.display().to_string();
    let mut out = message.to_owned();
    let mut places = message.split(&name).skip(1).filter_map(place).peekable();
    if places.peek().is_none() {
        return out;
    }
    let text = std::fs::read_to_string(input).ok();
    let Some(text) = text.filter(|text| frazil_syntax::sniff(text).is_some()) else {
        return out;
    };
    let mut seen = Vec::new();
    for (line, column) in places {
        if let Some(span) = span_at(&text, line, column)
            && !seen.contains(&span)
            && seen.len() < MAX_LINES
        {
            seen.push(span);
        }
    }
    let notes: Vec<Diagnostic> = seen.into_iter().map(|span| note(&text, span)).collect();
    if !notes.is_empty() {
        out += &frazil_syntax::render(&name, &text, &notes, std::io::stderr().is_terminal());
    }
    out
}

fn note(text: &str, span: Span) -> Diagnostic {
    let node = text.get(span.start as usize..span.end as usize).unwrap_or_default();
    let mut note = Diagnostic::error("place", format!("`{node}` stands here"), span, "this node");
    note.severity = Severity::Note;
    note
}

/// Returns the line and column at the start of `text`, which has the form `:3:16`.
fn place(text: &str) -> Option<(usize, usize)> {
    let mut parts = text.strip_prefix(':')?.splitn(2, ':');
    let line = parts.next()?.parse().ok()?;
    let column = parts.next()?;
    let digits = column.find(|c: char| !c.is_ascii_digit()).unwrap_or(column.len());
    Some((line, column[..digits].parse().ok()?))
}

/// Returns the span of the operator name that starts at a line and column, both from 1.
fn span_at(text: &str, line: usize, column: usize) -> Option<Span> {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.checked_sub(1)?)
        .map(str::len)
        .sum();
    let rest = text.get(before..)?.lines().next()?;
    let (start, _) = rest.char_indices().nth(column.checked_sub(1)?)?;
    let len = rest[start..].find(|c: char| c.is_whitespace() || matches!(c, '(' | '['));
    let len = len.unwrap_or(rest.len() - start);
    Some(Span::new(before + start, before + start + len))
}
