//! Check of the nesting depth of source text before parsing, because the parser is recursive.

use frazil_ir::nesting::MAX_NESTING;

/// Maximum nesting of brackets and indented blocks. Source nests types and values inside expressions, and methods inside classes. The resulting values are
/// nested at most [`MAX_NESTING`] levels deep.
pub(crate) const MAX_DEPTH: usize = 2 * MAX_NESTING;

/// Returns the byte offset at which brackets or blocks are nested too deeply.
///
/// Strings are treated like code. This can only refuse too much, for strings with thousands of unmatched brackets.
pub(crate) fn too_deep(text: &str, levels: usize) -> Option<usize> {
    let mut brackets = 0usize;
    let mut indents: Vec<usize> = Vec::new();
    // Prefix operators, postfix chains and chained binary operators nest without brackets.
    let mut operators = 0usize;
    let mut column = Some(0usize);
    for (at, byte) in text.bytes().enumerate() {
        match (byte, column) {
            (b' ' | b'\t', Some(width)) => column = Some(width + 1),
            (b'\n', _) => {
                column = Some(0);
                operators = 0;
                continue;
            }
            (_, Some(width)) => {
                column = None;
                while indents.last().is_some_and(|&top| top >= width) {
                    indents.pop();
                }
                indents.push(width);
            }
            _ => {}
        }
        match byte {
            b'(' | b'[' | b'{' => brackets += 1,
            b')' | b']' | b'}' => brackets = brackets.saturating_sub(1),
            b',' | b':' | b'"' | b'\'' => operators = 0,
            b'+' | b'-' | b'~' | b'*' | b'/' | b'.' | b'|' | b'&' | b'^' | b'%' | b'<' | b'>' | b'@' => operators += 1,
            // `not not not ...`, `a and b and ...`
            b't' | b'd' | b'r' if ends_operator(text.as_bytes(), at) => operators += 1,
            _ => {}
        }
        if brackets > levels || indents.len() > levels || operators > levels {
            return Some(at);
        }
    }
    None
}

/// Returns whether a word operator, such as `not`, ends at byte `at`.
fn ends_operator(text: &[u8], at: usize) -> bool {
    let is_word = |at: Option<usize>| {
        let byte = at.and_then(|at| text.get(at));
        byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
    };
    !is_word(at.checked_add(1))
        && ["not", "and", "or"].iter().any(|word| {
            let start = (at + 1).checked_sub(word.len());
            start.is_some_and(|start| text.get(start..=at) == Some(word.as_bytes()) && !is_word(start.checked_sub(1)))
        })
}
