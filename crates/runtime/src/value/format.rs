//! The text of values in TorchScript's `str`, `format` and `print`, as in the C++ runtime. Containers are written as in Python, but strings in them have no
//! quotes. Floats have 17 digits and a bare point (`1.`, `0.10000000000000001`).

use crate::value::Value;
use frazil_ir::Context;
use frazil_ir::nesting::with_stack;
use std::fmt::Write;

/// Returns `str(value)`, as TorchScript formats it.
pub fn str_of(ctx: &Context, value: &Value) -> String {
    let mut out = String::new();
    write_value(ctx, value, &mut out);
    out
}

fn write_value(ctx: &Context, value: &Value, out: &mut String) {
    match value {
        Value::None => out.push_str("None"),
        Value::Bool(b) => out.push_str(if *b { "True" } else { "False" }),
        Value::Int(i) => out.push_str(&i.to_string()),
        Value::Float(f) => out.push_str(&float_text(*f)),
        Value::Complex(c) => {
            let sign = if c.im.is_sign_negative() { '-' } else { '+' };
            let _ = write!(out, "{}{sign}{}j", float_text(c.re), float_text(c.im.abs()));
        }
        Value::Str(s) => out.push_str(s),
        Value::Device(d) => out.push_str(&d.to_string()),
        Value::Tensor(t) => {
            let _ = write!(out, "{:?}", t.get());
        }
        Value::List(l) => sequence(ctx, &l.items(), ("[", "]"), out),
        Value::Tuple(t) if t.items.len() == 1 => sequence(ctx, &t.items, ("(", ",)"), out),
        Value::Tuple(t) => sequence(ctx, &t.items, ("(", ")"), out),
        Value::Dict(d) => {
            let entries = d.with(|e| e.iter().map(|(k, v)| (k.0.clone(), v.clone())).collect::<Vec<_>>());
            out.push('{');
            for (i, (k, v)) in entries.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                with_stack(|| write_value(ctx, k, out));
                out.push_str(": ");
                with_stack(|| write_value(ctx, v, out));
            }
            out.push('}');
        }
        Value::Object(o) => {
            let _ = write!(out, "<{} object>", ctx.name(o.class()));
        }
        Value::Enum(e) => {
            let class = ctx.name(e.class).rsplit('.').next().unwrap_or_default();
            let _ = write!(out, "{class}.{}", e.name);
        }
        Value::Future(_) => out.push_str("Future()"),
        Value::Function(name) => out.push_str(ctx.name(*name)),
    }
}

fn sequence(ctx: &Context, items: &[Value], (open, close): (&str, &str), out: &mut String) {
    out.push_str(open);
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        with_stack(|| write_value(ctx, item, out));
    }
    out.push_str(close);
}

/// Returns a float as TorchScript's `str` formats it.
pub fn float_text(f: f64) -> String {
    // Whole numbers that an `int` can hold have all their digits; -0.0 loses its sign.
    let whole = f as i64;
    if f.is_finite() && whole as f64 == f && whole != i64::MAX {
        return format!("{whole}.");
    }
    general(f, 17)
}

/// Returns the text of C's `%.Ng`: at most `digits` significant digits without trailing zeros, with an exponent if that
/// is shorter.
pub fn general(f: f64, digits: usize) -> String {
    if !f.is_finite() {
        return non_finite(f);
    }
    let precision = digits.max(1) - 1;
    let scientific = format!("{f:.precision$e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |s: &str| match s.contains('.') {
        true => s.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => s.to_string(),
    };
    if exponent < -4 || exponent >= digits.max(1) as i32 {
        return format!("{}{}", trimmed(mantissa), exponent_text(exponent));
    }
    let decimals = usize::try_from(precision as i32 - exponent).unwrap_or(0);
    trimmed(&format!("{f:.decimals$}"))
}

/// Returns the text of C's `%.Ne`: one digit, `decimals` decimals, an exponent of at least two digits.
pub fn exponential(f: f64, decimals: usize) -> String {
    if !f.is_finite() {
        return non_finite(f);
    }
    let text = format!("{f:.decimals$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{mantissa}{}", exponent_text(exponent.parse().unwrap_or(0)))
}

/// Returns `n` as text: its sign, then the digits that `digits` returns for its magnitude.
pub fn sign_and_digits(n: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if n < 0 { "-" } else { "" };
    format!("{sign}{}", digits(n.unsigned_abs()))
}

fn exponent_text(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.abs())
}

fn non_finite(f: f64) -> String {
    let text = if f.is_nan() {
        "nan"
    } else if f > 0.0 {
        "inf"
    } else {
        "-inf"
    };
    text.to_string()
}

#[cfg(test)]
mod tests {
    use super::{exponential, float_text, general};

    /// The expected texts are those of `str(x)` in `torch.jit`.
    #[test]
    fn floats_are_written_as_torchscript_writes_them() {
        for (f, text) in [
            (1.0, "1."),
            (-0.0, "0."),
            (0.1, "0.10000000000000001"),
            (1e18, "1000000000000000000."),
            (1e19, "1e+19"),
            (9_223_372_036_854_775_807.0, "9.2233720368547758e+18"),
            (1e-5, "1.0000000000000001e-05"),
            (-3.7, "-3.7000000000000002"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(float_text(f), text);
        }
        assert_eq!(general(0.0001, 6), "0.0001");
        assert_eq!(general(1e6, 6), "1e+06");
        assert_eq!(exponential(12345.678, 6), "1.234568e+04");
    }
}
