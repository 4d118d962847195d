//! Python's arithmetic, comparisons and conversions on `int`, `float`, `complex` and `bool`, with the deviations of
//! TorchScript's runtime (divisions by zero, shifts).

use super::lists;
use super::math::rounded;
use frazil_ir::{DType, types};
use frazil_runtime::Scalar;
use frazil_runtime::entry::{Entry, NumberRead, NumberRule, Row, TensorVariant};
use frazil_runtime::number::NumberKind;
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::value::Value;
use num_complex::Complex64;
use std::cmp::Ordering;

/// Returns the tensor operator that computes an operator on numbers, which `rule` selects.
const fn by_tensors(operator: &'static str, overload: &'static str, rule: NumberRule) -> TensorVariant {
    TensorVariant {
        operator,
        overload,
        rule,
    }
}

/// Returns the behaviour of a conversion to numbers of kind `kind`.
const fn conversion(kind: NumberKind) -> NumberRead {
    NumberRead {
        kind: Some(kind),
        is_implicit: false,
        scalar_limit: None,
    }
}

/// The read for `int(x)`. Of a `Scalar` it is stricter than of a tensor, because it converts through 32 bits.
const INT: NumberRead = NumberRead {
    scalar_limit: Some(DType::Int),
    ..conversion(NumberKind::Int)
};
const FLOAT: NumberRead = conversion(NumberKind::Float);
const BOOL: NumberRead = conversion(NumberKind::Bool);

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::add",
        Entry::on_values(add)
            .tensor_variant(&by_tensors("aten::add", "Tensor", NumberRule::Arithmetic))
            .affine_in_integers(),
    ),
    (
        "aten::sub",
        Entry::on_values(|c| arithmetic(c, i64::wrapping_sub, |a, b| a - b, |a, b| a - b))
            .tensor_variant(&by_tensors("aten::sub", "Tensor", NumberRule::Arithmetic))
            .affine_in_integers(),
    ),
    (
        "aten::mul",
        Entry::on_values(mul)
            .tensor_variant(&by_tensors("aten::mul", "Tensor", NumberRule::Arithmetic))
            .affine_in_integers(),
    ),
    (
        "aten::div",
        Entry::on_values(div).tensor_variant(&by_tensors("aten::div", "Tensor", NumberRule::Quotient)),
    ),
    (
        "aten::floordiv",
        Entry::on_values(floordiv).tensor_variant(&by_tensors("aten::floor_divide", "", NumberRule::Integers)),
    ),
    (
        "aten::remainder",
        Entry::on_values(remainder).tensor_variant(&by_tensors("aten::remainder", "Tensor", NumberRule::Integers)),
    ),
    (
        "aten::__round_to_zero_floordiv",
        Entry::on_values(|c| one(nonzero(c)?.wrapping_div_of(c.int(0)?))),
    ),
    ("aten::divmod", Entry::on_values(divmod)),
    ("aten::pow", Entry::on_values(pow)),
    (
        "aten::neg",
        Entry::on_values(neg)
            .tensor_variant(&by_tensors("aten::neg", "", NumberRule::Arithmetic))
            .affine_in_integers(),
    ),
    ("aten::__and__", Entry::on_values(|c| bitwise(c, |a, b| a & b))),
    ("aten::__or__", Entry::on_values(|c| bitwise(c, |a, b| a | b))),
    ("aten::__xor__", Entry::on_values(|c| bitwise(c, |a, b| a ^ b))),
    // The processor's shifts: by the lowest six bits.
    (
        "aten::__lshift__",
        Entry::on_values(|c| one(c.int(0)?.wrapping_shl(c.int(1)? as u32))),
    ),
    (
        "aten::__rshift__",
        Entry::on_values(|c| one(c.int(0)?.wrapping_shr(c.int(1)? as u32))),
    ),
    (
        "aten::__not__",
        Entry::on_values(|c| one(!c.flag(0)?))
            .tensor_variant(&by_tensors("aten::logical_not", "", NumberRule::Logic))
            .total(),
    ),
    (
        "aten::eq",
        Entry::on_values(|c| one(c.arg(0).equals(c.arg(1)).unwrap_or(false))).tensor_variant(&by_tensors(
            "aten::eq",
            "Tensor",
            NumberRule::Comparison,
        )),
    ),
    (
        "aten::ne",
        Entry::on_values(|c| one(!c.arg(0).equals(c.arg(1)).unwrap_or(false))).tensor_variant(&by_tensors(
            "aten::ne",
            "Tensor",
            NumberRule::Comparison,
        )),
    ),
    (
        "aten::lt",
        Entry::on_values(|c| compare(c, |o| o == Ordering::Less)).tensor_variant(&by_tensors(
            "aten::lt",
            "Tensor",
            NumberRule::Comparison,
        )),
    ),
    (
        "aten::le",
        Entry::on_values(|c| compare(c, |o| o != Ordering::Greater)).tensor_variant(&by_tensors(
            "aten::le",
            "Tensor",
            NumberRule::Comparison,
        )),
    ),
    (
        "aten::gt",
        Entry::on_values(|c| compare(c, |o| o == Ordering::Greater)).tensor_variant(&by_tensors(
            "aten::gt",
            "Tensor",
            NumberRule::Comparison,
        )),
    ),
    (
        "aten::ge",
        Entry::on_values(|c| compare(c, |o| o != Ordering::Less)).tensor_variant(&by_tensors(
            "aten::ge",
            "Tensor",
            NumberRule::Comparison,
        )),
    ),
    ("aten::Int", Entry::on_values(int).reads_number(&INT)),
    ("aten::Float", Entry::on_values(float).reads_number(&FLOAT)),
    (
        "aten::Bool",
        Entry::on_values(|c| one(c.scalar(0)?.as_bool())).reads_number(&BOOL),
    ),
    ("aten::Complex", Entry::on_values(complex)),
    ("prim::abs", Entry::pointwise(crate::numbers::ABS).with_values(abs)),
    ("prim::min", Entry::on_values(|c| extreme(c, Ordering::Less))),
    ("prim::max", Entry::on_values(|c| extreme(c, Ordering::Greater))),
];

