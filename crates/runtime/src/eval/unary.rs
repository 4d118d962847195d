//! Evaluation of the unary functions of expressions on lanes.

use super::{complex, special};
use crate::program::expr::UnaryOp;
use crate::simd::vectorised;
use crate::tensor::lanes::{Lane, Lanes, wrap_integers};
use frazil_ir::DType;
use num_complex::Complex;

/// Computes `out = op(a)`, where the argument has dtype `dtype`. Returns false if the function is not defined on that
/// dtype.
pub(super) fn apply(op: UnaryOp, a: &Lanes, dtype: DType, out: &mut Lanes) -> bool {
    match op {
        UnaryOp::IsNan | UnaryOp::IsInf => return predicate(op, a, i64::of_mut(out)),
        UnaryOp::Not => {
            let Lanes::I64(v) = a else { return false };
            map(v, i64::of_mut(out), |x| i64::from(x == 0));
            return true;
        }
        _ => {}
    }
    match a {
        Lanes::F32(v) => float32(op, v, f32::of_mut(out)),
        Lanes::F64(v) => float64(op, v, f64::of_mut(out)),
        Lanes::I64(v) => integer(op, v, dtype, i64::of_mut(out)),
        Lanes::Complex(v) => return complex(op, v, dtype, Complex::of_mut(out)),
    }
    true
}

#[inline(always)]
fn map<A: Copy, B>(a: &[A], out: &mut Vec<B>, f: impl Fn(A) -> B) {
    out.clear();
    vectorised(
        #[inline(always)]
        || out.extend(a.iter().map(|&x| f(x))),
    );
}

fn predicate(op: UnaryOp, a: &Lanes, out: &mut Vec<i64>) -> bool {
    let nan = op == UnaryOp::IsNan;
    match a {
        Lanes::F32(v) => map(v, out, |x| i64::from(if nan { x.is_nan() } else { x.is_infinite() })),
        Lanes::F64(v) => map(v, out, |x| i64::from(if nan { x.is_nan() } else { x.is_infinite() })),
        Lanes::I64(v) => map(v, out, |_| 0),
        Lanes::Complex(v) => map(v, out, |x: Complex<f64>| {
            let either = |f: fn(f64) -> bool| f(x.re) || f(x.im);
            i64::from(if nan {
                either(f64::is_nan)
            } else {
                either(f64::is_infinite)
            })
        }),
    }
    true
}

/// Returns the inverse of the hyperbolic cosine, NaN below 1; libm's function does not check this.
fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// Implements the functions of both float widths. `$wide` computes in `f64`, for functions without an `f32` version.
macro_rules! float_functions {
    ($name:ident, $t:ty, erf: $erf:path, erfc: $erfc:path, lgamma: $lgamma:path) => {
        fn $name(op: UnaryOp, a: &[$t], out: &mut Vec<$t>) {
            let wide = |f: fn(f64) -> f64| move |x: $t| f(f64::from(x)) as $t;
            match op {
                UnaryOp::Neg => map(a, out, |x| -x),
                UnaryOp::Abs => map(a, out, <$t>::abs),
                UnaryOp::Exp => map(a, out, <$t>::exp),
                UnaryOp::Exp2 => map(a, out, <$t>::exp2),
                UnaryOp::Expm1 => map(a, out, <$t>::exp_m1),
                UnaryOp::Log => map(a, out, <$t>::ln),
                UnaryOp::Log2 => map(a, out, <$t>::log2),
                UnaryOp::Log10 => map(a, out, <$t>::log10),
                UnaryOp::Log1p => map(a, out, <$t>::ln_1p),
                UnaryOp::Sqrt => map(a, out, <$t>::sqrt),
                UnaryOp::Rsqrt => map(a, out, |x| 1.0 / x.sqrt()),
                UnaryOp::Sin => map(a, out, <$t>::sin),
                UnaryOp::Cos => map(a, out, <$t>::cos),
                UnaryOp::Tan => map(a, out, <$t>::tan),
                UnaryOp::Asin => map(a, out, <$t>::asin),
                UnaryOp::Acos => map(a, out, <$t>::acos),
                UnaryOp::Atan => map(a, out, <$t>::atan),
                UnaryOp::Sinh => map(a, out, <$t>::sinh),
                UnaryOp::Cosh => map(a, out, <$t>::cosh),
                UnaryOp::Tanh => map(a, out, <$t>::tanh),
                // The standard library's inverse hyperbolic functions lose digits; libm's in f64 do not.
                UnaryOp::Asinh => map(a, out, wide(libm::asinh)),
                UnaryOp::Acosh => map(a, out, wide(acosh)),
                UnaryOp::Atanh => map(a, out, wide(libm::atanh)),
                UnaryOp::Erf => map(a, out, $erf),
                UnaryOp::Erfc => map(a, out, $erfc),
                UnaryOp::Floor => map(a, out, <$t>::floor),
                UnaryOp::Ceil => map(a, out, <$t>::ceil),
                UnaryOp::Round => map(a, out, <$t>::round_ties_even),
                UnaryOp::Trunc => map(a, out, <$t>::trunc),
                UnaryOp::Sign => map(a, out, |x| f32::from(i8::from(x > 0.0) - i8::from(x < 0.0)) as $t),
                UnaryOp::Lgamma => map(a, out, $lgamma),
                UnaryOp::Digamma => map(a, out, wide(special::digamma)),
                UnaryOp::Erfinv => map(a, out, wide(special::erfinv)),
                // A quotient of an exponential, which is infinite before the function is.
                UnaryOp::I0 => map(a, out, |x: $t| {
                    match x.is_finite() && x.abs().exp().is_infinite() {
                        true => <$t>::INFINITY,
                        false => wide(special::i0)(x),
                    }
                }),
                // A float has no bits to complement, and the predicates were handled by the caller.
                UnaryOp::Not | UnaryOp::BitNot | UnaryOp::IsNan | UnaryOp::IsInf => map(a, out, |x| x),
            }
        }
    };
}
float_functions!(float32, f32, erf: libm::erff, erfc: libm::erfcf, lgamma: libm::lgammaf);
float_functions!(float64, f64, erf: libm::erf, erfc: libm::erfc, lgamma: libm::lgamma);

