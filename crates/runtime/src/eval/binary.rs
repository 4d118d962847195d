//! Evaluation of the binary functions of expressions on lanes.

use super::complex;
use crate::program::expr::BinaryOp;
use crate::simd::vectorised;
use crate::tensor::lanes::{Lane, Lanes, wrap_integers};
use frazil_ir::DType;
use num_complex::Complex;

/// The reason why a binary function could not be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The function is not defined on the dtype.
    Undefined,
    /// An integer was divided by zero.
    DivisionByZero,
}

/// Computes `out = op(a, b)`, where both arguments have dtype `dtype`.
pub(super) fn apply(op: BinaryOp, a: &Lanes, b: &Lanes, dtype: DType, out: &mut Lanes) -> Result<(), Fault> {
    if op.is_comparison() {
        return compare(op, a, b, i64::of_mut(out));
    }
    match (a, b) {
        (Lanes::F32(a), Lanes::F32(b)) => float32(op, a, b, f32::of_mut(out)),
        (Lanes::F64(a), Lanes::F64(b)) => float64(op, a, b, f64::of_mut(out)),
        (Lanes::I64(a), Lanes::I64(b)) => integer(op, a, b, dtype, i64::of_mut(out)),
        (Lanes::Complex(a), Lanes::Complex(b)) => complex(op, a, b, dtype, Complex::of_mut(out)),
        _ => Err(Fault::Undefined),
    }
}

#[inline(always)]
pub(super) fn zip<A: Copy, B>(a: &[A], b: &[A], out: &mut Vec<B>, f: impl Fn(A, A) -> B) {
    out.clear();
    vectorised(
        #[inline(always)]
        || out.extend(a.iter().zip(b).map(|(&x, &y)| f(x, y))),
    );
}

fn compare(op: BinaryOp, a: &Lanes, b: &Lanes, out: &mut Vec<i64>) -> Result<(), Fault> {
    fn ordered<T: Copy + PartialOrd>(op: BinaryOp, a: &[T], b: &[T], out: &mut Vec<i64>) -> Result<(), Fault> {
        match op {
            BinaryOp::Eq => zip(a, b, out, |x, y| i64::from(x == y)),
            BinaryOp::Ne => zip(a, b, out, |x, y| i64::from(x != y)),
            BinaryOp::Lt => zip(a, b, out, |x, y| i64::from(x < y)),
            BinaryOp::Le => zip(a, b, out, |x, y| i64::from(x <= y)),
            BinaryOp::Gt => zip(a, b, out, |x, y| i64::from(x > y)),
            BinaryOp::Ge => zip(a, b, out, |x, y| i64::from(x >= y)),
            _ => return Err(Fault::Undefined),
        }
        Ok(())
    }
    match (a, b) {
        (Lanes::F32(a), Lanes::F32(b)) => ordered(op, a, b, out),
        (Lanes::F64(a), Lanes::F64(b)) => ordered(op, a, b, out),
        (Lanes::I64(a), Lanes::I64(b)) => ordered(op, a, b, out),
        (Lanes::Complex(a), Lanes::Complex(b)) => match op {
            BinaryOp::Eq => {
                zip(a, b, out, |x, y| i64::from(x == y));
                Ok(())
            }
            BinaryOp::Ne => {
                zip(a, b, out, |x, y| i64::from(x != y));
                Ok(())
            }
            _ => Err(Fault::Undefined),
        },
        _ => Err(Fault::Undefined),
    }
}

macro_rules! float_functions {
    ($name:ident, $t:ty, hypot: $hypot:path, nextafter: $nextafter:path) => {
        fn $name(op: BinaryOp, a: &[$t], b: &[$t], out: &mut Vec<$t>) -> Result<(), Fault> {
            match op {
                BinaryOp::Add => zip(a, b, out, |x, y| x + y),
                BinaryOp::Sub => zip(a, b, out, |x, y| x - y),
                BinaryOp::Mul => zip(a, b, out, |x, y| x * y),
                BinaryOp::Div => zip(a, b, out, |x, y| x / y),
                BinaryOp::DivTrunc => zip(a, b, out, |x, y| (x / y).trunc()),
                BinaryOp::DivFloor => zip(a, b, out, |x: $t, y: $t| {
                    if y == 0.0 {
                        return x / y;
                    }
                    // The exact remainder first: rounding x / y could otherwise skip an integer.
                    let remainder = x % y;
                    let mut quotient = (x - remainder) / y;
                    if remainder != 0.0 && (y < 0.0) != (remainder < 0.0) {
                        quotient -= 1.0;
                    }
                    if quotient == 0.0 {
                        return (0.0 as $t).copysign(x / y);
                    }
                    let floor = quotient.floor();
                    if quotient - floor > 0.5 {
                        floor + 1.0
                    } else {
                        floor
                    }
                }),
                BinaryOp::Fmod => zip(a, b, out, |x, y| x % y),
                BinaryOp::Remainder => zip(a, b, out, |x: $t, y: $t| {
                    let r = x % y;
                    if r != 0.0 && (y < 0.0) != (r < 0.0) {
                        r + y
                    } else {
                        r
                    }
                }),
                BinaryOp::Pow => zip(a, b, out, <$t>::powf),
                BinaryOp::Atan2 => zip(a, b, out, <$t>::atan2),
                // Of equals, zeros of both signs among them, the first.
                BinaryOp::Maximum => zip(a, b, out, |x, y| if y.is_nan() || y > x { y } else { x }),
                BinaryOp::Minimum => zip(a, b, out, |x, y| if y.is_nan() || y < x { y } else { x }),
                BinaryOp::Fmax => zip(a, b, out, <$t>::max),
                BinaryOp::Fmin => zip(a, b, out, <$t>::min),
                BinaryOp::Hypot => zip(a, b, out, $hypot),
                BinaryOp::Copysign => zip(a, b, out, <$t>::copysign),
                BinaryOp::Nextafter => zip(a, b, out, $nextafter),
                _ => return Err(Fault::Undefined),
            }
            Ok(())
        }
    };
}
float_functions!(float32, f32, hypot: libm::hypotf, nextafter: libm::nextafterf);
float_functions!(float64, f64, hypot: libm::hypot, nextafter: libm::nextafter);

