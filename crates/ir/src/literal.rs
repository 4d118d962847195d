//! Text of numbers and strings, as C++ streams and PyTorch print them.

use std::fmt::Write;

/// Appends an integer. Graphs contain so many integers that the overhead of `write!` is measurable.
pub fn integer(value: i64, out: &mut String) {
    if value < 0 {
        out.push('-');
    }
    let mut rest = value.unsigned_abs();
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    while let Some(slot) = at.checked_sub(1).and_then(|i| digits.get_mut(i)) {
        *slot = b'0' + (rest % 10) as u8;
        rest /= 10;
        at -= 1;
        if rest == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

/// Appends `value` as C's `%.{precision}g` does, the default format of a C++ stream.
pub fn general(value: f64, precision: usize, out: &mut String) {
    if let Some(word) = not_finite(value) {
        out.push_str(word);
        return;
    }
    let precision = precision.max(1);
    let scientific = format!("{value:.*e}", precision - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        out.push_str(without_zeros(digits));
        push_exponent(exponent, out);
    } else {
        let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
        out.push_str(without_zeros(&format!("{value:.decimals$}")));
    }
}

/// Appends `value` as C's `%.4e` does.
pub fn scientific4(value: f64, out: &mut String) {
    if let Some(word) = not_finite(value) {
        out.push_str(word);
        return;
    }
    let text = format!("{value:.4e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    out.push_str(digits);
    push_exponent(exponent.parse().unwrap_or(0), out);
}

/// Appends `value` as C's `%.4f` does.
pub fn fixed4(value: f64, out: &mut String) {
    match not_finite(value) {
        Some(word) => out.push_str(word),
        None => {
            let _ = write!(out, "{value:.4}");
        }
    }
}

/// Appends the scale of a printed tensor, a power of ten, without exponent if it has few digits.
pub fn scale(value: f64, out: &mut String) {
    let exponent = value.log10().round() as i32;
    if (-4..16).contains(&exponent) {
        let _ = write!(out, "{value}");
    } else {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        out.push_str(digits);
        push_exponent(exponent.parse().unwrap_or(0), out);
    }
}

/// Appends a double as PyTorch writes it in graphs and code: whole numbers end in a dot, other numbers have 17 digits.
pub fn double(value: f64, out: &mut String) {
    // Above this limit PyTorch omits the dot.
    const WHOLE: f64 = 1e10;
    if value.is_finite() && value.abs() < WHOLE && value.trunc() == value {
        let sign = if value == 0.0 && value.is_sign_negative() {
            "-"
        } else {
            ""
        };
        out.push_str(sign);
        integer(value as i64, out);
        out.push('.');
    } else if (1e-3..1e3).contains(&value.abs()) && (value * 1024.0).trunc() == value * 1024.0 {
        // It has fewer than 17 significant digits, so the shortest form is the exact one.
        let _ = write!(out, "{value}");
    } else {
        general(value, 17, out);
    }
}

/// Appends a complex number as PyTorch writes it in graphs and code. Real and imaginary part are written like doubles in a C++ stream, separated by the sign of
/// the imaginary part.
pub fn complex(re: f64, im: f64, out: &mut String) {
    part(re, out);
    // A negative zero loses its sign, and NaN gets one.
    out.push(if im >= 0.0 { '+' } else { '-' });
    part(im.abs(), out);
    out.push('j');
}

/// Appends a double as PyTorch's streams write it: like [`double`], but all whole numbers of up to 64 bits end in a dot, and zero has no sign.
fn part(value: f64, out: &mut String) {
    // The whole numbers of a 64-bit integer.
    const WHOLE: f64 = 9_223_372_036_854_775_808.0;
    if value.trunc() == value && (-WHOLE..WHOLE).contains(&value) {
        let _ = write!(out, "{}.", value as i64);
    } else {
        general(value, 17, out);
    }
}

/// Mask of the payload bits of a NaN.
const NAN_PAYLOAD: u64 = (1 << 52) - 1;
/// The payload bits of the default NaN, which arithmetic returns.
const PLAIN_NAN: u64 = 1 << 51;

/// Appends a double so that it is read back as the same double, and never as an integer. NaNs with an unusual payload are
/// written in C's notation: `nan(0x1)`.
pub fn exact_double(value: f64, out: &mut String) {
    if let Some(word) = not_finite(value) {
        out.push_str(word);
        let payload = value.to_bits() & NAN_PAYLOAD;
        if value.is_nan() && payload != PLAIN_NAN {
            let _ = write!(out, "({payload:#x})");
        }
        return;
    }
    let start = out.len();
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-5..1e16).contains(&magnitude) {
        let _ = write!(out, "{value:e}");
    } else {
        let _ = write!(out, "{value}");
        if !out[start..].contains('.') {
            out.push('.');
        }
    }
}

/// Returns the NaN for which [`exact_double`] writes `text`; `None` if `text` is not such a NaN.
pub fn nan(text: &str) -> Option<f64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (1 << 63, rest),
        None => (0, text.strip_prefix('+').unwrap_or(text)),
    };
    let payload = match rest.strip_prefix("nan")? {
        "" => PLAIN_NAN,
        rest => u64::from_str_radix(rest.strip_prefix("(0x")?.strip_suffix(')')?, 16).ok()?,
    };
    let bits = sign | f64::INFINITY.to_bits() | payload;
    (1..=NAN_PAYLOAD).contains(&payload).then(|| f64::from_bits(bits))
}

