//! Complex functions at zeros, infinities and NaN, as in Annex G of C, which PyTorch follows. `num_complex` computes all other values. Of two functions that
//! differ by a rotation (`sin z = -i sinh iz`), one is implemented in terms of the other.
//!
//! Lanes contain the real and imaginary parts as `f64`. Results for complex64 overflow where `f32` does: results are rounded ([`round`]), and functions whose
//! intermediate values matter are generic over the width of a part.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2};

use frazil_ir::DType;
use num_complex::Complex;
use num_traits::Float;

type C = Complex<f64>;

/// Returns true for complex dtypes whose real and imaginary parts are computed as `f32`.
pub(super) fn is_single(dtype: DType) -> bool {
    matches!(dtype, DType::ComplexFloat | DType::ComplexHalf)
}

fn narrow(z: C) -> Complex<f32> {
    Complex::new(z.re as f32, z.im as f32)
}

fn widen(z: Complex<f32>) -> C {
    Complex::new(z.re.into(), z.im.into())
}

/// Rounds real and imaginary parts to `f32`; values outside the range of `f32` become infinite.
pub(super) fn round(numbers: &mut [C]) {
    numbers.iter_mut().for_each(|z| *z = widen(narrow(*z)));
}

/// Returns `f`, a unary function in single precision, as a function on lanes.
pub(super) fn single_of_one(f: impl Fn(Complex<f32>) -> Complex<f32>) -> impl Fn(C) -> C {
    move |x| widen(f(narrow(x)))
}

/// Returns `f`, a binary function in single precision, as a function on lanes.
pub(super) fn single(f: impl Fn(Complex<f32>, Complex<f32>) -> Complex<f32>) -> impl Fn(C, C) -> C {
    move |x, y| widen(f(narrow(x), narrow(y)))
}

const NAN: C = C::new(f64::NAN, f64::NAN);

/// Returns `iz`.
fn turned(z: C) -> C {
    C::new(-z.im, z.re)
}

/// Returns `-iz`.
fn turned_back(z: C) -> C {
    C::new(z.im, -z.re)
}

/// Returns `value` with the signs of the parts of `argument`, for an odd function. On a branch cut, the sign of zero selects the side.
fn signed_as(value: C, argument: C) -> C {
    C::new(
        value.re.abs().copysign(argument.re),
        value.im.abs().copysign(argument.im),
    )
}

