//! Debug records: the original location of each piece of a code file, in the layout with a table of strings that `archive/debug.rs` describes.

use std::collections::HashMap;
use std::rc::Rc;

use frazil_ir::{Context, SourceRange, SourceTexts, SymbolId};

use super::pickle::{MemoSlot, PickleWriter, ShortTuple};
use crate::code::CodeMark;

/// Returns the debug record for the code file `entry`, whose code has the marks `marks`.
///
/// If the text of the original program is known, the record contains the piece of text around the mark. If only file, line and column are known (as from `.ir`
/// text), it contains blanks up to that column as the text of that line. Code without a source, or from this file of an archive, has an empty source: readers
/// then use the location in the file itself.
pub(super) fn debug_record(ctx: &Context, sources: &SourceTexts, entry: &str, marks: &[CodeMark]) -> Vec<u8> {
    let mut strings = Strings::default();
    strings.index("");
    let mut rows: Vec<(usize, Row)> = Vec::with_capacity(marks.len());
    for mark in marks {
        let place = mark.range.filter(|range| ctx.name(range.file) != entry);
        let row = place.map_or_else(Row::default, |range| strings.row(ctx, sources, &range));
        if rows.last().is_none_or(|(_, last)| *last != row) {
            rows.push((mark.offset, row));
        }
    }
    let mut pickle = PickleWriter::new();
    pickle.str("FORMAT_WITH_STRING_TABLE");
    pickle.mark();
    for text in &strings.texts {
        pickle.str(text);
    }
    pickle.marked_tuple();
    let (mut written, mut tags) = (HashMap::new(), HashMap::new());
    pickle.mark();
    for (offset, row) in &rows {
        let next = tags.len() as i64;
        let tag = *tags.entry(row.clone()).or_insert(next);
        pickle.int(*offset as i64);
        row.write(&mut pickle, &mut written);
        pickle.int(tag);
        pickle.short_tuple(ShortTuple::Three);
    }
    pickle.marked_tuple();
    pickle.short_tuple(ShortTuple::Three);
    pickle.finish()
}

/// A row of the debug record's table: `(source, start, end)`.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Row {
    source: SourceRow,
    start: i64,
    end: i64,
}

/// A source `(text, file, first line)`: indices of the strings in the table of strings, whose first string is empty.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct SourceRow {
    text: Rc<[i64]>,
    file: i64,
    line: i64,
}

impl Row {
    fn write(&self, pickle: &mut PickleWriter, written: &mut HashMap<SourceRow, MemoSlot>) {
        match written.get(&self.source) {
            Some(&slot) => pickle.get(slot),
            None => {
                pickle.global("torch.jit._pickle", "build_intlist");
                pickle.begin_list();
                for &line in &*self.source.text {
                    pickle.int(line);
                }
                pickle.end_list();
                pickle.short_tuple(ShortTuple::One);
                pickle.reduce();
                pickle.int(self.source.file);
                pickle.int(self.source.line);
                pickle.short_tuple(ShortTuple::Three);
                written.insert(self.source.clone(), pickle.put());
            }
        }
        pickle.int(self.start);
        pickle.int(self.end);
        pickle.short_tuple(ShortTuple::Three);
    }
}

/// The string table of a debug record, without duplicates.
#[derive(Default)]
struct Strings {
    texts: Vec<String>,
    known: HashMap<String, i64>,
    files: HashMap<SymbolId, i64>,
    /// Indices in the string table of the lines of each source piece, keyed by the piece's address.
    pieces: HashMap<usize, Rc<[i64]>>,
}

impl Strings {
    fn row(&mut self, ctx: &Context, sources: &SourceTexts, range: &SourceRange) -> Row {
        let file = self.file(ctx, range.file);
        let length = i64::from(range.length.max(1));
        if let Some((piece, start)) = sources.find(range) {
            let text = match self.pieces.get(&piece.text.as_ptr().addr()) {
                Some(lines) => Rc::clone(lines),
                None => {
                    let lines: Rc<[i64]> = piece.text.split_inclusive('\n').map(|line| self.index(line)).collect();
                    self.pieces.insert(piece.text.as_ptr().addr(), Rc::clone(&lines));
                    lines
                }
            };
            let line = i64::from(piece.first_line);
            let start = start as i64;
            return Row {
                source: SourceRow { text, file, line },
                start,
                end: (start + length).min(piece.text.len() as i64),
            };
        }
        let column = i64::from(range.column);
        let blanks = self.index(&" ".repeat(range.column as usize + 1));
        Row {
            source: SourceRow {
                text: Rc::from([blanks]),
                file,
                line: range.line.into(),
            },
            start: column,
            end: column + 1,
        }
    }

    fn index(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.known.get(text) {
            return index;
        }
        let index = self.texts.len() as i64;
        self.texts.push(text.to_owned());
        self.known.insert(text.to_owned(), index);
        index
    }

    fn file(&mut self, ctx: &Context, file: SymbolId) -> i64 {
        if let Some(&index) = self.files.get(&file) {
            return index;
        }
        let index = self.index(ctx.name(file));
        self.files.insert(file, index);
        index
    }
}
