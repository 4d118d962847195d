//! Places in source text: in the original Python (as archives record it), or in a file that we read.

use crate::{Context, SymbolId, symbols};
use cranelift_entity::packed_option::ReservedValue;
use std::fmt;

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceRange {
    /// The file's name as recorded. [`symbols::OF_TEXT`] for the place of a node in the very text that its graph was read from: that is for
    /// messages, and never part of a text or archive. Who knows which file that is says its name instead.
    pub file: SymbolId,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 0, as PyTorch prints it.
    pub column: u32,
}

impl SourceRange {
    /// Writes `file.py:line:column`, PyTorch's form. The columns of a place in the text that the graph was read from count from 1, as those of
    /// other messages about texts do.
    pub fn display<'a>(&'a self, ctx: &'a Context) -> impl fmt::Display + 'a {
        let first = u32::from(self.is_of_text());
        fmt::from_fn(move |f| {
            write!(
                f,
                "{}:{}:{}",
                ctx.name(self.file),
                self.line,
                self.column.saturating_add(first)
            )
        })
    }

    /// True for a place in the text that the graph was read from.
    pub fn is_of_text(&self) -> bool {
        self.file == symbols::OF_TEXT
    }
}

impl ReservedValue for SourceRange {
    fn reserved_value() -> SourceRange {
        SourceRange {
            file: SymbolId::reserved_value(),
            line: 0,
            column: 0,
        }
    }

    fn is_reserved_value(&self) -> bool {
        self.file.is_reserved_value()
    }
}

/// A range of bytes in a text that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub fn new(start: usize, end: usize) -> Span {
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span {
            start: clamp(start),
            end: clamp(end),
        }
    }

    /// The span from the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start,
            end: other.end.max(self.start),
        }
    }
}
