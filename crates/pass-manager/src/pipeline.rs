//! Textual pipelines: `freeze{preserve=a,b.c freeze-interfaces=false},constant-propagation,fold-frozen-conv-bn`.
//!
//! ```text
//! pipeline := [ pass { ',' pass } ]
//! pass     := name [ '{' { option } '}' ] [ '(' pipeline ')' ]
//! option   := name [ '=' value ]            (separated by spaces; a boolean without a value is true)
//! ```
//! Names are in kebab case. A value ends at the next space or brace, so elements of lists are separated by commas.
//!
//! Two steps are followed by a pipeline in parentheses, which they run ([`PassInfo::STEPS`]):
//!
//! - `methods{only=forward}(inline,dce)` runs the whole pipeline on one function before the next function.
//! - `repeat{max=10}(peephole,cse)` runs the pipeline until it changes nothing.

use crate::ir::Ir;
use crate::pass::AnyPass;
use crate::registry::{
    OptionInfo, OptionKind, OptionValue, PassInfo, PassOptions, PassRegistry, RegisteredPass, Unused,
};
use std::fmt;
use std::ops::Range;

impl<I: Ir> PassInfo<I> {
    /// The steps that run the pipeline in parentheses behind them.
    pub const STEPS: &[PassInfo<I>] = &[
        PassInfo {
            name: "methods",
            summary: "Runs the pipeline in parentheses on one function after the other.",
            before: "",
            after: "",
            options: &[OptionInfo {
                name: "only",
                kind: OptionKind::List,
                default: "",
                doc: "Names of methods, or qualified names of functions; all functions if absent.",
            }],
            build: |_| AnyPass::graph(Unused),
        },
        PassInfo {
            name: "repeat",
            summary: "Repeats the pipeline in parentheses until it changes nothing.",
            before: "",
            after: "",
            options: &[OptionInfo {
                name: "max",
                kind: OptionKind::Count,
                default: "10",
                doc: "Maximum number of repetitions. The step stops with a warning if the IR still changes after 1000 repetitions of all such steps together, grows beyond both 200000 nodes and four times its size, or if all repetitions together have visited more than 100000 nodes and 100 times the size of the IR.",
            }],
            build: |_| AnyPass::graph(Unused),
        },
    ];
}

/// Maximum number of pipelines in parentheses within one another.
const MAX_NESTING: usize = 16;

/// The kind of an error in a pipeline text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PipelineErrorKind {
    /// There is no pass with the name in the first field. The second field is the most similar name, if any is similar.
    UnknownPass(String, Option<&'static str>),
    /// The pass in the first field has no option with the name in the second. The third field is the most similar name, if any is similar.
    UnknownOption(&'static str, String, Option<&'static str>),
    /// The value is not valid for the option in the first field, which has the type in the second.
    BadValue(&'static str, OptionKind),
    /// The text was expected to continue as the field describes.
    Expected(&'static str),
}

/// An error in the text of a pipeline, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PipelineError {
    /// The whole text.
    pub text: String,
    /// The place of the error, in bytes from the start of the text.
    pub span: Range<usize>,
    /// The error.
    pub kind: PipelineErrorKind,
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = |f: &mut fmt::Formatter<'_>, near: &Option<&str>| match near {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => Ok(()),
        };
        match &self.kind {
            PipelineErrorKind::UnknownPass(name, near) => {
                write!(f, "there is no pass `{name}`")?;
                hint(f, near)?;
            }
            PipelineErrorKind::UnknownOption(pass, name, near) => {
                write!(f, "the pass `{pass}` has no option `{name}`")?;
                hint(f, near)?;
            }
            PipelineErrorKind::BadValue(option, kind) => write!(f, "the option `{option}` takes {}", kind.describe())?,
            PipelineErrorKind::Expected(what) => write!(f, "expected {what}")?,
        }
        let (shown, span) = excerpt(&self.text, &self.span);
        let (indent, width) = (span.start, span.len().max(1));
        write!(f, "\n  {shown}\n  {:indent$}{:^<width$}", "", "")
    }
}

/// Maximum number of bytes of a pipeline that a message shows before the error, within it, and after it.
const MAX_CONTEXT: usize = 80;

/// Returns the part of `text` around `span` for a message, and the columns of `span` in this part, in characters.
fn excerpt(text: &str, span: &Range<usize>) -> (String, Range<usize>) {
    let end = span.end.min(span.start.saturating_add(MAX_CONTEXT));
    let from = text.floor_char_boundary(span.start.saturating_sub(MAX_CONTEXT));
    let to = text.ceil_char_boundary(end.saturating_add(MAX_CONTEXT));
    let column = |at: usize| {
        text.get(from..text.floor_char_boundary(at))
            .map_or(0, |t| t.chars().count())
    };
    let (before, after) = (
        if from > 0 { "..." } else { "" },
        if to < text.len() { "..." } else { "" },
    );
    let part = text.get(from..to).unwrap_or_default();
    let columns = before.len() + column(span.start)..before.len() + column(end);
    (format!("{before}{part}{after}"), columns)
}

/// A pass or step in a pipeline, with its options.
#[derive(Clone, Debug)]
pub struct PipelineEntry<I: Ir> {
    /// The pass.
    pub info: RegisteredPass<I>,
    /// The values of all its options; those that the text does not set have their defaults.
    pub options: PassOptions,
    /// The pipeline in parentheses behind it; `None` for passes.
    pub nested: Option<Vec<PipelineEntry<I>>>,
    /// The text of the pass with its options, for messages and reproducers.
    pub text: String,
}

