//! Values as Python prints them.

use crate::value::Value;
use frazil_ir::Context;
use std::fmt::Write;

/// `str(value)`: strings without quotes.
pub fn str_of(ctx: &Context, value: &Value) -> String {
    match value {
        Value::Str(s) => s.to_string(),
        other => repr_of(ctx, other),
    }
}

/// `repr(value)`
pub fn repr_of(ctx: &Context, value: &Value) -> String {
    let mut out = String::new();
    write_repr(ctx, value, &mut out);
    out
}

fn write_repr(ctx: &Context, value: &Value, out: &mut String) {
    match value {
        Value::None => out.push_str("None"),
        Value::Bool(b) => out.push_str(if *b { "True" } else { "False" }),
        Value::Int(i) => out.push_str(&i.to_string()),
        Value::Float(f) => out.push_str(&float_repr(*f)),
        Value::Complex(c) => {
            let (re, im) = (float_repr(c.re), float_repr(c.im.abs()));
            let sign = if c.im.is_sign_negative() { '-' } else { '+' };
            out.push_str(&format!("({re}{sign}{im}j)"));
        }
        Value::Str(s) => out.push_str(&quoted(s)),
        Value::Device(d) => out.push_str(&d.to_string()),
        Value::Tensor(t) => out.push_str(&format!("{:?}", t.get())),
        Value::List(l) => sequence(ctx, &l.items(), ("[", "]"), out),
        Value::Tuple(t) if t.items.len() == 1 => sequence(ctx, &t.items, ("(", ",)"), out),
        Value::Tuple(t) => sequence(ctx, &t.items, ("(", ")"), out),
        Value::Dict(d) => {
            out.push('{');
            let entries = d.with(|e| e.iter().map(|(k, v)| (k.0.clone(), v.clone())).collect::<Vec<_>>());
            for (i, (k, v)) in entries.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_repr(ctx, k, out);
                out.push_str(": ");
                write_repr(ctx, v, out);
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
        if i > 0 {
            out.push_str(", ");
        }
        write_repr(ctx, item, out);
    }
    out.push_str(close);
}

fn quoted(s: &str) -> String {
    let quote = if s.contains('\'') && !s.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for c in s.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// `repr(float)`: the shortest digits that give the number back, with Python's choice of notation.
pub fn float_repr(f: f64) -> String {
    if f.is_nan() {
        return "nan".to_string();
    }
    if f.is_infinite() {
        return if f > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let magnitude = f.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{f:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let text = format!("{f}");
    if text.contains('.') { text } else { format!("{text}.0") }
}

#[cfg(test)]
mod tests {
    use super::float_repr;

    #[test]
    fn floats_print_as_python_prints_them() {
        for (f, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(float_repr(f), text);
        }
    }
}