/// Returns `x / y`, scaled by the larger part of `y`. For a divisor of zero, each part is divided separately.
pub(super) fn div<T: Float>(x: Complex<T>, y: Complex<T>) -> Complex<T> {
    if y.re.is_zero() && y.im.is_zero() {
        return Complex::new(x.re / y.re.abs(), x.im / y.im.abs());
    }
    if y.re.abs() >= y.im.abs() {
        let ratio = y.im / y.re;
        let scale = (y.re + y.im * ratio).recip();
        Complex::new((x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale)
    } else {
        let ratio = y.re / y.im;
        let scale = (y.im + y.re * ratio).recip();
        Complex::new((x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale)
    }
}

pub(super) fn exp(z: C) -> C {
    if z.re.is_finite() && z.im.is_finite() {
        return z.exp();
    }
    if z.im == 0.0 {
        return C::new(z.re.exp(), z.im);
    }
    match (z.re.is_infinite(), z.im.is_finite()) {
        (true, true) => C::new(z.re.exp() * z.im.cos(), z.re.exp() * z.im.sin()),
        (true, false) if z.re > 0.0 => C::new(z.re, f64::NAN),
        (true, false) => C::new(0.0, 0f64.copysign(z.im)),
        (false, _) => NAN,
    }
}

/// Returns the product `x * y` as in Annex G of C: infinite if a factor is infinite, even if both parts of the plain product are NaN.
fn product(x: C, y: C) -> C {
    let plain = x * y;
    let infinite = |z: C| z.re.is_infinite() || z.im.is_infinite();
    if !(plain.re.is_nan() && plain.im.is_nan() && (infinite(x) || infinite(y))) {
        return plain;
    }
    // Of an infinite factor only the direction counts, of the other one NaN counts as zero.
    let direction = |z: C| {
        let part = |part: f64| match infinite(z) {
            true => f64::from(u8::from(part.is_infinite())).copysign(part),
            false if part.is_nan() => 0f64.copysign(part),
            false => part,
        };
        C::new(part(z.re), part(z.im))
    };
    direction(x) * direction(y) * f64::INFINITY
}

/// Returns `x` to the power `y` as in C: NaN if the logarithm of `x` is infinite and the exponent is zero.
pub(super) fn pow(x: C, y: C) -> C {
    exp(product(y, x.ln()))
}

pub(super) fn exp2(z: C) -> C {
    exp(z * LN_2)
}

/// Returns `exp(z) - 1` without cancellation for small `z`.
pub(super) fn expm1<T: Float>(z: Complex<T>) -> Complex<T> {
    let two = T::one() + T::one();
    let half = (z.im / two).sin();
    let real = z.re.exp_m1() * z.im.cos() - two * half * half;
    Complex::new(real, z.re.exp() * z.im.sin())
}

/// Returns the number with absolute value 1 and the direction of `z`; zero if `z` is zero or its absolute value overflows.
pub(super) fn sign<T: Float>(z: Complex<T>) -> Complex<T> {
    match z.re.is_zero() && z.im.is_zero() {
        true => Complex::new(T::zero(), T::zero()),
        false => z.unscale(z.norm()),
    }
}

pub(super) fn log1p(z: C) -> C {
    if z.re.is_nan() || z.im.is_nan() {
        return NAN;
    }
    if z == C::ZERO {
        return z;
    }
    // The sign of a zero imaginary part stays.
    C::new(z.re + 1.0, z.im).ln()
}

pub(super) fn sqrt(z: C) -> C {
    if z.im.is_infinite() {
        return C::new(f64::INFINITY, z.im);
    }
    if z.re.is_nan() || z.re.is_finite() && z.im.is_nan() {
        return NAN;
    }
    if z.re.is_finite() {
        return z.sqrt();
    }
    match (z.re > 0.0, z.im.is_nan()) {
        (true, true) => z,
        (true, false) => C::new(z.re, 0f64.copysign(z.im)),
        (false, true) => C::new(f64::NAN, f64::INFINITY),
        (false, false) => C::new(0.0, f64::INFINITY.copysign(z.im)),
    }
}

pub(super) fn rsqrt(z: C) -> C {
    match z == C::ZERO {
        true => C::new(f64::INFINITY, f64::NAN),
        false => div(C::ONE, sqrt(z)),
    }
}

pub(super) fn sinh(z: C) -> C {
    if z.re.is_finite() && z.im.is_finite() {
        return z.sinh();
    }
    if z.im == 0.0 {
        return z;
    }
    match (z.re.is_infinite(), z.im.is_finite()) {
        (true, true) => C::new(z.re * z.im.cos(), z.im.sin() * f64::INFINITY),
        (true, false) => C::new(f64::INFINITY, f64::NAN),
        (false, _) if z.re == 0.0 => C::new(z.re, f64::NAN),
        (false, _) => NAN,
    }
}

pub(super) fn cosh(z: C) -> C {
    if z.re.is_finite() && z.im.is_finite() {
        return z.cosh();
    }
    if z.im == 0.0 {
        // NaN has no sign to give.
        let sign = if z.re.is_nan() { 1.0 } else { 1f64.copysign(z.re) };
        return C::new(z.re.abs(), z.im * sign);
    }
    match (z.re.is_infinite(), z.im.is_finite()) {
        (true, true) => C::new(f64::INFINITY * z.im.cos(), z.re * z.im.sin()),
        (true, false) => C::new(f64::INFINITY, f64::NAN),
        (false, _) if z.re == 0.0 => C::new(f64::NAN, 0.0),
        (false, _) => NAN,
    }
}

pub(super) fn tanh(z: C) -> C {
    if z.re.is_finite() && z.im.is_finite() {
        return z.tanh();
    }
    if z.re.is_infinite() {
        let sign = match z.im.is_finite() && z.im.abs() > 1.0 {
            true => z.im.sin() * z.im.cos(),
            false => z.im,
        };
        return C::new(1f64.copysign(z.re), 0f64.copysign(sign));
    }
    match (z.re == 0.0, z.im == 0.0) {
        (true, _) => C::new(z.re, f64::NAN),
        (_, true) => C::new(f64::NAN, z.im),
        _ => NAN,
    }
}

pub(super) fn sin(z: C) -> C {
    if !z.re.is_finite() && z.im.is_infinite() {
        return C::new(f64::NAN, f64::INFINITY);
    }
    turned_back(sinh(turned(z)))
}

pub(super) fn cos(z: C) -> C {
    cosh(turned(z))
}

pub(super) fn tan(z: C) -> C {
    turned_back(tanh(turned(z)))
}

/// Magnitude above which 1 is negligible in comparison with the number's square.
const LARGE: f64 = 1e6;

pub(super) fn asinh(z: C) -> C {
    let infinite = |angle: f64| C::new(f64::INFINITY.copysign(z.re), angle.copysign(z.im));
    match (z.re.is_infinite(), z.im.is_infinite()) {
        (true, true) => infinite(FRAC_PI_4),
        (true, false) if z.im.is_nan() => C::new(z.re, f64::NAN),
        (true, false) => infinite(0.0),
        (false, true) if z.re.is_nan() => C::new(f64::INFINITY, f64::NAN),
        (false, true) => infinite(FRAC_PI_2),
        (false, false) if z.re.is_nan() && z.im == 0.0 => z,
        (false, false) if z.re.is_nan() || z.im.is_nan() => NAN,
        (false, false) => {
            // Odd, and without cancellation on the right only.
            let right = if z.re < 0.0 { -z } else { z };
            let value = match right.norm() > LARGE {
                true => right.ln() + LN_2,
                false => right.asinh(),
            };
            signed_as(value, z)
        }
    }
}

pub(super) fn asin(z: C) -> C {
    if z.re.is_infinite() && z.im.is_nan() {
        return C::new(f64::NAN, f64::INFINITY);
    }
    match z.norm() <= LARGE {
        true => signed_as(z.asin(), z),
        false => turned_back(asinh(turned(z))),
    }
}

pub(super) fn acos(z: C) -> C {
    if z.norm() <= LARGE {
        let y = z.acos();
        return C::new(y.re, y.im.abs().copysign(-z.im));
    }
    let y = asin(z);
    let imaginary = match z.re.is_nan() && z.im.is_infinite() || z.re.is_infinite() && z.im.is_nan() {
        true => f64::INFINITY.copysign(-z.im),
        false => -y.im,
    };
    C::new(FRAC_PI_2 - y.re, imaginary)
}

/// Returns the inverse hyperbolic cosine: the inverse cosine, rotated to the half plane without negative real parts.
pub(super) fn acosh(z: C) -> C {
    if z.norm() <= LARGE {
        let y = z.acosh();
        return C::new(y.re.abs(), y.im.abs().copysign(z.im));
    }
    let y = acos(z);
    C::new(y.im.abs(), y.re.copysign(z.im))
}

pub(super) fn atanh(z: C) -> C {
    match (z.re.is_infinite(), z.im.is_infinite()) {
        (_, true) => C::new(0f64.copysign(z.re), FRAC_PI_2.copysign(z.im)),
        (true, _) if z.im.is_nan() => C::new(0f64.copysign(z.re), f64::NAN),
        (true, _) => C::new(0f64.copysign(z.re), FRAC_PI_2.copysign(z.im)),
        _ if z.re == 0.0 && z.im.is_nan() => z,
        _ if z.re.is_nan() || z.im.is_nan() => NAN,
        // The poles.
        _ if z.re.abs() == 1.0 && z.im == 0.0 => C::new(f64::INFINITY.copysign(z.re), z.im),
        _ => signed_as(z.atanh(), z),
    }
}

pub(super) fn atan(z: C) -> C {
    turned_back(atanh(turned(z)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values of complex64 are those of PyTorch 2.15. The sign of a NaN is not compared.
    #[test]
    fn values_of_pytorch() {
        const INF: f64 = f64::INFINITY;
        type Case = (fn(C) -> C, C, C);
        let functions: [Case; 32] = [
            // torch.acos, asinh and acosh of complex128.
            (acos, C::new(-1e18, 1e18), C::new(2.356194490192345, -42.48625244473274)),
            (
                asinh,
                C::new(-1e10, 3e9),
                C::new(-23.762086958620927, 0.2914567944778671),
            ),
            (
                acosh,
                C::new(-1e10, 3e9),
                C::new(23.762086958620927, 2.8501358591119264),
            ),
            (|z| pow(z, C::ZERO), C::ZERO, NAN),
            (|z| pow(z, C::ZERO), NAN, NAN),
            (|z| pow(z, C::ONE), C::new(INF, 0.0), C::new(INF, f64::NAN)),
            (|z| pow(z, C::new(INF, 0.0)), C::new(2.0, 0.0), C::new(INF, f64::NAN)),
            (
                |z| pow(z, C::new(2.0, 0.0)),
                C::new(0.0, 2.0),
                C::new(-4.0, 4.898587196589413e-16),
            ),
            (log1p, C::new(-0.0, 0.0), C::new(-0.0, 0.0)),
            (asin, C::new(INF, f64::NAN), C::new(f64::NAN, INF)),
            (exp, C::new(-INF, f64::NAN), C::new(0.0, 0.0)),
            (exp2, C::new(INF, 2.0), C::new(INF, INF)),
            (expm1, C::new(INF, 0.0), C::new(INF, f64::NAN)),
            (log1p, C::new(-INF, f64::NAN), NAN),
            (sqrt, C::new(-INF, f64::NAN), C::new(f64::NAN, INF)),
            (rsqrt, C::new(-INF, -1.5), C::new(-0.0, 0.0)),
            (rsqrt, C::ZERO, C::new(INF, f64::NAN)),
            (|z| div(C::ONE, z), C::new(-INF, -1.5), C::new(-0.0, -0.0)),
            (|z| div(C::ONE, z), C::new(-1.5, INF), C::new(0.0, -0.0)),
            (sinh, C::new(-INF, 2.0), C::new(INF, INF)),
            (cosh, C::new(-INF, 1.0), C::new(INF, -INF)),
            (tanh, C::new(-INF, 2.0), C::new(-1.0, -0.0)),
            (sin, C::new(-INF, -INF), C::new(f64::NAN, INF)),
            (sin, C::new(0.5, -INF), C::new(INF, -INF)),
            (tan, C::new(f64::NAN, -INF), C::new(0.0, -1.0)),
            (asin, C::new(-1.5, -INF), C::new(-0.0, -INF)),
            (acos, C::new(-INF, -INF), C::new(3.0 * FRAC_PI_4, INF)),
            (acos, C::new(f64::NAN, INF), C::new(f64::NAN, -INF)),
            (asinh, C::new(f64::NAN, INF), C::new(INF, f64::NAN)),
            (acosh, C::new(0.0, f64::NAN), C::new(f64::NAN, FRAC_PI_2)),
            (atan, C::new(-INF, f64::NAN), C::new(-FRAC_PI_2, 0.0)),
            (atanh, C::new(f64::NAN, INF), C::new(0.0, FRAC_PI_2)),
        ];
        for (place, (function, z, wanted)) in functions.into_iter().enumerate() {
            let got = function(z);
            let same = |a: f64, b: f64| {
                a.is_nan() && b.is_nan()
                    || a == b && a.is_sign_negative() == b.is_sign_negative()
                    || (a - b).abs() < 1e-12 && a != 0.0
            };
            assert!(
                same(got.re, wanted.re) && same(got.im, wanted.im),
                "{place}: {got} instead of {wanted} at {z}"
            );
        }
    }
}
