//! Strings.

use super::lists::slice_indices;
use frazil_ir::types;
use frazil_runtime::format::{repr_of, str_of};
use frazil_runtime::op::{Call, KernelFn, OpError, Results, one};
use frazil_runtime::value::{ListValue, Value};

pub(super) const HOST: &[(&str, KernelFn)] = &[
    ("aten::format", format),
    ("aten::percentFormat", percent_format),
    ("aten::str", |c| one(Value::str(str_of(c.ctx, c.arg(0))))),
    ("aten::join", join),
    ("aten::split", split),
    ("aten::rsplit", rsplit),
    ("aten::splitlines", |c| one(strings(c.text(0)?.lines()))),
    ("aten::upper", |c| one(Value::str(c.text(0)?.to_uppercase()))),
    ("aten::lower", |c| one(Value::str(c.text(0)?.to_lowercase()))),
    ("aten::capitalize", capitalize),
    ("aten::title", title),
    ("aten::swapcase", swap_case),
    ("aten::strip", |c| trim(c, true, true)),
    ("aten::lstrip", |c| trim(c, true, false)),
    ("aten::rstrip", |c| trim(c, false, true)),
    ("aten::replace", replace),
    ("aten::startswith", |c| within(c, |s, p| s.starts_with(p))),
    ("aten::endswith", |c| within(c, |s, p| s.ends_with(p))),
    ("aten::find", |c| one(search(c, false)?)),
    ("aten::rfind", |c| one(search(c, true)?)),
    ("aten::rindex", |c| match search(c, true)? {
        -1 => Err(OpError::raised("ValueError: substring not found")),
        at => one(at),
    }),
    ("aten::partition", |c| {
        partition(c, c.text(0)?.split_once(c.text(1)?), false)
    }),
    ("aten::rpartition", |c| {
        partition(c, c.text(0)?.rsplit_once(c.text(1)?), true)
    }),
    ("aten::center", |c| pad(c, |n| (n / 2, n - n / 2))),
    ("aten::ljust", |c| pad(c, |n| (0, n))),
    ("aten::rjust", |c| pad(c, |n| (n, 0))),
    ("aten::zfill", zero_fill),
    ("aten::expandtabs", |c| {
        let tab = " ".repeat(c.int(1)?.clamp(0, 1 << 16) as usize);
        one(Value::str(c.text(0)?.replace('\t', &tab)))
    }),
    ("aten::isdigit", |c| all(c, |ch| ch.is_ascii_digit())),
    ("aten::isdecimal", |c| all(c, |ch| ch.is_ascii_digit())),
    ("aten::isnumeric", |c| all(c, char::is_numeric)),
    ("aten::isalpha", |c| all(c, char::is_alphabetic)),
    ("aten::isalnum", |c| all(c, char::is_alphanumeric)),
    ("aten::isspace", |c| all(c, char::is_whitespace)),
    ("aten::isprintable", |c| {
        one(c.text(0)?.chars().all(|ch| !ch.is_control()))
    }),
    ("aten::isidentifier", |c| {
        let s = c.text(0)?;
        let start = s.chars().next().is_some_and(|ch| ch.is_alphabetic() || ch == '_');
        one(start && s.chars().all(|ch| ch.is_alphanumeric() || ch == '_'))
    }),
    ("aten::isupper", |c| cased(c, char::is_uppercase, char::is_lowercase)),
    ("aten::islower", |c| cased(c, char::is_lowercase, char::is_uppercase)),
    ("aten::istitle", |c| {
        let s = c.text(0)?;
        one(s.chars().any(char::is_alphabetic) && titled(s) == s)
    }),
    ("aten::ord", |c| {
        match c.text(0)?.chars().collect::<Vec<_>>().as_slice() {
            [ch] => one(i64::from(u32::from(*ch))),
            more => Err(OpError::raised(format!(
                "string for ord() must be 1 character, got {} characters",
                more.len()
            ))),
        }
    }),
    ("aten::chr", |c| {
        let ch = u32::try_from(c.int(0)?).ok().and_then(char::from_u32);
        one(Value::str(
            ch.ok_or_else(|| OpError::raised("chr() arg not in range(256)"))?
                .to_string(),
        ))
    }),
    ("aten::hex", |c| {
        one(Value::str(signed(c.int(0)?, |n| format!("0x{n:x}"))))
    }),
    ("aten::oct", |c| {
        one(Value::str(signed(c.int(0)?, |n| format!("0o{n:o}"))))
    }),
    ("aten::bin", |c| {
        one(Value::str(signed(c.int(0)?, |n| format!("0b{n:b}"))))
    }),
];

