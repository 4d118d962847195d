//! String formatting: `str`, `repr`, format specifications, `%`. `None` means that only Python can compute the result.

use super::value::{Py, dtype_of};

/// Maximum nesting of lists that can be formatted.
const MAX_NESTING: usize = 64;

/// Returns the text of a float as Python's `repr` does.
pub(super) fn float_text(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x < 0.0 { "-inf" } else { "inf" }.into();
    }
    // The shortest digits that give the number back.
    let text = format!("{x:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{x}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn quoted(text: &str) -> Option<String> {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            c if c.is_alphanumeric() => out.push(c),
            _ => return None,
        }
    }
    out.push(quote);
    Some(out)
}

impl Py {
    /// Returns `str(value)`.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Py::Str(s) => Some(s.to_string()),
            Py::Device(device) => Some(device.to_string()),
            other => other.repr_at(0),
        }
    }

    /// Returns `repr(value)`.
    pub(super) fn repr(&self) -> Option<String> {
        self.repr_at(0)
    }

    fn repr_at(&self, depth: usize) -> Option<String> {
        if depth > MAX_NESTING || !self.is_small() {
            return None;
        }
        let all = |items: &[Py]| -> Option<Vec<String>> { items.iter().map(|item| item.repr_at(depth + 1)).collect() };
        Some(match self {
            Py::None => "None".into(),
            Py::Bool(b) => if *b { "True" } else { "False" }.into(),
            Py::Int(i) => i.to_string(),
            Py::Float(f) => float_text(*f),
            Py::Complex(number) => super::complex::text(*number),
            Py::Named(named) => named.text(&all(&named.items)?),
            Py::Str(s) => quoted(s)?,
            Py::List(items) => format!("[{}]", all(&items.borrow())?.join(", ")),
            Py::Size(items) => format!("torch.Size([{}])", all(items)?.join(", ")),
            Py::Tuple(items) => match all(items)?.as_slice() {
                [one] => format!("({one},)"),
                many => format!("({})", many.join(", ")),
            },
            Py::Dict(items) => {
                let pair = |(key, value): &(Py, Py)| {
                    Some(format!("{}: {}", key.repr_at(depth + 1)?, value.repr_at(depth + 1)?))
                };
                let pairs: Vec<String> = items.borrow().iter().map(pair).collect::<Option<_>>()?;
                format!("{{{}}}", pairs.join(", "))
            }
            Py::Path(_) => dtype_of(self)?.to_string(),
            _ => return None,
        })
    }

    /// Returns `format(value, spec)`.
    pub(super) fn formatted(&self, spec: &str) -> Option<String> {
        if spec.is_empty() {
            return self.text();
        }
        Spec::parse(spec)?.apply(self)
    }
}

/// A format specification: `[[fill]align][sign][0][width][,][.precision][type]`.
struct Spec {
    fill: char,
    align: Option<char>,
    sign: char,
    width: usize,
    commas: bool,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn parse(text: &str) -> Option<Spec> {
        let chars: Vec<char> = text.chars().collect();
        let is_align = |c: Option<&char>| c.is_some_and(|c| matches!(c, '<' | '>' | '^' | '='));
        let (mut at, mut fill, mut align) = (0, ' ', None);
        if is_align(chars.get(1)) {
            (fill, align, at) = (*chars.first()?, chars.get(1).copied(), 2);
        } else if is_align(chars.first()) {
            (align, at) = (chars.first().copied(), 1);
        }
        let mut sign = '-';
        if let Some(&c @ ('+' | '-' | ' ')) = chars.get(at) {
            (sign, at) = (c, at + 1);
        }
        if chars.get(at) == Some(&'0') {
            at += 1;
            if align.is_none() {
                (fill, align) = ('0', Some('='));
            }
        }
        let digits = |at: &mut usize| {
            let start = *at;
            while chars.get(*at).is_some_and(char::is_ascii_digit) {
                *at += 1;
            }
            let text: String = chars.get(start..*at)?.iter().collect();
            text.parse::<usize>().ok().filter(|&n| n <= 1000)
        };
        let width = if chars.get(at).is_some_and(char::is_ascii_digit) {
            digits(&mut at)?
        } else {
            0
        };
        let commas = chars.get(at) == Some(&',');
        at += usize::from(commas);
        let mut precision = None;
        if chars.get(at) == Some(&'.') {
            at += 1;
            precision = Some(digits(&mut at)?);
        }
        let kind = chars.get(at).copied();
        (at + usize::from(kind.is_some()) == chars.len()).then_some(Spec {
            fill,
            align,
            sign,
            width,
            commas,
            precision,
            kind,
        })
    }

