//! The lexer: a position in the text, and small readers shared by all parsers. There is no token list, and nothing is copied.

use crate::diagnostics::{Parsed, Reported, Sink};
use frazil_ir::names::is_name_byte;
pub(crate) use frazil_ir::names::is_plain_name;
use frazil_ir::nesting::{MAX_NESTING, with_stack};
use frazil_ir::{Diagnostic, Span};
use std::borrow::Cow;

/// A position in the parsed text, with the diagnostics recorded so far.
pub(crate) struct Cursor<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pub(crate) pos: usize,
    /// Nesting depth of the current type or value. Types in values are counted separately.
    depth: usize,
    /// Maximum nesting depth of values since this field was last set to 0.
    pub(crate) deepest: usize,
    /// Number of values read since this was last set to 0. A reference counts as many as its target contains.
    pub(crate) values: u64,
    pub(crate) sink: Sink,
}

/// Returns true for the bytes of simple names: components of operator names, attributes, keywords.
const fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

const fn table(predicate: u8) -> [bool; 256] {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = if predicate == 0 {
            is_name_byte(i as u8)
        } else {
            is_word(i as u8)
        };
        i += 1;
    }
    table
}

const NAME: [bool; 256] = table(0);
const WORD: [bool; 256] = table(1);

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Cursor<'a> {
        Cursor {
            text,
            bytes: text.as_bytes(),
            pos: 0,
            depth: 0,
            deepest: 0,
            values: 0,
            sink: Sink::default(),
        }
    }

    /// Returns the byte at the current position; 0 at the end of the text.
    #[inline]
    pub(crate) fn peek(&self) -> u8 {
        self.bytes.get(self.pos).copied().unwrap_or(0)
    }

    /// Returns the byte `ahead` positions after the current one; 0 beyond the end.
    #[inline]
    pub(crate) fn peek_at(&self, ahead: usize) -> u8 {
        self.bytes.get(self.pos + ahead).copied().unwrap_or(0)
    }

    pub(crate) fn at_end(&self) -> bool {
        self.pos >= self.bytes.len()
    }

    /// Returns the text from byte `start` to the current position.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.pos).unwrap_or_default()
    }

    /// Returns the text at `span`.
    pub(crate) fn slice(&self, span: Span) -> &'a str {
        self.text
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// Returns the remaining text.
    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    /// Returns true if the remaining text starts with `token`.
    #[inline]
    pub(crate) fn next_is(&self, token: &[u8]) -> bool {
        self.bytes.get(self.pos..).is_some_and(|rest| rest.starts_with(token))
    }

    /// Returns the text up to the possible end of a type that begins here, of at most `limit` bytes: to the first comma, blank or
    /// closing bracket outside of brackets. Does not advance.
    #[inline]
    pub(crate) fn type_text(&self, limit: usize) -> &'a str {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let mut depth = 0_usize;
        let end = rest[..rest.len().min(limit)].iter().position(|b| match b {
            b'(' | b'[' | b'<' => {
                depth += 1;
                false
            }
            b')' | b']' | b'>' if depth > 0 => {
                depth -= 1;
                false
            }
            b')' => true,
            b',' | b' ' => depth == 0,
            b'\n' => true,
            _ => false,
        });
        end.and_then(|end| self.text.get(self.pos..self.pos + end))
            .unwrap_or_default()
    }

    pub(crate) fn span_from(&self, start: usize) -> Span {
        Span::new(start, self.pos)
    }

    /// Returns the span of the token at the current position, for messages.
    pub(crate) fn here(&self) -> Span {
        let rest = &self.bytes[self.pos.min(self.bytes.len())..];
        let len = match rest.first() {
            None | Some(b'\n') => 0,
            Some(&b) if NAME[b as usize] => rest.iter().take_while(|b| NAME[**b as usize]).count(),
            Some(b'%') => 1 + rest[1..].iter().take_while(|b| NAME[**b as usize]).count(),
            Some(_) => 1,
        };
        Span::new(self.pos, self.pos + len)
    }

    /// Skips blanks up to the end of the current line.
    #[inline]
    pub(crate) fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.pos += 1;
        }
    }

    /// Skips blanks, line ends and comments (`#` and `//` to the end of the line).
    #[inline]
    pub(crate) fn skip_space(&mut self) {
        loop {
            match self.peek() {
                b' ' | b'\t' | b'\r' | b'\n' => self.pos += 1,
                b'#' => self.skip_line(),
                b'/' if self.peek_at(1) == b'/' => self.skip_line(),
                _ => return,
            }
        }
    }

    /// Advances to the end of the current line.
    pub(crate) fn skip_line(&mut self) {
        let rest = &self.bytes[self.pos.min(self.bytes.len())..];
        self.pos += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    }

    /// Skips space, then consumes `token` if it comes next. Returns whether `token` was consumed.
    #[inline]
    pub(crate) fn eat(&mut self, token: u8) -> bool {
        self.skip_space();
        if self.peek() == token && !self.at_end() {
            self.pos += 1;
            return true;
        }
        false
    }

    /// Skips space, then consumes the word `word` if it comes next. Returns whether `word` was consumed.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let rest = self.rest().as_bytes();
        let follows = rest.get(word.len()).copied().unwrap_or(0);
        if rest.starts_with(word.as_bytes()) && !WORD[follows as usize] {
            self.pos += word.len();
            return true;
        }
        false
    }

    /// Skips space, then consumes `token`, or reports that it is missing.
    #[inline]
    pub(crate) fn expect(&mut self, token: u8, place: &str) -> Parsed<()> {
        if self.eat(token) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{}` {place}", token as char)))
    }

    /// Reports that `wanted` was expected at the current position.
    #[cold]
    pub(crate) fn unexpected(&mut self, wanted: &str) -> Reported {
        let span = self.here();
        let found = self.slice(span);
        if self.at_end() {
            let message = format!("expected {wanted}, but the text ends");
            return self
                .sink
                .error("unexpected-end", message, span, format!("expected {wanted}"));
        }
        let found = if found.is_empty() {
            match self.rest().chars().next() {
                Some('\n') | None => "the end of the line".to_owned(),
                Some(c) => format!("`{c}`"),
            }
        } else {
            format!("`{found}`")
        };
        let message = format!("expected {wanted}, found {found}");
        self.sink
            .error("unexpected-token", message, span, format!("expected {wanted}"))
    }

    /// Reads a name that may contain dots; empty if the next token is no name.
    #[inline]
    pub(crate) fn name(&mut self) -> &'a str {
        let start = self.pos;
        let rest = self.bytes.get(start..).unwrap_or_default();
        self.pos += rest.iter().position(|b| !NAME[*b as usize]).unwrap_or(rest.len());
        self.since(start)
    }

    /// Reads a name that is a number of at most nine digits without leading zeros; otherwise does not advance.
    #[inline(always)]
    pub(crate) fn small_number(&mut self) -> Option<u32> {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let mut number = 0;
        let mut len = 0;
        while let Some(b) = rest.get(len).filter(|b| b.is_ascii_digit() && len < 9) {
            number = 10 * number + u32::from(b - b'0');
            len += 1;
        }
        let ends = rest.get(len).is_none_or(|b| !NAME[*b as usize]);
        if len == 0 || !ends || (len > 1 && rest.first() == Some(&b'0')) {
            return None;
        }
        self.pos += len;
        Some(number)
    }

    /// Reads a simple name, without dots; empty if the next token is no name.
    #[inline]
    pub(crate) fn word(&mut self) -> &'a str {
        let start = self.pos;
        while WORD[self.peek() as usize] {
            self.pos += 1;
        }
        self.since(start)
    }

    /// Skips space and reads a name, or reports that it is missing.
    pub(crate) fn expect_name(&mut self, what: &str) -> Parsed<&'a str> {
        self.skip_space();
        match self.name() {
            "" => Err(self.unexpected(what)),
            name => Ok(name),
        }
    }

    /// Skips space and reads a name, or reports that it is missing. Names with unusual characters are in quotes.
    pub(crate) fn any_name(&mut self, what: &str) -> Parsed<Cow<'a, str>> {
        self.skip_space();
        if self.peek() == b'"' {
            return self.string();
        }
        self.expect_name(what).map(Cow::Borrowed)
    }

    /// Reads the characters of a number, including sign and exponent; also `inf`, `nan`, `nan(0x1)`. Empty if there is none.
    pub(crate) fn number(&mut self) -> &'a str {
        let start = self.pos;
        if matches!(self.peek(), b'-' | b'+') {
            self.pos += 1;
        }
        let rest = self.rest();
        // The imaginary part of a complex number ends in `j`.
        let behind = 3 + usize::from(self.peek_at(3) == b'j');
        if (rest.starts_with("inf") || rest.starts_with("nan")) && !WORD[self.peek_at(behind) as usize] {
            self.pos += 3;
            if self.next_is(b"(0x") {
                let digits = self.rest().bytes().skip(3).take_while(u8::is_ascii_hexdigit).count();
                if self.peek_at(3 + digits) == b')' {
                    self.pos += 4 + digits;
                }
            }
            return self.since(start);
        }
        let mut digits = false;
        loop {
            match self.peek() {
                b'0'..=b'9' => digits = true,
                b'.' => {}
                b'e' | b'E' if digits => {
                    let sign = usize::from(matches!(self.peek_at(1), b'+' | b'-'));
                    if !self.peek_at(1 + sign).is_ascii_digit() {
                        break;
                    }
                    self.pos += sign;
                }
                _ => break,
            }
            self.pos += 1;
        }
        if !digits {
            self.pos = start;
        }
        self.since(start)
    }

    /// Skips space and reads an integer, or reports that it is missing.
    pub(crate) fn integer(&mut self, what: &str) -> Parsed<i64> {
        self.skip_space();
        let start = self.pos;
        let digits = self.number();
        if digits.is_empty() {
            return Err(self.unexpected(what));
        }
        digits.parse().map_err(|_| {
            let span = self.span_from(start);
            self.sink.error(
                "bad-number",
                format!("`{digits}` is no 64-bit integer"),
                span,
                format!("expected {what}"),
            )
        })
    }

    /// Runs `read` one level deeper.
    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.reach(1)?;
        self.depth += 1;
        let result = with_stack(|| read(self));
        self.depth -= 1;
        result
    }

    /// Runs `read` with a nesting depth of its own that starts at 0.
    pub(crate) fn apart<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let outside = (std::mem::take(&mut self.depth), self.deepest);
        let result = read(self);
        (self.depth, self.deepest) = outside;
        result
    }

    /// Checks that a value with `levels` nesting levels does not exceed the maximum depth here.
    pub(crate) fn reach(&mut self, levels: usize) -> Parsed<()> {
        self.deepest = self.deepest.max(self.depth + levels);
        if self.depth + levels > MAX_NESTING {
            return Err(self.too_deep());
        }
        Ok(())
    }

    #[cold]
    pub(crate) fn too_deep(&mut self) -> Reported {
        let span = self.here();
        self.sink.error(
            "nesting-too-deep",
            format!("types and values nest at most {MAX_NESTING} deep"),
            span,
            "one level too deep",
        )
    }

    /// Skips space and reads a string in double quotes, with its escapes resolved.
    pub(crate) fn string(&mut self) -> Parsed<Cow<'a, str>> {
        self.skip_space();
        let start = self.pos;
        if self.peek() != b'"' {
            return Err(self.unexpected("a string"));
        }
        self.pos += 1;
        let body = self.pos;
        loop {
            match self.peek() {
                b'"' => {
                    let text = self.since(body);
                    self.pos += 1;
                    return Ok(Cow::Borrowed(text));
                }
                b'\\' => break,
                b'\n' => return Err(self.unterminated(start)),
                0 if self.at_end() => return Err(self.unterminated(start)),
                _ => self.pos += 1,
            }
        }
        self.escaped(start, body)
    }

    #[cold]
    fn unterminated(&mut self, start: usize) -> Reported {
        let span = self.span_from(start);
        self.sink.report(
            Diagnostic::error("unterminated-string", "this string has no end", span, "starts here")
                .with_help("a string ends on its line; write \\n for a line end and \\\" for a quote"),
        )
    }

    /// Reads the rest of a string from its first escape on. `body` is the offset of its text.
    fn escaped(&mut self, start: usize, body: usize) -> Parsed<Cow<'a, str>> {
        let mut out = self.since(body).as_bytes().to_vec();
        loop {
            let b = self.peek();
            if b == b'\n' || self.at_end() {
                return Err(self.unterminated(start));
            }
            self.pos += 1;
            match b {
                b'"' => break,
                b'\\' => {
                    let byte = self.escape()?;
                    out.push(byte);
                }
                b => out.push(b),
            }
        }
        String::from_utf8(out).map(Cow::Owned).map_err(|_| {
            let span = self.span_from(start);
            self.sink.error(
                "bad-escape",
                "the escapes of this string make no valid UTF-8",
                span,
                "in this string",
            )
        })
    }

    /// Reads the rest of an escape sequence, after the backslash, and returns the byte that it denotes.
    fn escape(&mut self) -> Parsed<u8> {
        let start = self.pos - 1;
        let b = self.peek();
        self.pos += 1;
        Ok(match b {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'\\' | b'"' | b'\'' => b,
            // Three octal digits. PyTorch prints bytes above 127 as *negative* octal digits, which are the characters below '0'.
            b')'..=b'7' => {
                let mut digits = [b, self.peek(), self.peek_at(1)].map(|d| i32::from(d) - i32::from(b'0'));
                if digits.iter().any(|d| !(-7..=7).contains(d)) {
                    return Err(self.bad_escape(start));
                }
                self.pos += 2;
                digits[0] *= 64;
                digits[1] *= 8;
                (digits.iter().sum::<i32>() & 0xff) as u8
            }
            b'x' => {
                let digit = |b: u8| (b as char).to_digit(16);
                match (digit(self.peek()), digit(self.peek_at(1))) {
                    (Some(high), Some(low)) => {
                        self.pos += 2;
                        (high * 16 + low) as u8
                    }
                    _ => return Err(self.bad_escape(start)),
                }
            }
            _ => {
                return Err(self.bad_escape(start));
            }
        })
    }

    #[cold]
    fn bad_escape(&mut self, start: usize) -> Reported {
        // Past the whole character, so that the next slice is on a character boundary.
        while self.pos < self.bytes.len() && !self.text.is_char_boundary(self.pos) {
            self.pos += 1;
        }
        self.pos = self.pos.min(self.bytes.len());
        let span = self.span_from(start);
        self.sink.report(
            Diagnostic::error("bad-escape", "this escape means nothing", span, "unknown escape")
                .with_help("known are \\n \\t \\r \\\\ \\\" \\' \\a \\b \\f \\v, \\x and two hexadecimal, \\ and three octal digits"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_resolve_their_escapes() {
        let read = |text: &str| Cursor::new(text).string().map(Cow::into_owned).ok();
        assert_eq!(read(r#""plain""#).as_deref(), Some("plain"));
        assert_eq!(read(r#"  "a\n\"b\"\\\'""#).as_deref(), Some("a\n\"b\"\\'"));
        assert_eq!(read(r#""\001\177""#).as_deref(), Some("\u{1}\u{7f}"));
        assert_eq!(read(r#""\0)+\/.)""#).as_deref(), Some("é"), "as PyTorch prints it");
        assert_eq!(read(r#""\xc3\xa9""#).as_deref(), Some("é"));
        for bad in [r#""open"#, "\"line\n\"", r#""\q""#, r#""\xff""#, r#""\"#, r#"x"#] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_stop_where_they_end() {
        let read = |text| Cursor::new(text).number();
        assert_eq!(read("12,"), "12");
        assert_eq!(read("-1.5e-07]"), "-1.5e-07");
        assert_eq!(read("1.e"), "1.");
        assert_eq!(read("-inf"), "-inf");
        assert_eq!(read("-nan(0x1f)]"), "-nan(0x1f)");
        assert_eq!(read("nan(1)"), "nan");
        assert_eq!(read("+infj"), "+inf");
        assert_eq!(read("injury"), "");
        assert_eq!(read("-x"), "");
        assert_eq!(read("."), "");
    }
}
