//! Python's arithmetic on `int`, `float`, `complex` and `bool`, and the `math` module.

use super::lists;
use frazil_ir::types;
use frazil_runtime::Scalar;
use frazil_runtime::op::{Call, KernelFn, OpError, Results, one};
use frazil_runtime::value::Value;
use num_complex::Complex64;
use std::cmp::Ordering;

pub(super) const HOST: &[(&str, KernelFn)] = &[
    ("aten::add", add),
    ("aten::sub", |c| {
        arithmetic(c, i64::wrapping_sub, |a, b| a - b, |a, b| a - b)
    }),
    ("aten::mul", mul),
    ("aten::div", div),
    ("aten::floordiv", |c| divide(c, floordiv, |a, b| (a / b).floor())),
    ("aten::remainder", |c| divide(c, remainder, float_remainder)),
    ("aten::mathremainder", |c| binary_float(c, libm_remainder)),
    ("aten::fmod", |c| binary_float(c, |a, b| a % b)),
    ("aten::__round_to_zero_floordiv", |c| {
        divide(c, i64::wrapping_div, |a, b| (a / b).trunc())
    }),
    ("aten::divmod", divmod),
    ("aten::pow", pow),
    ("aten::neg", neg),
    ("aten::__and__", |c| bitwise(c, |a, b| a & b)),
    ("aten::__or__", |c| bitwise(c, |a, b| a | b)),
    ("aten::__xor__", |c| bitwise(c, |a, b| a ^ b)),
    ("aten::__lshift__", |c| {
        shift(c, |a, n| if n < 64 { a.wrapping_shl(n) } else { 0 })
    }),
    ("aten::__rshift__", |c| shift(c, |a, n| a >> n.min(63))),
    ("aten::__not__", |c| one(!c.flag(0)?)),
    ("aten::eq", |c| one(c.arg(0).equals(c.arg(1)).unwrap_or(false))),
    ("aten::ne", |c| one(!c.arg(0).equals(c.arg(1)).unwrap_or(false))),
    ("aten::lt", |c| compare(c, |o| o == Ordering::Less)),
    ("aten::le", |c| compare(c, |o| o != Ordering::Greater)),
    ("aten::gt", |c| compare(c, |o| o == Ordering::Greater)),
    ("aten::ge", |c| compare(c, |o| o != Ordering::Less)),
    ("aten::Int", int),
    ("aten::Float", float),
    ("aten::Bool", |c| one(c.scalar(0)?.as_bool())),
    ("aten::Complex", |c| {
        one(Value::Complex(Complex64::new(c.float(0)?, c.float(1)?)))
    }),
    ("aten::floor", |c| rounding(c, f64::floor)),
    ("aten::ceil", |c| rounding(c, f64::ceil)),
    ("aten::round", |c| one(c.float(0)?.round_ties_even())),
    ("aten::sqrt", |c| math(c, f64::sqrt, Complex64::sqrt)),
    ("aten::exp", |c| math(c, f64::exp, Complex64::exp)),
    ("aten::expm1", |c| one(c.float(0)?.exp_m1())),
    ("aten::log", log),
    ("aten::log10", |c| {
        math(c, f64::log10, |z| z.ln() / std::f64::consts::LN_10)
    }),
    ("aten::log1p", |c| one(c.float(0)?.ln_1p())),
    ("aten::sin", |c| math(c, f64::sin, Complex64::sin)),
    ("aten::cos", |c| math(c, f64::cos, Complex64::cos)),
    ("aten::tan", |c| math(c, f64::tan, Complex64::tan)),
    ("aten::asin", |c| math(c, f64::asin, Complex64::asin)),
    ("aten::acos", |c| math(c, f64::acos, Complex64::acos)),
    ("aten::atan", |c| math(c, f64::atan, Complex64::atan)),
    ("aten::atan2", |c| binary_float(c, f64::atan2)),
    ("aten::sinh", |c| math(c, f64::sinh, Complex64::sinh)),
    ("aten::cosh", |c| math(c, f64::cosh, Complex64::cosh)),
    ("aten::tanh", |c| math(c, f64::tanh, Complex64::tanh)),
    ("aten::asinh", |c| math(c, f64::asinh, Complex64::asinh)),
    ("aten::acosh", |c| math(c, f64::acosh, Complex64::acosh)),
    ("aten::atanh", |c| math(c, f64::atanh, Complex64::atanh)),
    ("aten::fabs", |c| one(c.float(0)?.abs())),
    ("aten::degrees", |c| one(c.float(0)?.to_degrees())),
    ("aten::radians", |c| one(c.float(0)?.to_radians())),
    ("aten::copysign", |c| binary_float(c, f64::copysign)),
    ("aten::isnan", |c| predicate(c, f64::is_nan, false)),
    ("aten::isinf", |c| predicate(c, f64::is_infinite, false)),
    ("aten::isfinite", |c| predicate(c, f64::is_finite, true)),
    ("aten::gcd", |c| one(gcd(c.int(0)?, c.int(1)?))),
    ("aten::factorial", factorial),
    ("aten::ldexp", |c| {
        one(c.float(0)? * 2f64.powi(c.int(1)?.clamp(-2200, 2200) as i32))
    }),
    ("aten::erf", |c| one(libm::erf(c.float(0)?))),
    ("aten::erfc", |c| one(libm::erfc(c.float(0)?))),
    ("aten::gamma", |c| one(libm::tgamma(c.float(0)?))),
    ("aten::lgamma", |c| one(libm::lgamma(c.float(0)?))),
    ("aten::modf", |c| {
        let f = c.float(0)?;
        Ok(smallvec::smallvec![(f - f.trunc()).into(), f.trunc().into()])
    }),
    ("aten::frexp", |c| {
        let (mantissa, exponent) = libm::frexp(c.float(0)?);
        Ok(smallvec::smallvec![mantissa.into(), i64::from(exponent).into()])
    }),
];

