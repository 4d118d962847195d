//! Strings. TorchScript's are byte strings: lengths, positions and character classes refer to bytes, and only ASCII letters have
//! a case. A result that would split a character is refused, since our strings are UTF-8.

use super::slices::slice_indices;
use frazil_ir::types;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::format::{sign_and_digits, str_of};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::value::{ListValue, Value};

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::str",
        Entry::on_values(|c| one(Value::str(str_of(c.ctx, c.arg(0))))),
    ),
    ("aten::join", Entry::on_values(join)),
    ("aten::split", Entry::on_values(split)),
    ("aten::rsplit", Entry::on_values(rsplit)),
    ("aten::splitlines", Entry::on_values(split_lines)),
    (
        "aten::upper",
        Entry::on_values(|c| one(Value::str(c.text(0)?.to_ascii_uppercase()))),
    ),
    (
        "aten::lower",
        Entry::on_values(|c| one(Value::str(c.text(0)?.to_ascii_lowercase()))),
    ),
    (
        "aten::capitalize",
        Entry::on_values(|c| {
            let mut s = c.text(0)?.to_ascii_lowercase();
            if let Some(first) = s.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            one(Value::str(s))
        }),
    ),
    ("aten::title", Entry::on_values(|c| one(Value::str(titled(c.text(0)?))))),
    ("aten::swapcase", Entry::on_values(swap_case)),
    ("aten::strip", Entry::on_values(|c| trim(c, true, true))),
    ("aten::lstrip", Entry::on_values(|c| trim(c, true, false))),
    ("aten::rstrip", Entry::on_values(|c| trim(c, false, true))),
    ("aten::replace", Entry::on_values(replace)),
    ("aten::startswith", Entry::on_values(|c| within(c, <[u8]>::starts_with))),
    ("aten::endswith", Entry::on_values(|c| within(c, <[u8]>::ends_with))),
    ("aten::find", Entry::on_values(|c| one(find(c)?.unwrap_or(-1)))),
    ("aten::rfind", Entry::on_values(|c| one(rfind(c)?.unwrap_or(-1)))),
    (
        "aten::rindex",
        Entry::on_values(|c| one(rfind(c)?.ok_or_else(not_found)?)),
    ),
    (
        "aten::partition",
        Entry::on_values(|c| partition(c, c.text(0)?.split_once(c.text(1)?), false)),
    ),
    (
        "aten::rpartition",
        Entry::on_values(|c| partition(c, c.text(0)?.rsplit_once(c.text(1)?), true)),
    ),
    // The odd space goes to the left where the width is odd, as in Python.
    (
        "aten::center",
        Entry::on_values(|c| pad(c, |n, width| n / 2 + (n & width & 1))),
    ),
    ("aten::ljust", Entry::on_values(|c| pad(c, |_, _| 0))),
    ("aten::rjust", Entry::on_values(|c| pad(c, |n, _| n))),
    ("aten::zfill", Entry::on_values(zero_fill)),
    ("aten::expandtabs", Entry::on_values(expand_tabs)),
    ("aten::isdigit", Entry::on_values(|c| all(c, |b| b.is_ascii_digit()))),
    ("aten::isdecimal", Entry::on_values(|c| all(c, |b| b.is_ascii_digit()))),
    ("aten::isnumeric", Entry::on_values(|c| all(c, |b| b.is_ascii_digit()))),
    (
        "aten::isalpha",
        Entry::on_values(|c| all(c, |b| b.is_ascii_alphabetic())),
    ),
    (
        "aten::isalnum",
        Entry::on_values(|c| all(c, |b| b.is_ascii_alphanumeric())),
    ),
    ("aten::isspace", Entry::on_values(|c| all(c, is_space))),
    (
        "aten::isprintable",
        Entry::on_values(|c| one(c.text(0)?.bytes().all(|b| matches!(b, b' '..=b'~')))),
    ),
    (
        "aten::isidentifier",
        Entry::on_values(|c| {
            let s = c.text(0)?;
            let start = s.starts_with(|ch: char| ch.is_ascii_alphabetic() || ch == '_');
            one(start && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
        }),
    ),
    (
        "aten::isupper",
        Entry::on_values(|c| cased(c, |b| b.is_ascii_lowercase())),
    ),
    (
        "aten::islower",
        Entry::on_values(|c| cased(c, |b| b.is_ascii_uppercase())),
    ),
    (
        "aten::istitle",
        Entry::on_values(|c| {
            let s = c.text(0)?;
            one(s.bytes().any(|b| b.is_ascii_alphabetic()) && titled(s) == s)
        }),
    ),
    (
        "aten::ord",
        Entry::on_values(|c| match c.text(0)?.as_bytes() {
            [byte] => one(i64::from(*byte)),
            more => Err(OpError::raised(format!(
                "String for ord() must be 1 character, found {}",
                more.len()
            ))),
        }),
    ),
    ("aten::chr", Entry::on_values(chr)),
    (
        "aten::hex",
        Entry::on_values(|c| one(Value::str(sign_and_digits(c.int(0)?, |n| format!("0x{n:x}"))))),
    ),
    (
        "aten::oct",
        Entry::on_values(|c| one(Value::str(sign_and_digits(c.int(0)?, |n| format!("0o{n:o}"))))),
    ),
    (
        "aten::bin",
        Entry::on_values(|c| one(Value::str(sign_and_digits(c.int(0)?, |n| format!("0b{n:b}"))))),
    ),
    ("prim::StringIndex", Entry::on_values(get)),
    ("aten::len.str", Entry::kernel(|c| one(c.text(0)?.len() as i64))),
    ("aten::__getitem__.str", Entry::kernel(get)),
    ("aten::slice.str", Entry::kernel(slice)),
    (
        "aten::index.str",
        Entry::kernel(|c| one(find(c)?.ok_or_else(not_found)?)),
    ),
];