/// Returns the number of bits of an integer dtype.
fn width(dtype: DType) -> i64 {
    dtype.size() as i64 * 8
}

fn integer(op: BinaryOp, a: &[i64], b: &[i64], dtype: DType, out: &mut Vec<i64>) -> Result<(), Fault> {
    use BinaryOp::{DivFloor, DivTrunc, Fmod, Remainder};
    if matches!(op, DivFloor | DivTrunc | Fmod | Remainder) && b.contains(&0) {
        return Err(Fault::DivisionByZero);
    }
    let bits = width(dtype);
    match op {
        // Bool's sum is `or` and its product `and`: wrapping below makes 2 one.
        BinaryOp::Add => zip(a, b, out, i64::wrapping_add),
        BinaryOp::Sub => zip(a, b, out, i64::wrapping_sub),
        BinaryOp::Mul => zip(a, b, out, i64::wrapping_mul),
        DivTrunc => zip(a, b, out, i64::wrapping_div),
        DivFloor => zip(a, b, out, |x, y| {
            let q = x.wrapping_div(y);
            if x.wrapping_rem(y) != 0 && (x < 0) != (y < 0) {
                q - 1
            } else {
                q
            }
        }),
        Fmod => zip(a, b, out, i64::wrapping_rem),
        Remainder => zip(a, b, out, |x, y| {
            let r = x.wrapping_rem(y);
            if r != 0 && (r < 0) != (y < 0) { r + y } else { r }
        }),
        BinaryOp::Pow => zip(a, b, out, integer_power),
        BinaryOp::Maximum | BinaryOp::Fmax => zip(a, b, out, i64::max),
        BinaryOp::Minimum | BinaryOp::Fmin => zip(a, b, out, i64::min),
        BinaryOp::And => zip(a, b, out, |x, y| x & y),
        BinaryOp::Or => zip(a, b, out, |x, y| x | y),
        BinaryOp::Xor => zip(a, b, out, |x, y| x ^ y),
        // A count outside the width shifts everything out.
        BinaryOp::Shl => zip(a, b, out, |x, n| {
            if (0..bits).contains(&n) {
                x.wrapping_shl(n as u32)
            } else {
                0
            }
        }),
        BinaryOp::Shr => zip(a, b, out, |x, n| if (0..bits).contains(&n) { x >> n } else { x >> 63 }),
        BinaryOp::Gcd => zip(a, b, out, |x, y| {
            let (mut x, mut y) = (x.unsigned_abs(), y.unsigned_abs());
            while y != 0 {
                (x, y) = (y, x % y);
            }
            x as i64
        }),
        _ => return Err(Fault::Undefined),
    }
    wrap_integers(out, dtype);
    Ok(())
}

/// Returns a to the power b by squaring, with wrap-around. For a negative exponent, it returns the truncated
/// reciprocal, as PyTorch does.
fn integer_power(a: i64, b: i64) -> i64 {
    if b < 0 {
        return match a {
            1 => 1,
            -1 => {
                if b % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        };
    }
    let (mut base, mut exponent, mut result) = (a, b, 1i64);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

fn complex(
    op: BinaryOp,
    a: &[Complex<f64>],
    b: &[Complex<f64>],
    dtype: DType,
    out: &mut Vec<Complex<f64>>,
) -> Result<(), Fault> {
    let single = complex::is_single(dtype);
    match op {
        BinaryOp::Add => zip(a, b, out, |x, y| x + y),
        BinaryOp::Sub => zip(a, b, out, |x, y| x - y),
        // Their intermediate values overflow.
        BinaryOp::Mul if single => zip(a, b, out, complex::single(|x, y| x * y)),
        BinaryOp::Div if single => zip(a, b, out, complex::single(complex::div)),
        BinaryOp::Mul => zip(a, b, out, |x, y| x * y),
        BinaryOp::Div => zip(a, b, out, complex::div),
        BinaryOp::Pow => zip(a, b, out, complex::pow),
        _ => return Err(Fault::Undefined),
    }
    if single {
        complex::round(out);
    }
    Ok(())
}