/// Appends a string in quotes, escaped as in PyTorch. `raw` keeps non-ASCII characters; PyTorch writes their bytes as octal numbers with
/// *negative* digits (its bytes are signed), which appear as the characters below `0`.
pub fn quoted(text: &str, raw: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '"' => out.push_str("\\\""),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            ' '..='~' => out.push(c),
            '\u{80}'.. if raw && !c.is_control() => out.push(c),
            _ => {
                let mut buffer = [0; 4];
                for &byte in c.encode_utf8(&mut buffer).as_bytes() {
                    octal(byte as i8, out);
                }
            }
        }
    }
    out.push('"');
}

fn octal(byte: i8, out: &mut String) {
    let mut rest = byte;
    let mut digits = [0; 3];
    for digit in digits.iter_mut().rev() {
        *digit = rest % 8;
        rest /= 8;
    }
    out.push('\\');
    out.extend(digits.iter().map(|d| (b'0' as i8 + d) as u8 as char));
}

fn not_finite(value: f64) -> Option<&'static str> {
    match (value.is_nan(), value.is_infinite(), value.is_sign_negative()) {
        (true, _, false) => Some("nan"),
        (true, _, true) => Some("-nan"),
        (_, true, false) => Some("inf"),
        (_, true, true) => Some("-inf"),
        _ => None,
    }
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

fn push_exponent(exponent: i32, out: &mut String) {
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(print: impl Fn(&mut String)) -> String {
        let mut out = String::new();
        print(&mut out);
        out
    }

    #[test]
    fn doubles_are_pytorchs() {
        for (value, text) in [
            (1.0, "1."),
            (-0.0, "-0."),
            (1e20, "1e+20"),
            (1e15, "1000000000000000"),
            (1e16, "10000000000000000"),
            (1e-5, "1.0000000000000001e-05"),
            (0.1, "0.10000000000000001"),
            (0.5, "0.5"),
            (-999.0009765625, "-999.0009765625"),
            (0.0009765625, "0.0009765625"),
            (0.001, "0.001"),
            (0.003, "0.0030000000000000001"),
            (123456789.0, "123456789."),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(shown(|o| double(value, o)), text);
        }
    }

    #[test]
    fn integers_have_their_digits() {
        for value in [0, 7, -10, 1234567890, i64::MAX, i64::MIN] {
            assert_eq!(shown(|o| integer(value, o)), value.to_string());
        }
    }

    #[test]
    fn streams_have_six_digits() {
        assert_eq!(shown(|o| general(1234567.0, 6, o)), "1.23457e+06");
        assert_eq!(shown(|o| general(1.0 / 3.0, 6, o)), "0.333333");
        assert_eq!(shown(|o| general(1e-7, 6, o)), "1e-07");
        assert_eq!(shown(|o| general(0.0, 6, o)), "0");
        assert_eq!(shown(|o| scale(1e6, o)), "1000000");
        assert_eq!(shown(|o| scale(1e-5, o)), "1e-05");
    }

    #[test]
    fn exact_doubles_read_back() {
        for value in [0.1, 1e300, -0.0, 5e-324, 1e15, 123456789.125] {
            let text = shown(|o| exact_double(value, o));
            assert!(text.contains(['.', 'e']), "{text}");
            assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()));
        }
    }
}