fn zero_division(text: &str) -> OpError {
    OpError::raised(format!("ZeroDivisionError: {text}"))
}

/// The two operands in their common type.
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

fn binary_float(call: &Call<'_>, f: fn(f64, f64) -> f64) -> Result<Results, OpError> {
    one(f(call.float(0)?, call.float(1)?))
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

fn div(call: &Call<'_>) -> Result<Results, OpError> {
    match (call.scalar(0)?, call.scalar(1)?) {
        (a @ Scalar::Complex(_), b) | (a, b @ Scalar::Complex(_)) => {
            one(Value::Complex(a.as_complex() / b.as_complex()))
        }
        (_, b) if b.as_f64() == 0.0 => Err(zero_division("division by zero")),
        (a, b) => one(a.as_f64() / b.as_f64()),
    }
}

fn divide(call: &Call<'_>, int: fn(i64, i64) -> i64, float: fn(f64, f64) -> f64) -> Result<Results, OpError> {
    match (call.scalar(0)?, call.scalar(1)?) {
        (a @ Scalar::Float(_), b) | (a, b @ Scalar::Float(_)) => {
            if b.as_f64() == 0.0 {
                return Err(zero_division("float modulo or division by zero"));
            }
            one(float(a.as_f64(), b.as_f64()))
        }
        (_, b) if b.as_i64() == 0 => Err(zero_division("integer division or modulo by zero")),
        (a, b) => one(int(a.as_i64(), b.as_i64())),
    }
}

fn floordiv(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) {
        q - 1
    } else {
        q
    }
}

fn remainder(a: i64, b: i64) -> i64 {
    let r = a.wrapping_rem(b);
    if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
}

fn float_remainder(a: f64, b: f64) -> f64 {
    let r = a % b;
    if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
}

/// IEEE 754's remainder, as `math.remainder`.
fn libm_remainder(a: f64, b: f64) -> f64 {
    libm::remainder(a, b)
}

fn divmod(call: &Call<'_>) -> Result<Results, OpError> {
    let mut results = divide(call, floordiv, |a, b| (a / b).floor())?;
    results.extend(divide(call, remainder, float_remainder)?);
    Ok(results)
}

