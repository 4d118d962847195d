//! Python's `str.format` and `%` on strings.

use frazil_runtime::Scalar;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::format::{exponential, str_of};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::value::Value;

pub(super) const ENTRIES: &[Row] = &[
    ("aten::format", Entry::on_values(format)),
    ("aten::percentFormat", Entry::on_values(percent_format)),
];

/// Implements `"{} and {}".format(a, b)`. As in TorchScript, `{}` is the only replacement field.
fn format(call: &Call<'_>) -> Result<Results, OpError> {
    let template = call.text(0)?;
    let mut parts = template.split("{}");
    let mut out = parts.next().unwrap_or_default().to_string();
    let mut values = call.args.iter().skip(1);
    for part in parts {
        let value = values
            .next()
            .ok_or_else(|| OpError::raised(format!("Too few arguments for format string: {template}")))?;
        out.push_str(&str_of(call.ctx, value));
        out.push_str(part);
    }
    one(Value::str(out))
}

/// Implements `"%d of %s" % (a, b)`.
fn percent_format(call: &Call<'_>) -> Result<Results, OpError> {
    let values: Vec<Value> = match call.args.get(1) {
        Some(Value::Tuple(t)) => t.items.to_vec(),
        Some(value) => vec![value.clone()],
        None => Vec::new(),
    };
    let mut values = values.iter();
    let mut out = String::new();
    let mut characters = call.text(0)?.chars();
    while let Some(c) = characters.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let specifier = characters
            .next()
            .ok_or_else(|| OpError::raised("Incomplete format specifier"))?;
        if specifier == '%' {
            out.push('%');
            continue;
        }
        let value = values
            .next()
            .ok_or_else(|| OpError::raised("Too few arguments for format string"))?;
        out.push_str(&formatted(call, specifier, value)?);
    }
    match values.next() {
        Some(_) => Err(OpError::raised("Too many arguments for format string")),
        None => one(Value::str(out)),
    }
}

fn formatted(call: &Call<'_>, specifier: char, value: &Value) -> Result<String, OpError> {
    let number = || match value {
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => Ok(value.as_scalar().unwrap_or(Scalar::Int(0))),
        other => Err(OpError::raised(format!(
            "%{specifier} requires a number for formatting, but got {}",
            tag(other)
        ))),
    };
    // PyTorch formats fractions as `float` and truncates them to `int`, both with 32 bits.
    let fraction = || number().map(|n| f64::from(n.as_f64() as f32));
    Ok(match specifier {
        's' => str_of(call.ctx, value),
        'd' | 'i' => match number()? {
            Scalar::Float(f) if !(-2_147_483_649.0..2_147_483_648.0).contains(&f) || f.is_nan() => i32::MIN.to_string(),
            n => n.as_i64().to_string(),
        },
        'f' | 'F' => {
            let f = fraction()?;
            let text = if f.is_finite() {
                format!("{f:.6}")
            } else {
                f.to_string().to_lowercase()
            };
            if specifier == 'F' { text.to_uppercase() } else { text }
        }
        'e' => exponential(fraction()?, 6),
        'E' => exponential(fraction()?, 6).to_uppercase(),
        'c' => match value {
            Value::Int(i) => String::from(char::from((*i & 0x7f) as u8)),
            Value::Str(s) if s.len() == 1 => s.to_string(),
            other => {
                let tag = tag(other);
                return Err(OpError::raised(format!(
                    "%c requires an int or char for formatting, but got {tag}"
                )));
            }
        },
        other => {
            return Err(OpError::raised(format!(
                "The specifier %{other} is not supported in TorchScript format strings"
            )));
        }
    })
}

/// Returns PyTorch's name for the type tag of a value.
fn tag(value: &Value) -> &'static str {
    match value {
        Value::None => "None",
        Value::Bool(_) => "Bool",
        Value::Int(_) => "Int",
        Value::Float(_) => "Double",
        Value::Complex(_) => "ComplexDouble",
        Value::Str(_) => "String",
        Value::Device(_) => "Device",
        Value::Tensor(_) => "Tensor",
        Value::List(_) => "GenericList",
        Value::Tuple(_) => "Tuple",
        Value::Dict(_) => "GenericDict",
        Value::Object(_) => "Object",
        Value::Enum(_) => "Enum",
        Value::Future(_) => "Future",
        Value::Function(_) => "Function",
    }
}
