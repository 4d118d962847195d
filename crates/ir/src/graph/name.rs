//! Names of values: a word and a number.

use crate::{Context, SymbolId, symbols};
use cranelift_entity::packed_option::ReservedValue;
use std::fmt;

/// A value's name, without its `%`: a word, a number, or both with a dot between (`x`, `12`, `x.3`).
///
/// Graphs have as many names as values, but few words. Only the word is interned, so a name takes only these eight bytes. Equal texts have equal names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ValueName {
    /// The word before the number; empty if the name is only a number.
    word: SymbolId,
    /// The number at the end; [`NO_NUMBER`] if the name is only a word.
    number: u32,
}

const NO_NUMBER: u32 = u32::MAX;
/// Maximum number of digits of the number; longer numbers are part of the word.
const MAX_DIGITS: usize = 9;

impl ValueName {
    /// Returns the name with the text `text`.
    pub fn new(ctx: &Context, text: &str) -> ValueName {
        let (word, number) = Self::split(text);
        Self::of_parts(ctx.symbol(word), number)
    }

    /// Returns the name with the text `text`. `None` if its word has not been interned, so that no value has the name.
    pub fn find(ctx: &Context, text: &str) -> Option<ValueName> {
        let (word, number) = Self::split(text);
        Some(Self::of_parts(ctx.find_symbol(word)?, number))
    }

    /// Returns the name with the word and the number that [`split`](Self::split) returned, for callers that intern words themselves.
    pub fn of_parts(word: SymbolId, number: Option<u32>) -> ValueName {
        ValueName {
            word,
            number: number.unwrap_or(NO_NUMBER),
        }
    }

    /// Splits a name into word and number: `x.3` into `x` and 3, `12` into an empty word and 12. A number that would be printed
    /// differently belongs to the word: `x.03` is only a word.
    #[inline]
    pub fn split(text: &str) -> (&str, Option<u32>) {
        let bytes = text.as_bytes();
        let mut start = bytes.len();
        let mut number = 0;
        let mut weight = 1;
        while start > 0 && bytes[start - 1].is_ascii_digit() {
            start -= 1;
            if bytes.len() - start > MAX_DIGITS {
                return (text, None);
            }
            number += weight * u32::from(bytes[start] - b'0');
            weight = weight.wrapping_mul(10);
        }
        let digits = bytes.len() - start;
        if digits == 0 || (digits > 1 && bytes[start] == b'0') {
            return (text, None);
        }
        match start {
            0 => ("", Some(number)),
            _ if start > 1 && bytes[start - 1] == b'.' => (&text[..start - 1], Some(number)),
            _ => (text, None),
        }
    }

    /// Returns the word of the name; empty if the name is only a number.
    pub fn word(self) -> SymbolId {
        self.word
    }

    /// Returns the number of the name, if it has one.
    pub fn number(self) -> Option<u32> {
        (self.number != NO_NUMBER).then_some(self.number)
    }

    /// Returns the name as text, without `%`.
    pub fn display(self, ctx: &Context) -> impl fmt::Display + '_ {
        fmt::from_fn(move |f| {
            f.write_str(ctx.name(self.word))?;
            match self.number() {
                Some(number) if self.word == symbols::EMPTY => write!(f, "{number}"),
                Some(number) => write!(f, ".{number}"),
                None => Ok(()),
            }
        })
    }
}

impl ReservedValue for ValueName {
    fn reserved_value() -> ValueName {
        Self::of_parts(SymbolId::reserved_value(), None)
    }

    fn is_reserved_value(&self) -> bool {
        self.word.is_reserved_value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_where_they_print_together_again() {
        let ctx = Context::new();
        for (text, word, number) in [
            ("x", "x", None),
            ("12", "", Some(12)),
            ("0", "", Some(0)),
            ("012", "012", None),
            ("x.3", "x", Some(3)),
            ("x.1.30", "x.1", Some(30)),
            ("x.03", "x.03", None),
            ("x.0", "x", Some(0)),
            ("x3", "x3", None),
            ("x.", "x.", None),
            (".5", ".5", None),
            ("..5", ".", Some(5)),
            ("999999999", "", Some(999_999_999)),
            ("1000000000", "1000000000", None),
            ("x.4294967295", "x.4294967295", None),
            ("é.7", "é", Some(7)),
            ("", "", None),
        ] {
            assert_eq!(ValueName::split(text), (word, number), "{text}");
            let name = ValueName::new(&ctx, text);
            assert_eq!(name.display(&ctx).to_string(), text);
            assert_eq!(ValueName::find(&ctx, text), Some(name));
        }
        assert_eq!(ValueName::find(&ctx, "y.3"), None);
    }
}