fn strings<'a>(items: impl IntoIterator<Item = &'a str>) -> Value {
    Value::List(ListValue::new(types::STR, items.into_iter().map(Value::str).collect()))
}

fn signed(n: i64, f: impl Fn(u64) -> String) -> String {
    let digits = f(n.unsigned_abs());
    if n < 0 { format!("-{digits}") } else { digits }
}

/// `"{} and {}".format(a, b)`: as in TorchScript, only plain `{}`.
fn format(call: &Call<'_>) -> Result<Results, OpError> {
    let mut parts = call.text(0)?.split("{}");
    let mut out = parts.next().unwrap_or_default().to_string();
    let mut used = 1;
    for part in parts {
        match call.args.get(used) {
            Some(v) => out.push_str(&str_of(call.ctx, v)),
            None => {
                return Err(OpError::raised(format!(
                    "Too few arguments for format string: {}",
                    call.text(0)?
                )));
            }
        }
        used += 1;
        out.push_str(part);
    }
    one(Value::str(out))
}

/// `"%d of %s" % (a, b)`
fn percent_format(call: &Call<'_>) -> Result<Results, OpError> {
    let values: Vec<Value> = match call.args.get(1) {
        Some(Value::Tuple(t)) => t.items.to_vec(),
        _ => call.args[1..].to_vec(),
    };
    let mut values = values.iter();
    let mut out = String::new();
    let mut characters = call.text(0)?.chars();
    while let Some(c) = characters.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let kind = characters
            .next()
            .ok_or_else(|| OpError::raised("Incomplete format specifier"))?;
        if kind == '%' {
            out.push('%');
            continue;
        }
        let value = values
            .next()
            .ok_or_else(|| OpError::raised("Too few arguments for format string"))?;
        let number = || {
            value
                .as_scalar()
                .ok_or_else(|| OpError::raised(format!("%{kind} requires a number for formatting")))
        };
        match kind {
            's' => out.push_str(&str_of(call.ctx, value)),
            'r' => out.push_str(&repr_of(call.ctx, value)),
            'd' | 'i' => out.push_str(&number()?.as_i64().to_string()),
            'f' | 'F' => out.push_str(&format!("{:.6}", number()?.as_f64())),
            'e' | 'E' => {
                let text = format!("{:.6e}", number()?.as_f64());
                let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let exponent: i32 = exponent.parse().unwrap_or(0);
                let sign = if exponent < 0 { '-' } else { '+' };
                let text = format!("{digits}e{sign}{:02}", exponent.abs());
                out.push_str(&if kind == 'E' { text.to_uppercase() } else { text });
            }
            'g' | 'G' => out.push_str(&number()?.as_f64().to_string()),
            'x' => out.push_str(&signed(number()?.as_i64(), |n| format!("{n:x}"))),
            'c' => match value {
                Value::Int(i) => out.extend(u32::try_from(*i).ok().and_then(char::from_u32)),
                other => out.push_str(&str_of(call.ctx, other)),
            },
            other => {
                return Err(OpError::raised(format!(
                    "The specifier %{other} is not supported in TorchScript format strings"
                )));
            }
        }
    }
    match values.next() {
        Some(_) => Err(OpError::raised("Too many arguments for format string")),
        None => one(Value::str(out)),
    }
}

fn join(call: &Call<'_>) -> Result<Results, OpError> {
    let items = call.list(1)?.items();
    let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
    one(Value::str(words.join(call.text(0)?)))
}

/// `split(sep=None, max=-1)`
fn split(call: &Call<'_>) -> Result<Results, OpError> {
    let (s, max) = (call.text(0)?, call.int(2)?);
    let limit = usize::try_from(max).map_or(usize::MAX, |m| m.saturating_add(1));
    match call.arg(1) {
        Value::None => {
            if max < 0 {
                return one(strings(s.split_whitespace()));
            }
            let mut rest = s.trim_start();
            let mut out = Vec::new();
            while !rest.is_empty() {
                if out.len() + 1 == limit {
                    out.push(rest.trim_end());
                    break;
                }
                let (word, more) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                out.push(word);
                rest = more.trim_start();
            }
            one(strings(out))
        }
        _ => match call.text(1)? {
            "" => Err(OpError::raised("empty separator")),
            separator => one(strings(s.splitn(limit, separator))),
        },
    }
}