/// Converts the two operands to their common type and applies the function for that type.
fn arithmetic(
    call: &Call<'_>,
    int: fn(i64, i64) -> i64,
    float: fn(f64, f64) -> f64,
    complex: fn(Complex64, Complex64) -> Complex64,
) -> Result<Results, OpError> {
    match (call.scalar(0)?, call.scalar(1)?) {
        (a @ Scalar::Complex(_), b) | (a, b @ Scalar::Complex(_)) => {
            one(Value::Complex(complex(a.as_complex(), b.as_complex())))
        }
        (a @ Scalar::Float(_), b) | (a, b @ Scalar::Float(_)) => one(float(a.as_f64(), b.as_f64())),
        (a, b) => one(int(a.as_i64(), b.as_i64())),
    }
}

fn add(call: &Call<'_>) -> Result<Results, OpError> {
    match (call.arg(0), call.arg(1)) {
        (Value::Str(a), Value::Str(b)) => one(Value::str(format!("{a}{b}"))),
        (Value::List(_), Value::List(_)) => lists::concatenate(call),
        _ => arithmetic(call, i64::wrapping_add, |a, b| a + b, |a, b| a + b),
    }
}

fn mul(call: &Call<'_>) -> Result<Results, OpError> {
    match (call.arg(0), call.arg(1)) {
        (Value::List(l), Value::Int(n)) | (Value::Int(n), Value::List(l)) => lists::repeat(l, *n),
        _ => arithmetic(call, i64::wrapping_mul, |a, b| a * b, |a, b| a * b),
    }
}

/// Implements true division; division by zero returns infinities, as in C++.
fn div(call: &Call<'_>) -> Result<Results, OpError> {
    match (call.scalar(0)?, call.scalar(1)?) {
        (a @ Scalar::Complex(_), b) | (a, b @ Scalar::Complex(_)) => {
            one(Value::Complex(complex_quotient(a.as_complex(), b.as_complex())))
        }
        (a, b) => one(a.as_f64() / b.as_f64()),
    }
}

/// Returns the quotient with C's treatment of zeros and infinities, for which the plain formula returns NaN.
pub(super) fn complex_quotient(a: Complex64, b: Complex64) -> Complex64 {
    let q = a / b;
    if !(q.re.is_nan() && q.im.is_nan()) && b != Complex64::ZERO {
        return q;
    }
    let unit = |x: f64| if x.is_infinite() { 1f64 } else { 0f64 }.copysign(x);
    if b == Complex64::ZERO && !(a.re.is_nan() && a.im.is_nan()) {
        let huge = f64::INFINITY.copysign(b.re);
        Complex64::new(huge * a.re, huge * a.im)
    } else if (a.re.is_infinite() || a.im.is_infinite()) && b.re.is_finite() && b.im.is_finite() {
        let (x, y) = (unit(a.re), unit(a.im));
        let inf = f64::INFINITY;
        Complex64::new(inf * (x * b.re + y * b.im), inf * (y * b.re - x * b.im))
    } else if (b.re.is_infinite() || b.im.is_infinite()) && a.re.is_finite() && a.im.is_finite() {
        let (x, y) = (unit(b.re), unit(b.im));
        Complex64::new(0.0 * (a.re * x + a.im * y), 0.0 * (a.im * x - a.re * y))
    } else {
        q
    }
}