/// Parses the text of a pipeline, whose passes must be in `registry`.
///
/// # Errors
/// The first error in the text: an unknown pass or option, an invalid value, or a syntax error.
pub fn parse_pipeline<I: Ir>(registry: &PassRegistry<I>, text: &str) -> Result<Vec<PipelineEntry<I>>, PipelineError> {
    let mut parser = Parser {
        registry,
        text,
        at: 0,
        depth: 0,
    };
    let entries = parser.pipeline()?;
    match parser.rest() {
        "" => Ok(entries),
        _ => Err(parser.expected("`,` or the end of the pipeline")),
    }
}

/// A recursive-descent parser of pipelines.
struct Parser<'a, I: Ir> {
    registry: &'a PassRegistry<I>,
    text: &'a str,
    /// The current position in `text`, in bytes.
    at: usize,
    /// Number of open parentheses.
    depth: usize,
}

impl<'a, I: Ir> Parser<'a, I> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Reads the text up to the first character for which `stop` returns true. Returns it with its place in bytes.
    fn word(&mut self, stop: impl Fn(char) -> bool) -> (&'a str, Range<usize>) {
        let rest = self.rest();
        let len = rest.find(stop).unwrap_or(rest.len());
        let span = self.at..self.at + len;
        self.at += len;
        (&rest[..len], span)
    }

    fn error(&self, span: Range<usize>, kind: PipelineErrorKind) -> PipelineError {
        PipelineError {
            text: self.text.to_owned(),
            span,
            kind,
        }
    }

    fn expected(&self, what: &'static str) -> PipelineError {
        let len = self.rest().chars().next().map_or(0, char::len_utf8);
        self.error(self.at..self.at + len, PipelineErrorKind::Expected(what))
    }

    fn pipeline(&mut self) -> Result<Vec<PipelineEntry<I>>, PipelineError> {
        let mut entries = Vec::new();
        self.skip_space();
        if self.rest().is_empty() || self.rest().starts_with(')') {
            return Ok(entries);
        }
        loop {
            entries.push(self.pass()?);
            self.skip_space();
            if !self.rest().starts_with(',') {
                return Ok(entries);
            }
            self.at += 1;
        }
    }

    /// Reads a pipeline in parentheses.
    fn nested(&mut self) -> Result<Vec<PipelineEntry<I>>, PipelineError> {
        self.skip_space();
        if !self.rest().starts_with('(') {
            return Err(self.expected("`(` and a pipeline"));
        }
        if self.depth == MAX_NESTING {
            return Err(self.expected("fewer parentheses"));
        }
        self.at += 1;
        self.depth += 1;
        let entries = self.pipeline()?;
        self.depth -= 1;
        if !self.rest().starts_with(')') {
            return Err(self.expected("`,` or `)`"));
        }
        self.at += 1;
        Ok(entries)
    }

    fn pass(&mut self) -> Result<PipelineEntry<I>, PipelineError> {
        self.skip_space();
        let start = self.at;
        let (name, span) = self.word(|c| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
        if name.is_empty() {
            return Err(self.expected("the name of a pass"));
        }
        let step = PassInfo::STEPS.iter().find(|s| s.name == name);
        let registered = || self.registry.find(name).cloned();
        let Some(info) = step.map(RegisteredPass::from).or_else(registered) else {
            let steps = PassInfo::<I>::STEPS.iter().map(|s| s.name);
            let names = self.registry.passes().map(|p| p.name).chain(steps);
            let near = nearest(name, names);
            return Err(self.error(span, PipelineErrorKind::UnknownPass(name.to_owned(), near)));
        };
        let mut options = info.default_options();
        self.skip_space();
        if self.rest().starts_with('{') {
            self.at += 1;
            self.options(&info, &mut options)?;
        }
        let nested = match step {
            Some(_) => Some(self.nested()?),
            None => None,
        };
        Ok(PipelineEntry {
            info,
            options,
            nested,
            text: self.text[start..self.at].trim_end().to_owned(),
        })
    }

    fn options(&mut self, info: &PassInfo<I>, options: &mut PassOptions) -> Result<(), PipelineError> {
        loop {
            self.skip_space();
            match self.rest().chars().next() {
                None => return Err(self.expected("`}`")),
                Some('}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => {}
            }
            let (name, span) = self.word(|c| c == '=' || c == '}' || c.is_whitespace());
            let Some(option) = info.options.iter().find(|o| o.name == name) else {
                let near = nearest(name, info.options.iter().map(|o| o.name));
                let kind = PipelineErrorKind::UnknownOption(info.name, name.to_owned(), near);
                return Err(self.error(span, kind));
            };
            let (value, span) = if self.rest().starts_with('=') {
                self.at += 1;
                self.word(|c| c == '}' || c.is_whitespace())
            } else if option.kind == OptionKind::Bool {
                ("true", span)
            } else {
                return Err(self.error(span, PipelineErrorKind::BadValue(option.name, option.kind)));
            };
            match OptionValue::parse(option.kind, value) {
                Some(value) => options.set(option.name, value),
                None => return Err(self.error(span, PipelineErrorKind::BadValue(option.name, option.kind))),
            }
        }
    }
}

/// Returns the candidate with the smallest edit distance from `name`, if the distance is at most 2 or a third of the candidate's length.
fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    candidates
        .map(|c| (edit_distance(name, c), c))
        .min()
        .filter(|(distance, c)| *distance <= (c.len() / 3).max(2) && *distance < c.len())
        .map(|(_, c)| c)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}
