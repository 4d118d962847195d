//! Textual pipelines: `freeze{preserve=a,b.c freeze-interfaces=false},constant-propagation,fold-frozen-conv-bn`.
//!
//! ```text
//! pipeline := [ pass { ',' pass } ]
//! pass     := name [ '{' { option } '}' ] [ '(' pipeline ')' ]
//! option   := name [ '=' value ]            (separated by spaces; a boolean without a value is true)
//! ```
//! Names are in kebab case. A value ends at the next space or brace, so lists are written with commas. Two names run the pipeline in parentheses after them
//! ([`STEPS`]): `methods{only=forward}(inline,dce)` on each function before the next, `repeat{max=10}(peephole,cse)` until it changes nothing.

use crate::pass::AnyPass;
use crate::registry::{
    OptionInfo, OptionKind, OptionValue, PassInfo, PassOptions, PassRegistry, RegisteredPass, Unused,
};
use std::fmt;
use std::ops::Range;

/// Declarations of the pipeline steps that run a nested pipeline: `methods` and `repeat`.
pub static STEPS: &[PassInfo] = &[
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
            doc: "Maximum number of repetitions. It stops with a warning if the 1000th repetition still changes something, or if the IR grows beyond both 200000 nodes and four times its size.",
        }],
        build: |_| AnyPass::graph(Unused),
    },
];

/// Maximum nesting of pipelines in parentheses.
const MAX_NESTING: usize = 16;

/// The kind of an error in a pipeline text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PipelineErrorKind {
    /// No pass has the given name. The second field is the most similar name, if there is a similar one.
    UnknownPass(String, Option<&'static str>),
    /// A pass has no option with the given name: pass, option, and the most similar option name, if there is a similar one.
    UnknownOption(&'static str, String, Option<&'static str>),
    /// The value is not valid for the option of the given name and type.
    BadValue(&'static str, OptionKind),
    /// The text does not continue with the expected syntax.
    Expected(&'static str),
}

/// An invalid pipeline text, with the location of the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PipelineError {
    /// The complete text of the pipeline.
    pub text: String,
    /// The location of the error in the text, in bytes.
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

/// Number of bytes of a pipeline that a message shows on either side of the error.
const MAX_CONTEXT: usize = 80;

/// Returns the part of `text` around `span` for messages, and the columns of the span in it.
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

/// A pass in a pipeline, with its options.
#[derive(Clone, Debug)]
pub struct PipelineEntry {
    /// The pass with its declaration.
    pub info: RegisteredPass,
    /// The options of the pass, including defaults.
    pub options: PassOptions,
    /// The nested pipeline in parentheses, for steps that have one.
    pub nested: Option<Vec<PipelineEntry>>,
    /// The entry as text, for messages and reproducers.
    pub text: String,
}

/// Parses `text` against the passes of `registry`.
///
/// # Errors
/// The first error, with its location.
pub fn parse_pipeline(registry: &PassRegistry, text: &str) -> Result<Vec<PipelineEntry>, PipelineError> {
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

struct Parser<'a> {
    registry: &'a PassRegistry,
    text: &'a str,
    at: usize,
    /// Number of parentheses that are open at the current position.
    depth: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Reads bytes up to the first character for which `stop` returns true, with their location.
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

    fn pipeline(&mut self) -> Result<Vec<PipelineEntry>, PipelineError> {
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

    /// Reads the nested pipeline in parentheses.
    fn nested(&mut self) -> Result<Vec<PipelineEntry>, PipelineError> {
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

    fn pass(&mut self) -> Result<PipelineEntry, PipelineError> {
        self.skip_space();
        let start = self.at;
        let (name, span) = self.word(|c| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
        if name.is_empty() {
            return Err(self.expected("the name of a pass"));
        }
        let step = STEPS.iter().find(|s| s.name == name);
        let registered = || self.registry.find(name).cloned();
        let Some(info) = step.map(RegisteredPass::from).or_else(registered) else {
            let steps = STEPS.iter().map(|s| s.name);
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

    fn options(&mut self, info: &PassInfo, options: &mut PassOptions) -> Result<(), PipelineError> {
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

/// Returns the candidate with the smallest edit distance from `name`, if the distance is small enough.
pub(crate) fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<PipelineEntry>, PipelineError> {
        parse_pipeline(&PassRegistry::standard(), text)
    }

    #[test]
    fn passes_and_options_are_read() {
        let entries = parse(" inline , dce{side-effects=true} ,cse").unwrap();
        let names: Vec<_> = entries.iter().map(|e| e.info.name).collect();
        assert_eq!(names, ["inline", "dce", "cse"]);
        assert!(entries[1].options.bool("side-effects"));
        assert_eq!(entries[1].text, "dce{side-effects=true}");
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn pipelines_nest() {
        let entries = parse("inline, repeat{max=3}( peephole, methods(cse) ), dce").unwrap();
        assert_eq!(entries.len(), 3);
        let nested = entries[1].nested.as_ref().unwrap();
        assert_eq!(nested[1].nested.as_ref().unwrap()[0].info.name, "cse");
        assert_eq!(entries[1].text, "repeat{max=3}( peephole, methods(cse) )");
        assert!(parse("repeat").unwrap_err().to_string().contains("expected `(`"));
        assert!(parse("repeat(cse").unwrap_err().to_string().contains("`)`"));
        assert!(parse("cse)").is_err() && parse("cse(dce)").is_err());
        assert!(
            parse(&"repeat(".repeat(1000))
                .unwrap_err()
                .to_string()
                .contains("fewer")
        );
    }

    #[test]
    fn messages_show_a_part_of_long_pipelines() {
        let text = "dce,".repeat(50_000) + "dec" + &",dce".repeat(50_000);
        let message = parse(&text).unwrap_err().to_string();
        assert!(
            message.starts_with("there is no pass `dec`; did you mean `dce`?"),
            "{message}"
        );
        let lines: Vec<&str> = message.lines().collect();
        assert!(
            lines[1].starts_with("  ...") && lines[1].ends_with("...") && lines[1].len() < 300,
            "{message}"
        );
        let (column, end) = (lines[2].find('^').unwrap(), lines[2].rfind('^').unwrap());
        assert_eq!(&lines[1][column..=end], "dec");
    }

    #[test]
    fn mistakes_have_a_place_and_a_hint() {
        let unknown = parse("inline,dec").unwrap_err();
        assert_eq!(unknown.span, 7..10);
        assert_eq!(
            unknown.to_string(),
            "there is no pass `dec`; did you mean `dce`?\n  inline,dec\n         ^^^"
        );
        let option = parse("dce{side-effect}").unwrap_err();
        assert!(option.to_string().contains("did you mean `side-effects`?"), "{option}");
        let value = parse("dce{side-effects=maybe}").unwrap_err();
        assert_eq!(value.span, 17..22);
        assert!(parse("dce{side-effects").is_err());
        assert!(parse("dce cse").unwrap_err().to_string().contains("expected `,`"));
        assert!(parse(",").unwrap_err().to_string().contains("name of a pass"));
    }
}
