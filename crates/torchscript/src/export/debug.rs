//! Debug records: where each piece of a code file came from, in the layout with a table of strings that `archive/debug.rs` describes.

use std::collections::HashMap;

use frazil_ir::{Context, SymbolId};

use super::pickle::{MemoSlot, PickleWriter, ShortTuple};
use crate::code::CodeMark;

/// The record for the code file `entry` with these marks.
///
/// The text of the original program is not known here, only file, line and column. A source is written for each place: a text of as many
/// blanks as there are columns, said to begin on that line. Code that came from nowhere, or from this very file of an archive, has an empty source:
/// readers take its place in the file for it.
pub(super) fn debug_record(ctx: &Context, entry: &str, marks: &[CodeMark]) -> Vec<u8> {
    let mut strings = Strings::default();
    strings.index("");
    let rows: Vec<Row> = marks
        .iter()
        .map(|mark| {
            let place = mark.range.filter(|range| ctx.name(range.file) != entry);
            let offset = mark.offset as i64;
            match place {
                Some(range) => Row {
                    offset,
                    text: strings.index(&" ".repeat(range.column as usize + 1)),
                    file: strings.file(ctx, range.file),
                    line: range.line.into(),
                    column: range.column.into(),
                },
                None => Row {
                    offset,
                    ..Row::default()
                },
            }
        })
        .collect();
    let mut pickle = PickleWriter::new();
    pickle.str("FORMAT_WITH_STRING_TABLE");
    pickle.mark();
    for text in &strings.texts {
        pickle.str(text);
    }
    pickle.marked_tuple();
    let (mut sources, mut tags) = (HashMap::new(), HashMap::new());
    pickle.mark();
    for row in &rows {
        let next = tags.len() as i64;
        let tag = *tags.entry((row.file, row.line, row.column)).or_insert(next);
        row.write(&mut pickle, &mut sources, tag);
    }
    pickle.marked_tuple();
    pickle.short_tuple(ShortTuple::Three);
    pickle.finish()
}

/// `(offset, (source, start, end), tag)`; text and file number 0 are empty.
#[derive(Default)]
struct Row {
    offset: i64,
    /// Text and file name, by their place in the table of strings.
    text: i64,
    file: i64,
    line: i64,
    column: i64,
}

impl Row {
    fn write(&self, pickle: &mut PickleWriter, sources: &mut HashMap<(i64, i64, i64), MemoSlot>, tag: i64) {
        pickle.int(self.offset);
        let source = (self.text, self.file, self.line);
        match sources.get(&source) {
            Some(&slot) => pickle.get(slot),
            None => {
                pickle.global("torch.jit._pickle", "build_intlist");
                pickle.begin_list();
                pickle.int(self.text);
                pickle.end_list();
                pickle.short_tuple(ShortTuple::One);
                pickle.reduce();
                pickle.int(self.file);
                pickle.int(self.line);
                pickle.short_tuple(ShortTuple::Three);
                sources.insert(source, pickle.put());
            }
        }
        pickle.int(self.column);
        pickle.int(self.column + 1);
        pickle.short_tuple(ShortTuple::Three);
        pickle.int(tag);
        pickle.short_tuple(ShortTuple::Three);
    }
}

/// The table of strings, each in it once.
#[derive(Default)]
struct Strings {
    texts: Vec<String>,
    known: HashMap<String, i64>,
    files: HashMap<SymbolId, i64>,
}

impl Strings {
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
