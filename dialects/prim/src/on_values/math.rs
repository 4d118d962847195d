//! The functions of Python's modules `math` and `cmath`.

use super::arithmetic::{complex_quotient, to_integer};
use frazil_ir::types;
use frazil_runtime::Scalar;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::value::Value;
use num_complex::Complex64;

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::floor",
        Entry::on_values(|c| match c.scalar(0)? {
            // By way of a float, as PyTorch does.
            Scalar::Int(i) => one(to_integer(i as f64)),
            _ => integral(c, f64::floor),
        }),
    ),
    ("aten::ceil", Entry::on_values(|c| integral(c, f64::ceil))),
    ("aten::round", Entry::on_values(|c| real(c, f64::round_ties_even))),
    ("aten::sqrt", Entry::on_values(|c| both(c, f64::sqrt, Complex64::sqrt))),
    ("aten::exp", Entry::on_values(|c| both(c, f64::exp, Complex64::exp))),
    ("aten::expm1", Entry::on_values(|c| real(c, f64::exp_m1))),
    ("aten::log", Entry::on_values(log)),
    (
        "aten::log10",
        Entry::on_values(|c| both(c, f64::log10, |z| z.ln() / std::f64::consts::LN_10)),
    ),
    ("aten::log1p", Entry::on_values(|c| real(c, f64::ln_1p))),
    ("aten::sin", Entry::on_values(|c| both(c, f64::sin, Complex64::sin))),
    ("aten::cos", Entry::on_values(|c| both(c, f64::cos, Complex64::cos))),
    ("aten::tan", Entry::on_values(|c| both(c, f64::tan, Complex64::tan))),
    ("aten::asin", Entry::on_values(|c| both(c, f64::asin, Complex64::asin))),
    ("aten::acos", Entry::on_values(|c| both(c, f64::acos, Complex64::acos))),
    ("aten::atan", Entry::on_values(|c| both(c, f64::atan, Complex64::atan))),
    ("aten::atan2", Entry::on_values(|c| pair(c, f64::atan2))),
    ("aten::sinh", Entry::on_values(|c| both(c, f64::sinh, Complex64::sinh))),
    ("aten::cosh", Entry::on_values(|c| both(c, f64::cosh, Complex64::cosh))),
    ("aten::tanh", Entry::on_values(|c| both(c, f64::tanh, Complex64::tanh))),
    (
        "aten::asinh",
        Entry::on_values(|c| both(c, f64::asinh, Complex64::asinh)),
    ),
    (
        "aten::acosh",
        Entry::on_values(|c| both(c, f64::acosh, Complex64::acosh)),
    ),
    (
        "aten::atanh",
        Entry::on_values(|c| both(c, f64::atanh, Complex64::atanh)),
    ),
    (
        "aten::angle",
        Entry::on_values(|c| match c.scalar(0)? {
            Scalar::Complex(z) => rounded(c, z.arg()),
            other => {
                let f = other.as_f64();
                let negative = f.is_sign_negative() && !f.is_nan();
                rounded(c, if negative { std::f64::consts::PI } else { 0.0 })
            }
        }),
    ),
    (
        "aten::polar",
        Entry::on_values(|c| one(Value::Complex(Complex64::from_polar(c.float(0)?, c.float(1)?)))),
    ),
    ("aten::fabs", Entry::on_values(|c| real(c, f64::abs))),
    ("aten::degrees", Entry::on_values(|c| real(c, f64::to_degrees))),
    ("aten::radians", Entry::on_values(|c| real(c, f64::to_radians))),
    ("aten::copysign", Entry::on_values(|c| pair(c, f64::copysign))),
    ("aten::fmod", Entry::on_values(|c| pair(c, |a, b| a % b))),
    ("aten::mathremainder", Entry::on_values(|c| pair(c, libm::remainder))),
    (
        "aten::isnan",
        Entry::on_values(|c| predicate(c, |z| z.re.is_nan() || z.im.is_nan())),
    ),
    (
        "aten::isinf",
        Entry::on_values(|c| predicate(c, |z| z.re.is_infinite() || z.im.is_infinite())),
    ),
    (
        "aten::isfinite",
        Entry::on_values(|c| predicate(c, |z| z.re.is_finite() && z.im.is_finite())),
    ),
    ("aten::gcd", Entry::on_values(|c| one(gcd(c.int(0)?, c.int(1)?)))),
    ("aten::factorial", Entry::on_values(factorial)),
    (
        "aten::ldexp",
        Entry::on_values(|c| {
            // More than any exponent there is.
            let exponent = c.int(1)?.clamp(-5000, 5000) as i32;
            one(libm::ldexp(c.float(0)?, exponent))
        }),
    ),
    ("aten::erf", Entry::on_values(|c| real(c, libm::erf))),
    ("aten::erfc", Entry::on_values(|c| real(c, libm::erfc))),
    ("aten::gamma", Entry::on_values(|c| real(c, libm::tgamma))),
    ("aten::lgamma", Entry::on_values(|c| real(c, libm::lgamma))),
    (
        "aten::modf",
        Entry::on_values(|c| {
            let f = c.float(0)?;
            let fraction = if f.is_infinite() { 0.0 } else { f - f.trunc() };
            Ok(smallvec::smallvec![fraction.copysign(f).into(), f.trunc().into()])
        }),
    ),
    (
        "aten::frexp",
        Entry::on_values(|c| {
            let f = c.float(0)?;
            let (mantissa, exponent) = if f.is_finite() { libm::frexp(f) } else { (f, 0) };
            Ok(smallvec::smallvec![mantissa.into(), i64::from(exponent).into()])
        }),
    ),
];

