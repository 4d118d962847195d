//! Printed text with the source ranges of its parts.

use frazil_ir::SourceRange;

/// Printed code, with the source range of the node for which each part was printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeText {
    text: String,
    marks: Vec<CodeMark>,
}

/// The source range of the code from a byte up to the next mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeMark {
    /// Offset of the first byte in the text.
    pub offset: usize,
    /// The source range; `None` for code without a source text.
    pub range: Option<SourceRange>,
}

impl CodeText {
    /// Returns the code as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the marks, in the order of their offsets. Adjacent marks have different ranges.
    pub fn marks(&self) -> &[CodeMark] {
        &self.marks
    }

    /// Returns the text without its marks.
    pub fn into_string(self) -> String {
        self.text
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Appends `text` with the source range `range`.
    pub(super) fn push(&mut self, range: Option<SourceRange>, text: &str) {
        if text.is_empty() {
            return;
        }
        self.mark(self.text.len(), range);
        self.text.push_str(text);
    }

    /// Appends other printed code with its marks.
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
