//! The debug records of an archive: which line of the original Python program a piece of its code came from.
//!
//! Every `code/x.py` has a record `code/x.py.debug_pkl`: a pickled table of rows `(offset, range, tag)`. Rows are sorted by the byte offset in `x.py` from
//! which they apply. A range is `(source, start, end)` with character offsets into the source's text, and a source is `(text, file name, first line)`. Since
//! PyTorch 1.11, texts and names are indices into a table of strings at the start. Older files contain the strings inline, with rows `(offset, tag, range)` or
//! `(offset, range)`. All three layouts are read.

use std::collections::HashSet;
use std::sync::Arc;

use super::error::ArchiveError;
use super::pickle::{Pickle, PickleId, PickleValue};

/// A position in the original Python program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePlace {
    /// The file as PyTorch recorded it; empty for code that no file contained.
    pub file: Arc<str>,
    /// The line, counted from 1; 0 for code that no file contained.
    pub line: u32,
    /// The column in bytes, counted from 0.
    pub column: u32,
    /// The length in bytes.
    pub length: u32,
}

/// A piece of the original Python program, most often the text of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePiece {
    /// The name of the file, as PyTorch recorded it.
    pub file: Arc<str>,
    /// The line of the file with which the piece begins, counted from 1.
    pub first_line: u32,
    /// The text of the piece.
    pub text: Arc<str>,
}

/// The debug record of one code file: a table from byte offsets to positions in the original Python program.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    /// Byte offsets in the code file at which the rows of the table start, ascending.
    offsets: Vec<u64>,
    places: Vec<SourcePlace>,
    pieces: Vec<SourcePiece>,
}

/// Maximum bytes of original text that are kept for each byte of a table. Tables share lines, so a small table can refer to much text.
const MAX_EXPANSION: usize = 64;

/// The first element of a debug record whose strings are in a separate table.
const FORMAT_WITH_STRING_TABLE: &str = "FORMAT_WITH_STRING_TABLE";

impl SourceMap {
    /// Reads the table of the entry called `entry`.
    ///
    /// # Errors
    /// When the bytes are no pickle, or no table of any of the three layouts.
    pub fn parse(entry: &str, bytes: &[u8]) -> Result<SourceMap, ArchiveError> {
        let pickle = Pickle::parse(bytes).map_err(|source| ArchiveError::Pickle {
            entry: entry.to_owned(),
            source,
        })?;
        Reader {
            entry,
            pickle: &pickle,
            strings: None,
            files: Vec::new(),
            sources: HashSet::new(),
            pieces: Vec::new(),
            text_left: bytes.len().saturating_mul(MAX_EXPANSION),
        }
        .read()
    }

    /// Returns the position in the original program of the code at byte `offset` of the code file, if the table has one.
    pub fn find(&self, offset: u64) -> Option<&SourcePlace> {
        let after = self.offsets.partition_point(|&start| start <= offset);
        self.places.get(after.checked_sub(1)?)
    }

    /// Returns the pieces of the original program to which rows of the table refer.
    pub fn pieces(&self) -> &[SourcePiece] {
        &self.pieces
    }

    /// Returns the number of rows of the table.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

struct Reader<'a> {
    entry: &'a str,
    pickle: &'a Pickle,
    /// The separate table of strings, if the record's layout has one.
    strings: Option<&'a [PickleId]>,
    /// File names read so far. Each is allocated once.
    files: Vec<(PickleId, Arc<str>)>,
    /// Source texts read so far.
    sources: HashSet<PickleId>,
    pieces: Vec<SourcePiece>,
    /// Number of bytes of source text that may still be stored.
    text_left: usize,
}

impl<'a> Reader<'a> {
    fn read(mut self) -> Result<SourceMap, ArchiveError> {
        let root = self.pickle.root();
        let mut rows = self.elements(root, "a table of source ranges")?;
        if let [marker, strings, table] = rows
            && self.pickle.str(*marker) == Some(FORMAT_WITH_STRING_TABLE)
        {
            self.strings = Some(self.elements(*strings, "a table of strings")?);
            rows = self.elements(*table, "a table of source ranges")?;
        }
        let mut map = SourceMap::default();
        for &row in rows {
            let cells = self.elements(row, "a row of a source range table")?;
            let range = cells
                .iter()
                .skip(1)
                .copied()
                .find(|&cell| self.pickle.elements(cell).is_some());
            let (Some(&offset), Some(range)) = (cells.first(), range) else {
                return Err(self.unexpected(row, "a row (offset, range, tag)"));
            };
            let offset = self.int(offset, "a byte offset")?;
            let place = self.place(range)?;
            // The rows are searched by bisection, so they must ascend; a row that does not is of no use.
            if map.offsets.last().is_none_or(|&last| last <= offset) {
                map.offsets.push(offset);
                map.places.push(place);
            }
        }
        map.pieces = self.pieces;
        Ok(map)
    }