fn not_found() -> OpError {
    OpError::raised("ValueError: substring not found")
}

/// Creates a string from bytes taken from another string.
fn text(bytes: Vec<u8>) -> Result<Value, OpError> {
    String::from_utf8(bytes)
        .map(Value::str)
        .map_err(|_| OpError::Unsupported("strings that are not UTF-8 (a character was cut apart)".into()))
}

fn strings<'a>(items: impl IntoIterator<Item = &'a str>) -> Value {
    Value::List(ListValue::new(types::STR, items.into_iter().map(Value::str).collect()))
}

fn get(call: &Call<'_>) -> Result<Results, OpError> {
    let bytes = call.text(0)?.as_bytes();
    let index = call.int(1)?;
    let wrapped = if index < 0 {
        index.wrapping_add(bytes.len() as i64)
    } else {
        index
    };
    match usize::try_from(wrapped).ok().and_then(|i| bytes.get(i)) {
        Some(byte) => one(text(vec![*byte])?),
        None => Err(OpError::raised("string index out of range")),
    }
}

fn slice(call: &Call<'_>) -> Result<Results, OpError> {
    let bytes = call.text(0)?.as_bytes();
    let chosen = slice_indices(call.opt_int(1)?, call.opt_int(2)?, call.int(3)?, bytes.len())?;
    one(text(chosen.filter_map(|i| bytes.get(i).copied()).collect())?)
}

/// Implements `list("abc")`: a list of characters.
pub(super) fn characters(call: &Call<'_>) -> Result<Results, OpError> {
    let items: Result<Vec<Value>, OpError> = call.text(0)?.bytes().map(|b| text(vec![b])).collect();
    one(Value::List(ListValue::new(types::STR, items?)))
}

fn chr(call: &Call<'_>) -> Result<Results, OpError> {
    let code = call.int(0)?;
    if !(0..0x11_0000).contains(&code) {
        return Err(OpError::raised(format!(
            "chr() arg not in range(0x110000), found {code}"
        )));
    }
    // PyTorch uses the lowest byte.
    one(text(vec![(code & 0xff) as u8])?)
}

fn join(call: &Call<'_>) -> Result<Results, OpError> {
    let items = call.list(1)?.items();
    let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
    one(Value::str(words.join(call.text(0)?)))
}

fn is_space(b: u8) -> bool {
    b.is_ascii_whitespace() || b == 0x0b
}

/// Converts the maximum number of splits in Python, where a negative number means all, to the number of parts for `splitn`.
fn parts(cuts: i64) -> usize {
    usize::try_from(cuts).map_or(usize::MAX, |n| n.saturating_add(1))
}

/// Implements `split(sep=None, max=-1)`. Without a separator PyTorch ignores `max`.
fn split(call: &Call<'_>) -> Result<Results, OpError> {
    let s = call.text(0)?;
    match call.arg(1) {
        Value::None => {
            let words = s.split(|c: char| u8::try_from(c).is_ok_and(is_space));
            one(strings(words.filter(|w| !w.is_empty())))
        }
        _ => match call.text(1)? {
            "" => Err(OpError::raised("ValueError: empty separator")),
            separator => one(strings(s.splitn(parts(call.int(2)?), separator))),
        },
    }
}