/// An integer divisor that is not zero.
struct Divisor(i64);

impl Divisor {
    fn wrapping_div_of(&self, a: i64) -> i64 {
        a.wrapping_div(self.0)
    }

    /// Returns Python's `//`, which rounds towards negative infinity.
    fn floor_div_of(&self, a: i64) -> i64 {
        let q = a.wrapping_div(self.0);
        let inexact = a.wrapping_rem(self.0) != 0;
        if inexact && (a < 0) != (self.0 < 0) { q - 1 } else { q }
    }

    /// Returns Python's `%`, with the divisor's sign.
    fn modulo_of(&self, a: i64) -> i64 {
        let r = a.wrapping_rem(self.0);
        if r != 0 && (r < 0) != (self.0 < 0) {
            r + self.0
        } else {
            r
        }
    }
}

fn nonzero(call: &Call<'_>) -> Result<Divisor, OpError> {
    match call.scalar(1)?.as_i64() {
        0 => Err(OpError::raised("ZeroDivisionError: integer division or modulo by zero")),
        n => Ok(Divisor(n)),
    }
}

fn any_float(call: &Call<'_>) -> Result<Option<(f64, f64)>, OpError> {
    Ok(match (call.scalar(0)?, call.scalar(1)?) {
        (a @ Scalar::Float(_), b) | (a, b @ Scalar::Float(_)) => Some((a.as_f64(), b.as_f64())),
        _ => None,
    })
}

fn floordiv(call: &Call<'_>) -> Result<Results, OpError> {
    match any_float(call)? {
        Some((a, b)) => one((a / b).floor()),
        None => match nonzero(call) {
            Ok(divisor) => one(divisor.floor_div_of(call.scalar(0)?.as_i64())),
            Err(_) => Err(OpError::raised("division by 0")),
        },
    }
}

fn remainder(call: &Call<'_>) -> Result<Results, OpError> {
    match any_float(call)? {
        // Not Python's formula: it loses digits for large divisors, and returns NaN for infinite ones.
        Some((a, b)) => one((a % b + b) % b),
        None => one(nonzero(call)?.modulo_of(call.scalar(0)?.as_i64())),
    }
}

fn divmod(call: &Call<'_>) -> Result<Results, OpError> {
    let Some((a, b)) = any_float(call)? else {
        let (divisor, a) = (nonzero(call)?, call.scalar(0)?.as_i64());
        return Ok(smallvec::smallvec![
            divisor.floor_div_of(a).into(),
            divisor.modulo_of(a).into()
        ]);
    };
    if b == 0.0 {
        return Err(OpError::raised("ZeroDivisionError: float divmod()"));
    }
    let truncated = a % b;
    let rest = match truncated != 0.0 && (truncated < 0.0) != (b < 0.0) {
        true => truncated + b,
        false => truncated,
    };
    // PyTorch's formula: unlike Python's, the quotient need not be whole, and is NaN if an infinite divisor has the other sign.
    Ok(smallvec::smallvec![((a - rest) / b).into(), rest.into()])
}

fn pow(call: &Call<'_>) -> Result<Results, OpError> {
    // `pow.int(int, int) -> float`; `pow.int_to_int` returns an integer.
    let to_int = call.schema.returns.first().is_some_and(|r| r.ty == types::INT);
    match (call.scalar(0)?, call.scalar(1)?) {
        (Scalar::Complex(a), Scalar::Complex(b)) => one(Value::Complex(a.powc(b))),
        (Scalar::Complex(a), b) => {
            let (b, log) = (b.as_f64(), a.ln());
            one(Value::Complex(Complex64::from_polar((b * log.re).exp(), b * log.im)))
        }
        (a, Scalar::Complex(b)) => {
            let a = a.as_f64();
            let power = if a > 0.0 {
                Complex64::from_polar(a.powf(b.re), b.im * a.ln())
            } else if a == 0.0 {
                Complex64::from(a).powc(b)
            } else {
                (b * Complex64::from(a).ln()).exp()
            };
            one(Value::Complex(power))
        }
        (a, b) if a.as_f64() == 0.0 && b.as_f64() < 0.0 => {
            Err(OpError::raised("0.0 cannot be raised to a negative power"))
        }
        (Scalar::Int(a), Scalar::Int(b)) if to_int => {
            one(u32::try_from(b).map_or_else(|_| to_integer((a as f64).powf(b as f64)), |b| a.wrapping_pow(b)))
        }
        (a, b) => one(a.as_f64().powf(b.as_f64())),
    }
}