    fn place(&mut self, range: PickleId) -> Result<SourcePlace, ArchiveError> {
        let &[source, start, end] = self.elements(range, "a source range")? else {
            return Err(self.unexpected(range, "a source range (source, start, end)"));
        };
        let start = self.int(start, "a character offset")?;
        let end = self.int(end, "a character offset")?;
        let &[text, file, first_line] = self.elements(source, "a source")? else {
            return Err(self.unexpected(source, "a source (text, file name, first line)"));
        };
        let first_line = self.int(first_line, "a line number")?;
        let file = self.file(file)?;
        let (line, column) = self.line_and_column(text, start)?;
        let clamp = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        if self.sources.insert(source) && !file.is_empty() {
            self.keep_text(&file, clamp(first_line), text)?;
        }
        Ok(SourcePlace {
            file,
            line: clamp(first_line.saturating_add(line)),
            column,
            length: clamp(end.saturating_sub(start)),
        })
    }

    /// Stores a source text, if the limit on the size of texts allows it.
    fn keep_text(&mut self, file: &Arc<str>, first_line: u32, text: PickleId) -> Result<(), ArchiveError> {
        let mut whole = String::new();
        let mut is_complete = true;
        self.each_piece(text, |piece| {
            is_complete &= whole.len() + piece.len() <= self.text_left;
            if is_complete {
                whole.push_str(piece);
            }
        })?;
        if is_complete {
            self.text_left -= whole.len();
            self.pieces.push(SourcePiece {
                file: Arc::clone(file),
                first_line,
                text: whole.into(),
            });
        }
        Ok(())
    }

    /// Calls `visit` on the strings of which a source text consists.
    fn each_piece(&self, text: PickleId, mut visit: impl FnMut(&str)) -> Result<(), ArchiveError> {
        match self.strings {
            None => visit(self.string(text, "a source text")?),
            Some(strings) => {
                for &index in self.indices(text)? {
                    visit(self.indexed(strings, index)?);
                }
            }
        }
        Ok(())
    }

    /// Returns the number of lines that begin before byte `start` of the source's text, and the distance in bytes from the last line start to `start`.
    fn line_and_column(&self, text: PickleId, start: u64) -> Result<(u64, u32), ArchiveError> {
        let mut lines = 0;
        // How many bytes of the current line lie before the piece at hand.
        let mut column = 0u64;
        let mut left = start;
        self.each_piece(text, |piece| {
            let seen = &piece.as_bytes()[..piece.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            left -= seen.len() as u64;
            match seen.iter().rposition(|&b| b == b'\n') {
                Some(last) => {
                    lines += seen.iter().filter(|&&b| b == b'\n').count() as u64;
                    column = (seen.len() - last - 1) as u64;
                }
                None => column += seen.len() as u64,
            }
        })?;
        Ok((lines, u32::try_from(column).unwrap_or(u32::MAX)))
    }

    /// Returns the indices of the strings of a source text: a list of integers, written through `build_intlist`.
    fn indices(&self, text: PickleId) -> Result<&'a [PickleId], ArchiveError> {
        let list = match self.pickle.value(text) {
            PickleValue::Call { args, .. } => match self.elements(*args, "arguments")? {
                [list] => *list,
                _ => return Err(self.unexpected(text, "a list of string indices")),
            },
            _ => text,
        };
        self.elements(list, "a list of string indices")
    }

    fn file(&mut self, file: PickleId) -> Result<Arc<str>, ArchiveError> {
        if let Some((_, name)) = self.files.iter().find(|(id, _)| *id == file) {
            return Ok(Arc::clone(name));
        }
        let name = match (self.pickle.value(file), self.strings) {
            (PickleValue::None, _) => "",
            (_, Some(strings)) => self.indexed(strings, file)?,
            (_, None) => self.string(file, "a file name")?,
        };
        let name = match self.files.iter().find(|(_, known)| **known == *name) {
            Some((_, known)) => Arc::clone(known),
            None => Arc::from(name),
        };
        if self.files.len() < 64 {
            self.files.push((file, Arc::clone(&name)));
        }
        Ok(name)
    }

    fn indexed(&self, strings: &'a [PickleId], index: PickleId) -> Result<&'a str, ArchiveError> {
        let at = self.int(index, "a string's index")?;
        let id = usize::try_from(at).ok().and_then(|at| strings.get(at));
        let id = id.ok_or_else(|| self.unexpected(index, "an index into the table of strings"))?;
        self.string(*id, "a string")
    }

    fn elements(&self, id: PickleId, expected: &str) -> Result<&'a [PickleId], ArchiveError> {
        self.pickle.elements(id).ok_or_else(|| self.unexpected(id, expected))
    }

    fn string(&self, id: PickleId, expected: &str) -> Result<&'a str, ArchiveError> {
        self.pickle.str(id).ok_or_else(|| self.unexpected(id, expected))
    }

    fn int(&self, id: PickleId, expected: &str) -> Result<u64, ArchiveError> {
        let value = self.pickle.int(id).and_then(|value| u64::try_from(value).ok());
        value.ok_or_else(|| self.unexpected(id, expected))
    }

    fn unexpected(&self, id: PickleId, expected: &str) -> ArchiveError {
        ArchiveError::Unexpected {
            entry: self.entry.to_owned(),
            offset: self.pickle.offset(id),
            expected: expected.to_owned(),
            found: self.pickle.value(id).kind().to_owned(),
        }
    }
}
