//! Expressions with a purely syntactic meaning: dotted names and literals.

use frazil_ir::Constant;
use num_complex::Complex64;
use ruff_python_ast::{Expr, Number, Operator, UnaryOp};

/// Returns `a.b.c` as text; `None` for other expressions.
pub(crate) fn dotted(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Name(name) => Some(name.id.to_string()),
        Expr::Attribute(attribute) => {
            let mut text = dotted(&attribute.value)?;
            text.push('.');
            text.push_str(&attribute.attr.id);
            Some(text)
        }
        _ => None,
    }
}

/// Returns the value of a number literal, if it fits 64 bits.
pub(crate) fn number(number: &Number) -> Option<Constant> {
    Some(match number {
        Number::Int(int) => Constant::Int(int.as_i64()?),
        Number::Float(float) => Constant::Float(*float),
        Number::Complex { real, imag } => Constant::Complex(Complex64::new(*real, *imag)),
    })
}

/// Returns the value of a complex number such as `1.5-2.j`, which is written as a sum.
pub(crate) fn complex_sum(expr: &Expr) -> Option<Complex64> {
    let Expr::BinOp(sum) = expr else { return None };
    let (negative, real) = match &*sum.left {
        Expr::UnaryOp(op) if op.op == UnaryOp::USub => (true, &*op.operand),
        other => (false, other),
    };
    let real = match real {
        Expr::NumberLiteral(literal) => match number(&literal.value)? {
            Constant::Float(value) => value,
            Constant::Int(value) => value as f64,
            _ => return None,
        },
        Expr::Name(name) => match name.id.as_str() {
            "inf" => f64::INFINITY,
            "nan" => f64::NAN,
            _ => return None,
        },
        _ => return None,
    };
    let imaginary = match &*sum.right {
        Expr::NumberLiteral(literal) => match literal.value {
            Number::Complex { imag, .. } => imag,
            _ => return None,
        },
        Expr::Name(name) => match name.id.as_str() {
            "infj" => f64::INFINITY,
            "nanj" => f64::NAN,
            _ => return None,
        },
        _ => return None,
    };
    let real = if negative { -real } else { real };
    match sum.op {
        Operator::Add => Some(Complex64::new(real, imaginary)),
        Operator::Sub => Some(Complex64::new(real, -imaginary)),
        _ => None,
    }
}

/// Returns the text of a string literal.
///
/// PyTorch's printer writes each byte of a non-ASCII character as an octal escape. Python would read each escape as a character.
pub(crate) fn string_value(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_else(|| text.to_owned())
}