    fn apply(&self, value: &Py) -> Option<String> {
        let (negative, digits) = match (value, self.kind) {
            (Py::Str(text), None | Some('s')) if self.align != Some('=') && self.sign == '-' && !self.commas => {
                let kept: String = text.chars().take(self.precision.unwrap_or(usize::MAX)).collect();
                return Some(self.padded("", &kept, '<'));
            }
            (Py::Int(i), None | Some('d')) if self.precision.is_none() => (*i < 0, i.unsigned_abs().to_string()),
            (Py::Int(i), Some('x')) if self.precision.is_none() => (*i < 0, format!("{:x}", i.unsigned_abs())),
            (Py::Int(i), Some('b')) if self.precision.is_none() => (*i < 0, format!("{:b}", i.unsigned_abs())),
            (Py::Int(_) | Py::Float(_), Some('f' | 'F' | '%' | 'e')) => {
                let x = value.as_f64().filter(|x| x.is_finite())?;
                let precision = self.precision.unwrap_or(6);
                let text = match self.kind {
                    Some('%') => format!("{:.precision$}%", x.abs() * 100.0),
                    Some('e') => {
                        let text = format!("{:.precision$e}", x.abs());
                        let (mantissa, exponent) = text.split_once('e')?;
                        let exponent: i32 = exponent.parse().ok()?;
                        let sign = if exponent < 0 { '-' } else { '+' };
                        format!("{mantissa}e{sign}{:02}", exponent.abs())
                    }
                    _ => format!("{:.precision$}", x.abs()),
                };
                (x.is_sign_negative(), text)
            }
            (Py::Float(x), None) if self.precision.is_none() && x.is_finite() => {
                (x.is_sign_negative(), float_text(x.abs()))
            }
            _ => return None,
        };
        let digits = if self.commas { with_commas(&digits)? } else { digits };
        let sign = match (negative, self.sign) {
            (true, _) => "-",
            (false, '+') => "+",
            (false, ' ') => " ",
            _ => "",
        };
        if self.commas && self.fill == '0' && self.align == Some('=') {
            return None;
        }
        Some(self.padded(sign, &digits, '>'))
    }

    fn padded(&self, sign: &str, text: &str, default: char) -> String {
        let missing = self.width.saturating_sub(sign.chars().count() + text.chars().count());
        let fill = |n: usize| self.fill.to_string().repeat(n);
        match self.align.unwrap_or(default) {
            '<' => format!("{sign}{text}{}", fill(missing)),
            '^' => format!("{}{sign}{text}{}", fill(missing / 2), fill(missing - missing / 2)),
            '=' => format!("{sign}{}{text}", fill(missing)),
            _ => format!("{}{sign}{text}", fill(missing)),
        }
    }
}

fn with_commas(digits: &str) -> Option<String> {
    let (whole, rest) = digits.split_at(digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()));
    let mut out = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    (!rest.contains('e')).then(|| out + rest)
}

/// Returns `text.format(*positional, **keywords)`.
pub(super) fn format_fields(text: &str, positional: &[Py], keywords: &[(String, Py)]) -> Option<String> {
    let (mut out, mut next) = (String::new(), 0);
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(rest.get(..at)?);
        let tail = rest.get(at..)?;
        if let Some(after) = tail.strip_prefix("{{").or_else(|| tail.strip_prefix("}}")) {
            out.push_str(tail.get(..1)?);
            rest = after;
            continue;
        }
        let (field, after) = tail.strip_prefix('{')?.split_once('}')?;
        let (field, spec) = field.split_once(':').unwrap_or((field, ""));
        let (name, conversion) = field.split_once('!').unwrap_or((field, ""));
        // A specification that has fields of its own.
        if spec.contains('{') {
            return None;
        }
        let value = match name.parse::<usize>() {
            Ok(number) => positional.get(number)?,
            Err(_) if name.is_empty() => {
                next += 1;
                positional.get(next - 1)?
            }
            Err(_) => &keywords.iter().find(|(keyword, _)| keyword == name)?.1,
        };
        out.push_str(&converted(value, conversion)?.formatted(spec)?);
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// Returns the result of the conversion `!r` or `!s` of a replacement field.
pub(super) fn converted(value: &Py, conversion: &str) -> Option<Py> {
    Some(match conversion {
        "" => value.clone(),
        "s" => Py::str(value.text()?),
        "r" => Py::str(value.repr()?),
        _ => return None,
    })
}

/// Returns `text % values`.
pub(super) fn percent(text: &str, values: &Py) -> Option<String> {
    let values = match values {
        Py::Tuple(items) => items.to_vec(),
        Py::Dict(_) => return None,
        one => vec![one.clone()],
    };
    let mut values = values.into_iter();
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic() || c == '%')?;
        let (flags, kind) = (after.get(..end)?, after.get(end..=end)?);
        rest = after.get(end + 1..)?;
        if kind == "%" {
            flags.is_empty().then(|| out.push('%'))?;
            continue;
        }
        if !flags.chars().all(|c| c.is_ascii_digit() || c == '.') {
            return None;
        }
        let value = values.next()?;
        // Unlike `format`, `%` aligns text on the right by default.
        let piece = match kind {
            "s" | "r" if !flags.starts_with('0') => {
                let value = converted(&value, kind)?;
                let width = if flags.is_empty() {
                    String::new()
                } else {
                    format!(">{flags}")
                };
                value.formatted(&width)?
            }
            "d" | "i" => {
                let value = match value {
                    Py::Bool(b) => Py::Int(i64::from(b)),
                    Py::Float(_) => return None,
                    other => other,
                };
                value.formatted(&format!("{flags}d"))?
            }
            "f" | "e" | "x" => value.formatted(&format!("{flags}{kind}"))?,
            _ => return None,
        };
        out.push_str(&piece);
    }
    out.push_str(rest);
    values.next().is_none().then_some(out)
}