fn rsplit(call: &Call<'_>) -> Result<Results, OpError> {
    let (s, separator, max) = (call.text(0)?, call.text(1)?, call.int(2)?);
    if separator.is_empty() {
        return Err(OpError::raised("empty separator"));
    }
    let limit = usize::try_from(max).map_or(usize::MAX, |m| m.saturating_add(1));
    let mut parts: Vec<&str> = s.rsplitn(limit, separator).collect();
    parts.reverse();
    one(strings(parts))
}

fn capitalize(call: &Call<'_>) -> Result<Results, OpError> {
    let mut characters = call.text(0)?.chars();
    let first: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
    one(Value::str(first + &characters.as_str().to_lowercase()))
}

fn titled(s: &str) -> String {
    let mut inside = false;
    let mut out = String::new();
    for c in s.chars() {
        if c.is_alphabetic() {
            if inside {
                out.extend(c.to_lowercase())
            } else {
                out.extend(c.to_uppercase())
            }
        } else {
            out.push(c);
        }
        inside = c.is_alphabetic();
    }
    out
}

fn title(call: &Call<'_>) -> Result<Results, OpError> {
    one(Value::str(titled(call.text(0)?)))
}

fn swap_case(call: &Call<'_>) -> Result<Results, OpError> {
    let swap = |c: char| -> String {
        if c.is_uppercase() {
            c.to_lowercase().collect()
        } else {
            c.to_uppercase().collect()
        }
    };
    one(Value::str(call.text(0)?.chars().map(swap).collect::<String>()))
}

fn trim(call: &Call<'_>, start: bool, end: bool) -> Result<Results, OpError> {
    let set = call.text(1)?;
    let inside = |c: char| set.contains(c);
    let s = call.text(0)?;
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

/// The characters between the positions that arguments `first` and `first + 1` give.
fn window(call: &Call<'_>, first: usize) -> Result<(usize, String), OpError> {
    let characters: Vec<char> = call.text(0)?.chars().collect();
    let chosen = slice_indices(call.opt_int(first)?, call.opt_int(first + 1)?, 1, characters.len())?;
    Ok((
        chosen.first().copied().unwrap_or(0),
        chosen.iter().filter_map(|&i| characters.get(i)).collect(),
    ))
}

fn within(call: &Call<'_>, test: fn(&str, &str) -> bool) -> Result<Results, OpError> {
    one(test(&window(call, 2)?.1, call.text(1)?))
}

fn search(call: &Call<'_>, from_end: bool) -> Result<i64, OpError> {
    let (start, text) = window(call, 2)?;
    let part = call.text(1)?;
    let at = if from_end { text.rfind(part) } else { text.find(part) };
    Ok(at.map_or(-1, |byte| (start + text[..byte].chars().count()) as i64))
}

pub(super) fn count(call: &Call<'_>, _text: &str) -> Result<Results, OpError> {
    let (_, text) = window(call, 2)?;
    let part = call.text(1)?;
    one(if part.is_empty() {
        text.chars().count() as i64 + 1
    } else {
        text.matches(part).count() as i64
    })
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

fn pad(call: &Call<'_>, sides: fn(usize) -> (usize, usize)) -> Result<Results, OpError> {
    let s = call.text(0)?;
    let fill = call.text(2)?;
    let missing = (call.int(1)?.clamp(0, 1 << 24) as usize).saturating_sub(s.chars().count());
    let (before, after) = sides(missing);
    one(Value::str(format!("{}{s}{}", fill.repeat(before), fill.repeat(after))))
}

fn zero_fill(call: &Call<'_>) -> Result<Results, OpError> {
    let s = call.text(0)?;
    let missing = (call.int(1)?.clamp(0, 1 << 24) as usize).saturating_sub(s.chars().count());
    let (sign, digits) = match s.chars().next() {
        Some('+' | '-') => s.split_at(1),
        _ => ("", s),
    };
    one(Value::str(format!("{sign}{}{digits}", "0".repeat(missing))))
}

fn all(call: &Call<'_>, test: fn(char) -> bool) -> Result<Results, OpError> {
    let s = call.text(0)?;
    one(!s.is_empty() && s.chars().all(test))
}

fn cased(call: &Call<'_>, wanted: fn(char) -> bool, other: fn(char) -> bool) -> Result<Results, OpError> {
    let s = call.text(0)?;
    one(s.chars().any(wanted) && !s.chars().any(other))
}
