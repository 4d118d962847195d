//! The lexer of tensor text: a position in the text, and readers of tokens.

use frazil_ir::{DType, Diagnostic, Span};
use frazil_runtime::expr::Number;
use frazil_runtime::structured::{Dims, TensorShape};
use frazil_syntax::ParseError;

/// Result of reading a part of a text. Reading stops at the first error.
pub(super) type Parsed<T> = Result<T, ParseError>;

/// Maximum number of dimensions of a tensor, and of loops of a nest.
pub(super) const MAX_RANK: usize = 64;

/// A position in a text.
pub(super) struct Lexer<'a> {
    text: &'a str,
    position: usize,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        let mut lexer = Lexer { text, position: 0 };
        lexer.skip();
        lexer
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    pub(super) fn at_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// Skips white space, and comments from `#` or `//` to the end of the line.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.position += rest.len() - trimmed.len();
            if !(trimmed.starts_with('#') || trimmed.starts_with("//")) {
                return;
            }
            self.position += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Returns the error for input other than `expected` at the current position.
    pub(super) fn expected(&self, expected: &str) -> ParseError {
        let rest = self.rest();
        let length = rest
            .find(|c: char| !is_word(c))
            .filter(|&end| end > 0)
            .unwrap_or_else(|| rest.chars().next().map_or(0, char::len_utf8));
        let code = if rest.is_empty() {
            "unexpected-end"
        } else {
            "unexpected-token"
        };
        self.error(self.position..self.position + length, code, expected)
    }

    /// Returns an error about the text from `start` to the current position.
    pub(super) fn error_from(&self, start: usize, code: &'static str, expected: &str) -> ParseError {
        let read = self.text.get(start..self.position).unwrap_or_default().trim_end();
        self.error(start..start + read.len(), code, expected)
    }

    pub(super) fn error(&self, range: std::ops::Range<usize>, code: &'static str, expected: &str) -> ParseError {
        let at = |byte: usize| u32::try_from(byte).unwrap_or(u32::MAX);
        let span = Span {
            start: at(range.start),
            end: at(range.end),
        };
        let message = format!("expected {expected}");
        ParseError {
            diagnostics: vec![Diagnostic::error(code, message.clone(), span, message)],
        }
    }

    /// Returns whether `token` comes next, as a whole or as the beginning of a word.
    pub(super) fn next_is(&self, token: &str) -> bool {
        self.rest().starts_with(token)
    }

    /// Returns whether a name that consists of `prefix` and a number comes next.
    pub(super) fn next_is_numbered(&self, prefix: &str) -> bool {
        let after = self.rest().strip_prefix(prefix);
        after.is_some_and(|after| after.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Reads `token` if it comes next.
    pub(super) fn take(&mut self, token: &str) -> bool {
        let Some(after) = self.rest().strip_prefix(token) else {
            return false;
        };
        let is_part = token.ends_with(is_word) && after.starts_with(is_word);
        if !is_part {
            self.position += token.len();
            self.skip();
        }
        !is_part
    }

    pub(super) fn expect(&mut self, token: &str) -> Parsed<()> {
        match self.take(token) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{token}`"))),
        }
    }

    /// Reads a word.
    pub(super) fn word(&mut self, what: &str) -> Parsed<&'a str> {
        let rest = self.rest();
        let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.expected(what));
        }
        self.position += length;
        self.skip();
        Ok(&rest[..length])
    }

    /// Reads the number of a name such as `d3`; it is less than `count`.
    pub(super) fn index(&mut self, prefix: &str, count: usize, what: &str) -> Parsed<usize> {
        let start = self.position;
        let number = self.number_after(prefix)?;
        match number < count {
            true => Ok(number),
            false => Err(self.error_from(start, "undefined-value", &format!("a {what} that is defined before"))),
        }
    }

    /// Reads the number of a name such as `%12`.
    pub(super) fn number_after(&mut self, prefix: &str) -> Parsed<usize> {
        let name = || format!("`{prefix}` and a number");
        let Some(rest) = self.rest().strip_prefix(prefix) else {
            return Err(self.expected(&name()));
        };
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(number) = rest[..length].parse() else {
            return Err(self.expected(&name()));
        };
        self.position += prefix.len() + length;
        self.skip();
        Ok(number)
    }

    /// Reads digits as a number of at most 2^63.
    pub(super) fn magnitude(&mut self) -> Parsed<i128> {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        match rest[..length].parse::<u64>() {
            Ok(number) if number <= 1 << 63 => {
                self.position += length;
                self.skip();
                Ok(i128::from(number))
            }
            _ => Err(self.expected("an integer")),
        }
    }

    /// Reads a size or an extent.
    pub(super) fn size(&mut self) -> Parsed<i64> {
        let start = self.position;
        let size = self.magnitude()?;
        i64::try_from(size).map_err(|_| self.error_from(start, "bad-number", "a size"))
    }

    /// Reads a number: an integer, or a float with a point, an exponent, `inf` or `nan`.
    pub(super) fn number(&mut self) -> Parsed<Number> {
        let rest = self.rest();
        let is_part = |c: char| is_word(c) || c == '.' || c == '-' || c == '+';
        let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let text = &rest[..length];
        let number = match text.parse::<i64>() {
            Ok(integer) if !text.starts_with('+') => Number::Int(integer),
            _ => match text.parse::<f64>() {
                Ok(float) if !text.starts_with('+') => Number::Float(float),
                _ => return Err(self.expected("a number")),
            },
        };
        self.position += length;
        self.skip();
        Ok(number)
    }

    /// Reads a quoted string, with the escapes of JSON.
    pub(super) fn string(&mut self) -> Parsed<String> {
        let rest = self.rest();
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find_map(|(at, c)| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends.then_some(at + 1)
        });
        let (true, Some(end)) = (rest.starts_with('"'), end) else {
            return Err(self.expected("a string in double quotes"));
        };
        let Ok(text) = serde_json::from_str(&rest[..end]) else {
            return Err(self.error(self.position..self.position + end, "bad-escape", "a valid string"));
        };
        self.position += end;
        self.skip();
        Ok(text)
    }

    /// Reads items with commas between them up to `end`, which is read too.
    pub(super) fn list<T>(&mut self, end: &str, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if self.take(end) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(end) {
                return Ok(items);
            }
            if !self.take(",") {
                return Err(self.expected(&format!("`,` or `{end}`")));
            }
        }
    }

    pub(super) fn dtype(&mut self) -> Parsed<DType> {
        let start = self.position;
        let name = self.word("a dtype")?;
        DType::from_python_name(name).ok_or_else(|| self.error_from(start, "unknown-type", "a dtype such as `float32`"))
    }

    /// Reads a shape: `float32[2, 3]`.
    pub(super) fn shape(&mut self) -> Parsed<TensorShape> {
        let dtype = self.dtype()?;
        self.expect("[")?;
        let start = self.position;
        let sizes: Dims = self.list("]", Lexer::size)?.into();
        match sizes.len() <= MAX_RANK {
            true => Ok(TensorShape { dtype, sizes }),
            false => Err(self.error_from(start, "bad-tensor-type", "at most 64 dimensions")),
        }
    }
}