/// Returns a result of the overloads on `Scalar`, which has the precision of a C++ `float`.
pub(super) fn rounded(call: &Call<'_>, f: f64) -> Result<Results, OpError> {
    let on_scalar = call.schema.arguments.first().is_some_and(|a| a.ty == types::NUMBER);
    one(if on_scalar { f64::from(f as f32) } else { f })
}

fn real(call: &Call<'_>, f: fn(f64) -> f64) -> Result<Results, OpError> {
    rounded(call, f(call.float(0)?))
}

fn both(call: &Call<'_>, f: fn(f64) -> f64, complex: fn(Complex64) -> Complex64) -> Result<Results, OpError> {
    match call.scalar(0)? {
        Scalar::Complex(c) => one(Value::Complex(complex(c))),
        other => rounded(call, f(other.as_f64())),
    }
}

fn pair(call: &Call<'_>, f: fn(f64, f64) -> f64) -> Result<Results, OpError> {
    one(f(call.float(0)?, call.float(1)?))
}

fn predicate(call: &Call<'_>, f: fn(Complex64) -> bool) -> Result<Results, OpError> {
    one(f(call.scalar(0)?.as_complex()))
}

/// Implements `floor` and `ceil`, which return integers.
fn integral(call: &Call<'_>, f: fn(f64) -> f64) -> Result<Results, OpError> {
    let value = match call.scalar(0)? {
        Scalar::Float(x) => x,
        other => return one(other.as_i64()),
    };
    let whole = f(value);
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole) {
        let shown = if value.is_finite() {
            format!("{value:.6}")
        } else {
            value.to_string().to_lowercase()
        };
        return Err(OpError::raised(format!("Cannot convert float {shown} to integer")));
    }
    one(whole as i64)
}

/// Implements `log(x)` and `log(x, base)`: the logarithm of a real number is real (NaN below zero), even if the other operand is complex.
fn log(call: &Call<'_>) -> Result<Results, OpError> {
    if call.args.len() < 2 {
        return both(call, f64::ln, Complex64::ln);
    }
    let ln = |s: Scalar| Complex64::from(s.as_f64().ln());
    match (call.scalar(0)?, call.scalar(1)?) {
        (Scalar::Complex(a), Scalar::Complex(b)) => one(Value::Complex(complex_quotient(a.ln(), b.ln()))),
        (Scalar::Complex(a), b) => one(Value::Complex(a.ln() / b.as_f64().ln())),
        (a, Scalar::Complex(b)) => one(Value::Complex(complex_quotient(ln(a), b.ln()))),
        (a, b) => one(a.as_f64().ln() / b.as_f64().ln()),
    }
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
    // Above 20 the product wraps around, as in PyTorch; above 66 it is zero.
    one((1..=n.min(66)).fold(1i64, |p, i| p.wrapping_mul(i)))
}