fn rsplit(call: &Call<'_>) -> Result<Results, OpError> {
    let (s, separator, cuts) = (call.text(0)?, call.text(1)?, call.int(2)?);
    if separator.is_empty() && cuts != 0 {
        return Err(OpError::raised("ValueError: empty separator"));
    }
    let mut words: Vec<&str> = match cuts {
        0 => vec![s],
        _ => s.rsplitn(parts(cuts), separator).collect(),
    };
    words.reverse();
    one(strings(words))
}

/// Implements `splitlines` as PyTorch does: `\r\n` counts as two line ends, and with `keepends` each line end is a separate element.
fn split_lines(call: &Call<'_>) -> Result<Results, OpError> {
    let (s, keep) = (call.text(0)?, call.flag(1)?);
    let is_end = |c: char| matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c' | '\x1d' | '\x1e');
    let mut out = Vec::new();
    let mut rest = s;
    while let Some(at) = rest.find(is_end) {
        let (line, more) = rest.split_at(at);
        let (end, more) = more.split_at(1);
        out.push(line);
        if keep {
            out.push(end);
        }
        rest = more;
    }
    if !rest.is_empty() {
        out.push(rest);
    }
    one(strings(out))
}

fn titled(s: &str) -> String {
    let mut inside = false;
    s.chars()
        .map(|c| {
            let cased = if inside {
                c.to_ascii_lowercase()
            } else {
                c.to_ascii_uppercase()
            };
            inside = c.is_ascii_alphabetic();
            cased
        })
        .collect()
}

fn swap_case(call: &Call<'_>) -> Result<Results, OpError> {
    let swap = |c: char| {
        if c.is_ascii_uppercase() {
            c.to_ascii_lowercase()
        } else {
            c.to_ascii_uppercase()
        }
    };
    one(Value::str(call.text(0)?.chars().map(swap).collect::<String>()))
}

fn trim(call: &Call<'_>, start: bool, end: bool) -> Result<Results, OpError> {
    let (s, set) = (call.text(0)?, call.text(1)?);
    let inside = |c: char| set.contains(c);
    let s = if start { s.trim_start_matches(inside) } else { s };
    one(Value::str(if end { s.trim_end_matches(inside) } else { s }))
}

fn replace(call: &Call<'_>) -> Result<Results, OpError> {
    let (s, old, new) = (call.text(0)?, call.text(1)?, call.text(2)?);
    one(Value::str(match usize::try_from(call.int(3)?) {
        Ok(max) => s.replacen(old, new, max),
        Err(_) => s.replace(old, new),
    }))
}

/// Returns the positions `start` (argument 2) and `end` (argument 3) in a string of `len` bytes. Negative ones count from
/// the end; for `end`, -1 is the end itself, PyTorch's default.
fn window(call: &Call<'_>, len: usize) -> Result<(usize, usize), OpError> {
    let len = len as i64;
    let (start, end) = (call.int(2)?, call.int(3)?);
    let wrap = |i: i64, behind: i64| if i < 0 { (i + len + behind).max(0) } else { i };
    Ok((wrap(start, 0) as usize, wrap(end, 1) as usize))
}

/// Applies `test` to the part of the string that `startswith` and `endswith` examine. If `end` is before `start`, this is everything after `start`.
fn within(call: &Call<'_>, test: fn(&[u8], &[u8]) -> bool) -> Result<Results, OpError> {
    let s = call.text(0)?.as_bytes();
    let (start, end) = window(call, s.len())?;
    let end = if end < start { s.len() } else { end.min(s.len()) };
    let part = s
        .get(start..end.max(start))
        .ok_or_else(|| OpError::raised("string index out of range"))?;
    one(test(part, call.text(1)?.as_bytes()))
}

/// Returns the positions of `part`, a non-empty string, in `s[start..end]`.
fn matches<'a>(
    s: &'a [u8],
    part: &'a [u8],
    (start, end): (usize, usize),
) -> impl DoubleEndedIterator<Item = usize> + 'a {
    let region = s.get(start..end.min(s.len())).unwrap_or(&[]);
    let found = region
        .windows(part.len().max(1))
        .enumerate()
        .filter(move |(_, w)| *w == part);
    found.map(move |(i, _)| start + i)
}

