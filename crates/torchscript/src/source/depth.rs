//! The depth of nesting of source text, found before the parser recurses into it.

use frazil_ir::nesting::MAX_NESTING;

/// Deepest nesting of brackets, and of indented blocks, that is read: source writes types and values inside of expressions, and methods inside of classes.
/// What results is nested [`MAX_NESTING`] levels deep at most.
pub(crate) const MAX_DEPTH: usize = 2 * MAX_NESTING;

/// The byte at which brackets or blocks nest too deeply, before the parser would recurse into them. Strings are not told from code, which
/// errs on the side of refusal only for strings with thousands of unmatched brackets.
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

/// Whether the byte at `at` ends one of the operators that are words.
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