fn neg(call: &Call<'_>) -> Result<Results, OpError> {
    one(match call.scalar(0)? {
        Scalar::Bool(b) => Value::Int(-i64::from(b)),
        Scalar::Int(i) => Value::Int(i.wrapping_neg()),
        Scalar::Float(f) => Value::Float(-f),
        Scalar::Complex(c) => Value::Complex(-c),
    })
}

fn bitwise(call: &Call<'_>, f: fn(i64, i64) -> i64) -> Result<Results, OpError> {
    match (call.scalar(0)?, call.scalar(1)?) {
        (Scalar::Bool(a), Scalar::Bool(b)) => one(f(i64::from(a), i64::from(b)) != 0),
        (a, b) => one(f(a.as_i64(), b.as_i64())),
    }
}

/// Compares numbers, strings, or lists element by element. `None` if they are unordered: NaN, complex numbers.
pub(super) fn order(a: &Value, b: &Value) -> Option<Ordering> {
    if let (Value::Str(x), Value::Str(y)) = (a, b) {
        return Some(x.cmp(y));
    }
    if let (Some(x), Some(y)) = (a.items(), b.items()) {
        let differing = x
            .iter()
            .zip(&y)
            .map(|(x, y)| order(x, y))
            .find(|o| *o != Some(Ordering::Equal));
        return differing.unwrap_or(Some(x.len().cmp(&y.len())));
    }
    match (a.as_scalar()?, b.as_scalar()?) {
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => None,
        (x @ Scalar::Float(_), y) | (x, y @ Scalar::Float(_)) => x.as_f64().partial_cmp(&y.as_f64()),
        (x, y) => Some(x.as_i64().cmp(&y.as_i64())),
    }
}

fn compare(call: &Call<'_>, wanted: fn(Ordering) -> bool) -> Result<Results, OpError> {
    // Unordered (NaN): every comparison is false.
    one(order(call.arg(0), call.arg(1)).is_some_and(wanted))
}

/// Converts `f` to an integer as on x86-64: NaN and values out of range become the smallest integer.
pub(super) fn to_integer(f: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&f) {
        f as i64
    } else {
        i64::MIN
    }
}

fn int(call: &Call<'_>) -> Result<Results, OpError> {
    match call.arg(0) {
        Value::Str(s) => {
            let invalid = |_| OpError::raised(format!("invalid literal for int() with base 10: '{s}'"));
            one(s.trim_start().parse::<i64>().map_err(invalid)?)
        }
        // A number of any type, for example a tensor's element, becomes a 32-bit integer.
        Value::Float(f) if call.ctx.name(call.schema.overload) == "Scalar" => {
            one(Scalar::Float(*f).checked_to(DType::Int)?.as_i64())
        }
        Value::Float(f) => one(to_integer(*f)),
        _ => one(call.scalar(0)?.as_i64()),
    }
}

fn float(call: &Call<'_>) -> Result<Results, OpError> {
    match call.arg(0) {
        Value::Str(s) => {
            let invalid = |_| OpError::raised(format!("could not convert string to float: '{s}'"));
            one(s.trim_start().parse::<f64>().map_err(invalid)?)
        }
        _ => one(call.float(0)?),
    }
}

fn complex(call: &Call<'_>) -> Result<Results, OpError> {
    one(Value::Complex(match call.args {
        [_] => call.scalar(0)?.as_complex(),
        _ => Complex64::new(call.float(0)?, call.float(1)?),
    }))
}

fn abs(call: &Call<'_>) -> Result<Results, OpError> {
    match call.scalar(0)? {
        Scalar::Bool(b) => one(i64::from(b)),
        Scalar::Int(i) => one(i.wrapping_abs()),
        Scalar::Float(f) => one(f.abs()),
        Scalar::Complex(c) => rounded(call, c.norm()),
    }
}

/// Returns the minimum or the maximum of two numbers (in their common type), of two lists, or of a list's elements. If the
/// two are unordered (NaN), it is the second, as in C++.
fn extreme(call: &Call<'_>, wanted: Ordering) -> Result<Results, OpError> {
    if call.args.len() == 1 {
        let name = if wanted == Ordering::Less { "min" } else { "max" };
        let items = call.list(0)?.items();
        let better = |best: Value, item: Value| {
            if order(&item, &best) == Some(wanted) {
                item
            } else {
                best
            }
        };
        let best = items.into_iter().reduce(better);
        return one(best.ok_or_else(|| OpError::raised(format!("{name}() arg is an empty sequence")))?);
    }
    let (a, b) = (call.arg(0), call.arg(1));
    let chosen = if order(a, b) == Some(wanted) { a } else { b };
    let either_float = matches!(a, Value::Float(_)) || matches!(b, Value::Float(_));
    match (chosen, either_float) {
        (Value::Int(i), true) => one(*i as f64),
        (v, _) => one(v.clone()),
    }
}
