//! Source locations: in the original Python program (as recorded in archives), or in a text from which a graph was read.

use crate::{Context, SymbolId};
use cranelift_entity::packed_option::ReservedValue;
use indexmap::IndexMap;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// A source location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceRange {
    /// The recorded name of the file; [`OF_TEXT`](crate::symbols::OF_TEXT) for a text without a name.
    pub file: SymbolId,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 0, as PyTorch prints it.
    pub column: u32,
    /// Length in bytes of the code that begins there; 0 if unknown, as in `.ir` text. [`SourceRange::IS_OF_TEXT`] marks a location in the text from which the
    /// graph was read; it is only used in messages, and never written to a text or archive.
    pub length: u32,
}

impl SourceRange {
    /// The value of `length` that marks a location in the text from which the graph was read.
    pub const IS_OF_TEXT: u32 = u32::MAX;

    /// Writes `file.py:line:column`, as PyTorch does. For a location in the text from which the graph was read, columns count from 1, as in other messages
    /// about texts.
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

    /// Returns true for a location in the text from which the graph was read.
    pub fn is_of_text(&self) -> bool {
        self.length == SourceRange::IS_OF_TEXT
    }
}

impl ReservedValue for SourceRange {
    fn reserved_value() -> SourceRange {
        SourceRange {
            file: SymbolId::reserved_value(),
            line: 0,
            column: 0,
            length: 0,
        }
    }

    fn is_reserved_value(&self) -> bool {
        self.file.is_reserved_value()
    }
}

/// Texts of the original program, as stored in archives: usually one per function. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SourceTexts {
    files: Arc<IndexMap<SymbolId, SourceTextsOfFile>>,
}

#[derive(Clone, Debug, Default)]
struct SourceTextsOfFile {
    /// Pieces of one file, keyed by their first line.
    pieces: BTreeMap<u32, Vec<SourceText>>,
    known: HashSet<(u32, Arc<str>)>,
}

/// A piece of the original program's source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// The line of the file at which it begins, from 1.
    pub first_line: u32,
    /// The text, which consists of whole lines.
    pub text: Arc<str>,
    /// Byte offset of each line.
    lines: Arc<[u32]>,
}

/// Maximum number of preceding pieces that are searched for the one that contains a location.
const NEAREST: usize = 64;

impl SourceTexts {
    /// Adds a piece of the source of `file`, unless it has been added before.
    pub fn add(&mut self, file: SymbolId, first_line: u32, text: Arc<str>) {
        let of_file = Arc::make_mut(&mut self.files).entry(file).or_default();
        if !of_file.known.insert((first_line, Arc::clone(&text))) {
            return;
        }
        let newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(i, _)| i as u32 + 1)).collect();
        of_file.pieces.entry(first_line).or_default().push(SourceText {
            first_line,
            text,
            lines,
        });
    }

    /// Returns the nearest piece that contains the start of `range`, and the byte offset of the start in it.
    pub fn find(&self, range: &SourceRange) -> Option<(&SourceText, usize)> {
        let before = self.files.get(&range.file)?.pieces.range(..=range.line).rev();
        before.flat_map(|(_, pieces)| pieces).take(NEAREST).find_map(|piece| {
            let line = (range.line - piece.first_line) as usize;
            let begin = *piece.lines.get(line)? as usize;
            let end = piece
                .lines
                .get(line + 1)
                .map_or(piece.text.len(), |&next| next as usize);
            let start = begin.checked_add(range.column as usize).filter(|start| *start < end)?;
            Some((piece, start))
        })
    }
}

/// A byte range in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the span of the bytes `start..end`.
    pub fn new(start: usize, end: usize) -> Span {
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span {
            start: clamp(start),
            end: clamp(end),
        }
    }

    /// Returns the span from the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start,
            end: other.end.max(self.start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_the_piece_that_holds_them() {
        let ctx = Context::new();
        let file = ctx.symbol("net.py");
        let mut texts = SourceTexts::default();
        texts.add(file, 5, "def f(x):\n    return x\n".into());
        texts.add(file, 9, "def g():\n".into());
        texts.add(file, 5, "def f(x):\n    return x\n".into());
        assert_eq!(texts.files[&file].known.len(), 2);
        let at = |line, column| {
            let length = 1;
            let range = SourceRange {
                file,
                line,
                column,
                length,
            };
            texts.find(&range).map(|(piece, start)| (piece.first_line, start))
        };
        assert_eq!(at(6, 11), Some((5, 21)));
        assert_eq!(at(9, 0), Some((9, 0)));
        assert_eq!((at(4, 0), at(7, 0), at(6, 50)), (None, None, None));
    }
}