fn integer(op: UnaryOp, a: &[i64], dtype: DType, out: &mut Vec<i64>) {
    match op {
        UnaryOp::Neg => map(a, out, i64::wrapping_neg),
        UnaryOp::Abs => map(a, out, i64::wrapping_abs),
        UnaryOp::BitNot if dtype == DType::Bool => map(a, out, |x| i64::from(x == 0)),
        UnaryOp::BitNot => map(a, out, |x| !x),
        UnaryOp::Sign => map(a, out, i64::signum),
        // Rounding an integer changes nothing. The transcendental functions are only built on floats.
        _ => map(a, out, |x| x),
    }
    wrap_integers(out, dtype);
}

fn complex(op: UnaryOp, a: &[Complex<f64>], dtype: DType, out: &mut Vec<Complex<f64>>) -> bool {
    let single = complex::is_single(dtype);
    match op {
        // Their intermediate values overflow.
        UnaryOp::Expm1 if single => map(a, out, complex::single_of_one(complex::expm1)),
        UnaryOp::Sign if single => map(a, out, complex::single_of_one(complex::sign)),
        UnaryOp::Neg => map(a, out, |x| -x),
        UnaryOp::Abs => map(a, out, |x: Complex<f64>| Complex::new(x.norm(), 0.0)),
        UnaryOp::Exp => map(a, out, complex::exp),
        UnaryOp::Exp2 => map(a, out, complex::exp2),
        UnaryOp::Expm1 => map(a, out, complex::expm1),
        UnaryOp::Log => map(a, out, Complex::ln),
        UnaryOp::Log2 => map(a, out, |x: Complex<f64>| x.ln() / std::f64::consts::LN_2),
        UnaryOp::Log10 => map(a, out, |x: Complex<f64>| x.ln() / std::f64::consts::LN_10),
        UnaryOp::Log1p => map(a, out, complex::log1p),
        UnaryOp::Sqrt => map(a, out, complex::sqrt),
        UnaryOp::Rsqrt => map(a, out, complex::rsqrt),
        UnaryOp::Sin => map(a, out, complex::sin),
        UnaryOp::Cos => map(a, out, complex::cos),
        UnaryOp::Tan => map(a, out, complex::tan),
        UnaryOp::Asin => map(a, out, complex::asin),
        UnaryOp::Acos => map(a, out, complex::acos),
        UnaryOp::Atan => map(a, out, complex::atan),
        UnaryOp::Sinh => map(a, out, complex::sinh),
        UnaryOp::Cosh => map(a, out, complex::cosh),
        UnaryOp::Tanh => map(a, out, complex::tanh),
        UnaryOp::Asinh => map(a, out, complex::asinh),
        UnaryOp::Acosh => map(a, out, complex::acosh),
        UnaryOp::Atanh => map(a, out, complex::atanh),
        UnaryOp::Sign => map(a, out, complex::sign),
        _ => return false,
    }
    if single {
        complex::round(out);
    }
    true
}