fn find(call: &Call<'_>) -> Result<Option<i64>, OpError> {
    let (s, part) = (call.text(0)?.as_bytes(), call.text(1)?.as_bytes());
    let window = window(call, s.len())?;
    Ok(match part {
        [] => Some(window.0 as i64),
        _ => matches(s, part, window).next().map(|i| i as i64),
    })
}

fn rfind(call: &Call<'_>) -> Result<Option<i64>, OpError> {
    let (s, part) = (call.text(0)?.as_bytes(), call.text(1)?.as_bytes());
    let window = window(call, s.len())?;
    Ok(match part {
        [] => Some(window.0.max(window.1.min(s.len())) as i64),
        _ => matches(s, part, window).next_back().map(|i| i as i64),
    })
}

/// Counts occurrences that do not overlap. As in Python, an empty string occurs between all characters; PyTorch does not terminate there.
pub(super) fn count(call: &Call<'_>) -> Result<Results, OpError> {
    let (s, part) = (call.text(0)?.as_bytes(), call.text(1)?.as_bytes());
    let (start, end) = window(call, s.len())?;
    if start > end.min(s.len()) {
        return one(0i64);
    }
    if part.is_empty() {
        return one((end.min(s.len()) - start + 1) as i64);
    }
    let mut free = start;
    let mut n = 0i64;
    for at in matches(s, part, (start, end)) {
        if at >= free {
            free = at + part.len();
            n += 1;
        }
    }
    one(n)
}

fn partition(call: &Call<'_>, found: Option<(&str, &str)>, from_end: bool) -> Result<Results, OpError> {
    let whole = call.text(0)?;
    let parts = match (found, from_end) {
        (Some((a, b)), _) => [a, call.text(1)?, b],
        (None, false) => [whole, "", ""],
        (None, true) => ["", "", whole],
    };
    Ok(parts.iter().map(Value::str).collect())
}

/// Returns the number of padding bytes for a width, and the width. It is limited to 2^24 bytes, so that a huge width
/// cannot exhaust memory.
fn missing(call: &Call<'_>, s: &str) -> Result<(usize, usize), OpError> {
    let width = call.int(1)?.clamp(0, 1 << 24) as usize;
    Ok((width.saturating_sub(s.len()), width))
}

fn pad(call: &Call<'_>, before: fn(usize, usize) -> usize) -> Result<Results, OpError> {
    let (s, fill) = (call.text(0)?, call.text(2)?);
    if fill.len() != 1 {
        return Err(OpError::raised(
            "TypeError: The fill character must be exactly one character long",
        ));
    }
    let (n, width) = missing(call, s)?;
    let left = before(n, width);
    one(Value::str(format!("{}{s}{}", fill.repeat(left), fill.repeat(n - left))))
}

fn zero_fill(call: &Call<'_>) -> Result<Results, OpError> {
    let s = call.text(0)?;
    let (n, _) = missing(call, s)?;
    let (sign, digits) = s.split_at(usize::from(s.starts_with(['+', '-'])));
    one(Value::str(format!("{sign}{}{digits}", "0".repeat(n))))
}

/// Implements `expandtabs`: tabs are filled up to the next multiple of the size in their line.
fn expand_tabs(call: &Call<'_>) -> Result<Results, OpError> {
    let size = call.int(1)?.clamp(0, 1 << 16) as usize;
    let mut out = String::new();
    let mut column = 0usize;
    for c in call.text(0)?.chars() {
        match c {
            '\t' => {
                let spaces = column.checked_rem(size).map_or(0, |past| size - past);
                out.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            c => {
                out.push(c);
                column = if matches!(c, '\n' | '\r') {
                    0
                } else {
                    column + c.len_utf8()
                };
            }
        }
    }
    one(Value::str(out))
}

fn all(call: &Call<'_>, test: fn(u8) -> bool) -> Result<Results, OpError> {
    let s = call.text(0)?;
    one(!s.is_empty() && s.bytes().all(test))
}

/// Implements `islower` and `isupper`: true if the string has letters, and none of the other case.
fn cased(call: &Call<'_>, other: fn(u8) -> bool) -> Result<Results, OpError> {
    let s = call.text(0)?;
    one(s.bytes().any(|b| b.is_ascii_alphabetic()) && !s.bytes().any(other))
}
