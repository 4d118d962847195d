//! Diagnostics about a text: problem, location, and advice. They are plain data; `frazil-syntax` renders them.

use crate::Span;
use std::fmt;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Information that belongs to another diagnostic or needs no action.
    Note,
    /// Suspicious input that is accepted.
    Warning,
    /// An error: there is no result.
    Error,
}

/// A marked location in the text, with a message about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The location.
    pub span: Span,
    /// The message about the location.
    pub message: String,
}

/// One message with its locations. The first label is the primary one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// A code such as `unknown-value`, which does not change between versions, for tests and documentation.
    pub code: &'static str,
    /// One sentence that describes the problem.
    pub message: String,
    /// Locations in the text; the first is the primary one.
    pub labels: Vec<Label>,
    /// Advice for the author of the text.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Returns an error with one location.
    pub fn error(code: &'static str, message: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            labels: vec![Label {
                span,
                message: label.into(),
            }],
            help: None,
        }
    }

    /// Adds a secondary location.
    #[must_use]
    pub fn with_label(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            message: message.into(),
        });
        self
    }

    /// Sets the advice for the author of the text.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}
