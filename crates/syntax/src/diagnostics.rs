//! Diagnostics about a text: collecting them while parsing, and rendering them with caret lines.
//!
//! Codes are stable; tests and documents may refer to them:
//!
//! | code | meaning |
//! | --- | --- |
//! | `unexpected-token` | something else was expected here |
//! | `unexpected-end` | the text ends too early |
//! | `unterminated-string` | a string without its closing quote |
//! | `bad-escape` | an unknown escape in a string |
//! | `bad-number` | a malformed number, or one that is out of range |
//! | `bad-literal` | an attribute value that cannot be read |
//! | `unknown-type` | an unknown type name |
//! | `bad-tensor-type` | a tensor type that contradicts itself |
//! | `alias-annotation` | `Tensor(a!)`, which is allowed in schemas only |
//! | `undefined-value` | use of a value that is not defined |
//! | `out-of-scope-value` | use of a value of a block that has ended |
//! | `redefined-value` | one name for two values |
//! | `duplicate-attribute` | one attribute twice on a node |
//! | `missing-return` | a graph or block without its results |
//! | `stray-block` | a block that belongs to no node |
//! | `python-operator` | a call into the Python interpreter (`^name`) |
//! | `unknown-subgraph` | a `with` part that no node refers to, or a node without its part |
//! | `nesting-too-deep` | blocks, types or values nested beyond the limit |
//! | `too-many-errors` | the rest of the text was not read |
//! | `output-type` | an output's type contradicts the operator's schema |
//! | `invalid-graph` | the verifier refuses a node |
//! | `elided-constant` | data that is needed, but left out |
//! | `bad-version` | a module file of an unknown version |
//! | `unknown-reference` | a reference to an object, tensor or list that does not exist |
//! | `bad-module` | a module file whose parts contradict one another |

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use frazil_ir::{Diagnostic, Severity, Span};
use std::fmt;

/// The error for a text that cannot be parsed, with all diagnostics.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// The diagnostics in the order of the text; at least one is an error.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.diagnostics.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

/// Proof that an error diagnostic has been recorded; the caller recovers or returns it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported;

/// A parsed value, or [`Reported`] if its error has been recorded.
pub(crate) type Parsed<T> = Result<T, Reported>;

/// Maximum number of recorded diagnostics.
const MAX_ERRORS: usize = 50;

/// The diagnostics recorded so far.
#[derive(Default, Debug)]
pub(crate) struct Sink {
    diagnostics: Vec<Diagnostic>,
    errors: usize,
}

impl Sink {
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
            if self.errors == MAX_ERRORS {
                let span = diagnostic.labels.first().map_or(Span::default(), |l| l.span);
                self.diagnostics.push(diagnostic);
                self.diagnostics.push(Diagnostic::error(
                    "too-many-errors",
                    "too many errors; the rest of the text is not read",
                    span,
                    "stopped here",
                ));
                return Reported;
            }
        }
        if self.errors < MAX_ERRORS {
            self.diagnostics.push(diagnostic);
        }
        Reported
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Reported {
        self.report(Diagnostic::error(code, message, span, label))
    }

    /// Returns the number of recorded diagnostics.
    pub(crate) fn len(&self) -> usize {
        self.diagnostics.len()
    }

    /// Adds the function `name` to the message of each verifier failure, from diagnostic number `first` on.
    pub(crate) fn name_function(&mut self, first: usize, name: &str) {
        for diagnostic in self.diagnostics.iter_mut().skip(first) {
            if diagnostic.code == "invalid-graph"
                && let Some(label) = diagnostic.labels.first_mut()
            {
                label.message += &format!(", in `{name}`");
            }
        }
    }

    /// Returns true if the maximum number of diagnostics is reached, so that no more are recorded.
    pub(crate) fn is_full(&self) -> bool {
        self.errors >= MAX_ERRORS
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Returns the warnings, if there was no error.
    pub(crate) fn finish(mut self) -> Result<Vec<Diagnostic>, ParseError> {
        self.diagnostics
            .sort_by_key(|d| d.labels.first().map_or(0, |l| l.span.start));
        if self.errors == 0 {
            Ok(self.diagnostics)
        } else {
            Err(ParseError {
                diagnostics: self.diagnostics,
            })
        }
    }
}

/// Renders `diagnostics` about `text`, which was read from `name`, with the affected lines, carets and hints.
///
/// ```
/// # use frazil_syntax::{parse_graph, render};
/// # use std::sync::Arc;
/// let text = "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%z)\n  return (%y)\n";
/// let error = parse_graph(&Arc::new(frazil_ir::Context::new()), text).unwrap_err();
/// let shown = render("a.ir", text, &error.diagnostics, false);
/// assert!(shown.contains("--> a.ir:2:28") && shown.contains("^^ nothing defines it"));
/// ```
pub fn render(name: &str, text: &str, diagnostics: &[Diagnostic], color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for (i, diagnostic) in diagnostics.iter().enumerate() {
        if i > 0 {
            out.push_str("\n\n");
        }
        out.push_str(&render_one(&renderer, name, text, diagnostic));
    }
    out.push('\n');
    out
}

fn render_one(renderer: &Renderer, name: &str, text: &str, diagnostic: &Diagnostic) -> String {
    let level = match diagnostic.severity {
        Severity::Note => Level::NOTE,
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code);
    // Only the affected lines are passed to the renderer, which processes all of its input.
    let spans: Vec<_> = diagnostic.labels.iter().map(|l| within(text, l.span)).collect();
    let mut parts: Vec<Group<'_>> = Vec::new();
    let snippet = {
        let start = spans.iter().map(|s| s.start).min().unwrap_or(0);
        let end = spans.iter().map(|s| s.end).max().unwrap_or(0);
        let from = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let to = text[end..].find('\n').map_or(text.len(), |i| end + i);
        let line = 1 + text[..from].bytes().filter(|b| *b == b'\n').count();
        let mut snippet = Snippet::source(&text[from..to]).path(name).line_start(line).fold(true);
        for (i, (label, span)) in diagnostic.labels.iter().zip(&spans).enumerate() {
            let kind = if i == 0 {
                AnnotationKind::Primary
            } else {
                AnnotationKind::Context
            };
            snippet = snippet.annotation(
                kind.span(span.start - from..span.end - from)
                    .label(label.message.as_str()),
            );
        }
        snippet
    };
    let mut group = title.element(snippet);
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    parts.push(group);
    renderer.render(&parts)
}

/// Returns the span as byte positions of `text`, adjusted to character boundaries.
fn within(text: &str, span: Span) -> std::ops::Range<usize> {
    let floor = |at: u32| {
        let mut at = (at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(span.start);
    start..floor(span.end).max(start)
}