fn pow(call: &Call<'_>) -> Result<Results, OpError> {
    // `pow.int(int, int) -> float`; `pow.int_to_int` gives an integer.
    let to_int = call.schema.returns.first().is_some_and(|r| r.ty == types::INT);
    match (call.scalar(0)?, call.scalar(1)?) {
        (a @ Scalar::Complex(_), b) | (a, b @ Scalar::Complex(_)) => {
            one(Value::Complex(a.as_complex().powc(b.as_complex())))
        }
        (Scalar::Int(a), Scalar::Int(b)) if to_int => {
            one(u32::try_from(b).map_or_else(|_| (a as f64).powf(b as f64) as i64, |b| a.wrapping_pow(b)))
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

fn shift(call: &Call<'_>, f: fn(i64, u32) -> i64) -> Result<Results, OpError> {
    let count = u32::try_from(call.int(1)?).map_err(|_| OpError::raised("negative shift count"))?;
    one(f(call.int(0)?, count))
}

/// Numbers and strings in their order, lists element by element.
pub(super) fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Str(x), Value::Str(y)) => Some(x.cmp(y)),
        _ => match (a.as_scalar()?, b.as_scalar()?) {
            (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => None,
            (Scalar::Float(_), _) | (_, Scalar::Float(_)) => {
                a.as_scalar()?.as_f64().partial_cmp(&b.as_scalar()?.as_f64())
            }
            (x, y) => Some(x.as_i64().cmp(&y.as_i64())),
        },
    }
}

fn compare(call: &Call<'_>, wanted: fn(Ordering) -> bool) -> Result<Results, OpError> {
    // Unordered (NaN): every comparison is false.
    one(order(call.arg(0), call.arg(1)).is_some_and(wanted))
}

fn int(call: &Call<'_>) -> Result<Results, OpError> {
    match call.arg(0) {
        Value::Str(s) => {
            let digits = s.trim().replace('_', "");
            one(digits
                .parse::<i64>()
                .map_err(|_| OpError::raised(format!("invalid literal for int() with base 10: '{s}'")))?)
        }
        Value::Float(f) if !f.is_finite() => Err(OpError::raised("cannot convert float infinity or NaN to integer")),
        _ => one(call.scalar(0)?.as_i64()),
    }
}

fn float(call: &Call<'_>) -> Result<Results, OpError> {
    match call.arg(0) {
        Value::Str(s) => {
            let parsed = s.trim().parse::<f64>();
            one(parsed.map_err(|_| OpError::raised(format!("could not convert string to float: '{s}'")))?)
        }
        _ => one(call.float(0)?),
    }
}

/// `math.floor` and `math.ceil` give integers.
fn rounding(call: &Call<'_>, f: fn(f64) -> f64) -> Result<Results, OpError> {
    match call.scalar(0)? {
        Scalar::Float(x) => one(f(x) as i64),
        other => one(other.as_i64()),
    }
}

fn math(call: &Call<'_>, real: fn(f64) -> f64, complex: fn(Complex64) -> Complex64) -> Result<Results, OpError> {
    match call.scalar(0)? {
        Scalar::Complex(c) => one(Value::Complex(complex(c))),
        other => one(real(other.as_f64())),
    }
}

/// `log(x)` and `log(x, base)`.
fn log(call: &Call<'_>) -> Result<Results, OpError> {
    if call.args.len() < 2 {
        return math(call, f64::ln, Complex64::ln);
    }
    match (call.scalar(0)?, call.scalar(1)?) {
        (a @ Scalar::Complex(_), b) | (a, b @ Scalar::Complex(_)) => {
            one(Value::Complex(a.as_complex().ln() / b.as_complex().ln()))
        }
        (a, b) => one(a.as_f64().ln() / b.as_f64().ln()),
    }
}

fn predicate(call: &Call<'_>, f: fn(f64) -> bool, all: bool) -> Result<Results, OpError> {
    one(match call.scalar(0)? {
        Scalar::Complex(c) if all => f(c.re) && f(c.im),
        Scalar::Complex(c) => f(c.re) || f(c.im),
        other => f(other.as_f64()),
    })
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i64
}

fn factorial(call: &Call<'_>) -> Result<Results, OpError> {
    let n = call.int(0)?;
    if n < 0 {
        return Err(OpError::raised("factorial() not defined for negative values"));
    }
    // Beyond 20 the product wraps around, as PyTorch's does; beyond 66 it is zero.
    one((1..=n.min(66)).fold(1i64, |p, i| p.wrapping_mul(i)))
}
