//! Text that remembers where its pieces came from.

use frazil_ir::SourceRange;

/// Printed code, and the source ranges that its pieces were printed for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeText {
    text: String,
    marks: Vec<CodeMark>,
}

/// From a byte on, code was printed for a source range; until the next mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMark {
    /// The byte of the text.
    pub offset: usize,
    /// Where the code comes from; none for code that no source text contained.
    pub range: Option<SourceRange>,
}

impl CodeText {
    /// The code itself.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The marks, in the order of their offsets. Neighbours have different ranges.
    pub fn marks(&self) -> &[CodeMark] {
        &self.marks
    }

    /// The text alone.
    pub fn into_string(self) -> String {
        self.text
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Appends `text`, which was printed for `range`.
    pub(super) fn push(&mut self, range: Option<SourceRange>, text: &str) {
        if text.is_empty() {
            return;
        }
        self.mark(self.text.len(), range);
        self.text.push_str(text);
    }

    /// Appends a piece with marks of its own.
    pub(super) fn append(&mut self, piece: &CodeText) {
        let start = self.text.len();
        for mark in &piece.marks {
            self.mark(start + mark.offset, mark.range);
        }
        self.text.push_str(&piece.text);
    }

    fn mark(&mut self, offset: usize, range: Option<SourceRange>) {
        if self.marks.last().is_none_or(|last| last.range != range) {
            self.marks.push(CodeMark { offset, range });
        }
    }
}
