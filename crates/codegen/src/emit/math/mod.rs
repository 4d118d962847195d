//! Functions of vectors as polynomials, and the names of libm's functions for all others.
//!
//! The coefficients are our own minimax fits or Taylor coefficients. Accuracy in units in the last place over the whole range, of f32:
//! exp and exp2 1.5, expm1 2, log 1.5, log2 2.5, log10 1.5, log1p 2, sin and cos 2, tan 2.5, asin, acos, atan and atan2 2, sinh and cosh 2,
//! asinh, acosh and atanh 1, tanh 4, erf 3 (2.5 with AVX-512), erfc 1, pow 1, hypot 1.5; fmod is exact (measured by the tests against the functions of f64).

mod circular;
mod error;
mod exponential;
mod logarithm;
mod power;
mod remainder;

use super::builder::{Emitter, Val};
use frazil_ir::DType;
use frazil_runtime::expr::{BinaryOp, UnaryOp};
use melior::ir::ValueLike;

/// Arithmetic on vectors of f32 or f64, with one method per operator, so that polynomials are readable.
pub struct Floats<'e, 'c> {
    e: &'e mut Emitter<'c>,
    lanes: i64,
    /// Whether elements are f64.
    wide: bool,
}

/// A function of one vector.
pub type Unary<'e, 'c> = fn(&mut Floats<'e, 'c>, Val<'c>) -> Val<'c>;
/// A function of two vectors.
pub type Binary<'e, 'c> = fn(&mut Floats<'e, 'c>, Val<'c>, Val<'c>) -> Val<'c>;

impl<'e, 'c> Floats<'e, 'c> {
    /// Returns arithmetic on vectors of `lanes` elements of `dtype`; f16 and bf16 are computed in f32.
    pub fn new(e: &'e mut Emitter<'c>, lanes: i64, dtype: DType) -> Floats<'e, 'c> {
        let wide = dtype == DType::Double;
        Floats { e, lanes, wide }
    }

    /// Returns the function `op` of vectors of `dtype`, if it is implemented here.
    pub fn function(op: UnaryOp, dtype: DType) -> Option<Unary<'e, 'c>> {
        if !dtype.is_floating_point() || dtype == DType::Double {
            return None;
        }
        Some(match op {
            UnaryOp::Exp => Self::exp,
            UnaryOp::Exp2 => Self::exp2,
            UnaryOp::Expm1 => Self::expm1,
            UnaryOp::Log => Self::log,
            UnaryOp::Log2 => Self::log2,
            UnaryOp::Log10 => Self::log10,
            UnaryOp::Log1p => Self::log1p,
            UnaryOp::Sin => Self::sin,
            UnaryOp::Cos => Self::cos,
            UnaryOp::Tan => Self::tan,
            UnaryOp::Asin => Self::asin,
            UnaryOp::Acos => Self::acos,
            UnaryOp::Atan => Self::atan,
            UnaryOp::Sinh => Self::sinh,
            UnaryOp::Cosh => Self::cosh,
            UnaryOp::Tanh => Self::tanh,
            UnaryOp::Asinh => Self::asinh,
            UnaryOp::Acosh => Self::acosh,
            UnaryOp::Atanh => Self::atanh,
            UnaryOp::Erf => Self::erf,
            UnaryOp::Erfc => Self::erfc,
            _ => return None,
        })
    }

    /// Returns a function of two vectors, as [`Floats::function`] does.
    pub fn function_of_two(op: BinaryOp, dtype: DType) -> Option<Binary<'e, 'c>> {
        if !dtype.is_floating_point() || dtype == DType::Double {
            return None;
        }
        Some(match op {
            BinaryOp::Pow => Self::pow,
            BinaryOp::Atan2 => Self::atan2,
            BinaryOp::Fmod => Self::fmod,
            BinaryOp::Hypot => Self::hypot,
            _ => return None,
        })
    }

    /// Returns arithmetic on as many lanes of f64.
    fn wide(&mut self) -> Floats<'_, 'c> {
        let (e, lanes) = (&mut *self.e, self.lanes);
        Floats { e, lanes, wide: true }
    }

    /// Converts f32 lanes to f64.
    fn widen(&mut self, x: Val<'c>) -> Val<'c> {
        let ty = self.e.shaped("f64", Some(self.lanes));
        self.e.op1("arith.extf", &[x], ty)
    }

    /// Rounds f64 lanes to f32.
    fn narrow(&mut self, x: Val<'c>) -> Val<'c> {
        let ty = self.e.shaped("f32", Some(self.lanes));
        self.e.op1("arith.truncf", &[x], ty)
    }

    fn k(&mut self, x: impl Into<f64>) -> Val<'c> {
        let (x, lanes): (f64, _) = (x.into(), self.lanes);
        match self.wide {
            false => self.e.f32_constant(x as f32, Some(lanes)),
            true => self
                .e
                .constant(&format!("dense<0x{:016X}> : vector<{lanes}xf64>", x.to_bits())),
        }
    }

    /// An integer constant as wide as an element.
    fn int(&mut self, x: i64) -> Val<'c> {
        let (bits, lanes) = (if self.wide { 64 } else { 32 }, self.lanes);
        self.e.constant(&format!("dense<{x}> : vector<{lanes}xi{bits}>"))
    }

    /// Returns the type of the vectors.
    fn ty(&self) -> melior::ir::Type<'c> {
        self.e.shaped(if self.wide { "f64" } else { "f32" }, Some(self.lanes))
    }

    fn add(&mut self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.e.binary("arith.addf", a, b)
    }

    fn sub(&mut self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.e.binary("arith.subf", a, b)
    }

    fn mul(&mut self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.e.binary("arith.mulf", a, b)
    }

    fn div(&mut self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.e.binary("arith.divf", a, b)
    }

    fn fma(&mut self, a: Val<'c>, b: Val<'c>, c: Val<'c>) -> Val<'c> {
        self.e.fma(a, b, c)
    }

    fn negate(&mut self, a: Val<'c>) -> Val<'c> {
        self.e.op1("arith.negf", &[a], a.r#type())
    }

    fn abs(&mut self, a: Val<'c>) -> Val<'c> {
        self.e.op1("math.absf", &[a], a.r#type())
    }

    fn sqrt(&mut self, a: Val<'c>) -> Val<'c> {
        self.e.op1("math.sqrt", &[a], a.r#type())
    }

    fn truncated(&mut self, a: Val<'c>) -> Val<'c> {
        self.e.op1("math.trunc", &[a], a.r#type())
    }

    fn integer(&mut self, name: &str, a: Val<'c>, b: i64) -> Val<'c> {
        let b = self.int(b);
        self.e.binary(name, a, b)
    }

    fn compare(&mut self, predicate: &str, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.e.cmpf(predicate, a, b, Some(self.lanes))
    }

    /// Compares `a` with a constant.
    fn compared(&mut self, predicate: &str, a: Val<'c>, b: impl Into<f64>) -> Val<'c> {
        let b = self.k(b);
        self.compare(predicate, a, b)
    }

    fn both(&mut self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.e.binary("arith.andi", a, b)
    }

    fn select(&mut self, condition: Val<'c>, then: Val<'c>, other: Val<'c>) -> Val<'c> {
        self.e.select(condition, then, other)
    }

    /// Selects one of two constants in each lane.
    fn choose(&mut self, condition: Val<'c>, then: impl Into<f64>, other: impl Into<f64>) -> Val<'c> {
        let (then, other) = (self.k(then), self.k(other));
        self.e.select(condition, then, other)
    }

    fn bits(&mut self, a: Val<'c>) -> Val<'c> {
        let ty = self.e.shaped(if self.wide { "i64" } else { "i32" }, Some(self.lanes));
        self.e.op1("arith.bitcast", &[a], ty)
    }

    fn float_of_bits(&mut self, a: Val<'c>) -> Val<'c> {
        let ty = self.ty();
        self.e.op1("arith.bitcast", &[a], ty)
    }

    /// The smaller of `a` and the constant; NaN if `a` is NaN. In this operand order it is one instruction.
    fn at_most(&mut self, a: Val<'c>, limit: impl Into<f64>) -> Val<'c> {
        let limit = self.k(limit);
        let above = self.compare("olt", limit, a);
        self.select(above, limit, a)
    }

    fn at_least(&mut self, a: Val<'c>, limit: impl Into<f64>) -> Val<'c> {
        let limit = self.k(limit);
        let below = self.compare("ogt", limit, a);
        self.select(below, limit, a)
    }

    /// Returns whether the vectors are of f32 and stored in registers of AVX-512.
    fn has_avx512(&self) -> bool {
        !self.wide && self.e.has_avx512(self.lanes)
    }

    /// Clamps `a` to the constants; NaN if `a` is NaN.
    fn between(&mut self, a: Val<'c>, least: impl Into<f64>, most: impl Into<f64>) -> Val<'c> {
        let a = self.at_most(a, most);
        self.at_least(a, least)
    }

    /// c[0] + c[1] x + c[2] x² + ...
    fn polynomial<C: Into<f64> + Copy>(&mut self, x: Val<'c>, coefficients: &[C]) -> Val<'c> {
        let mut terms = coefficients.iter().rev();
        let mut sum = match terms.next() {
            Some(&c) => self.k(c),
            None => self.k(0.0),
        };
        for &c in terms {
            let c = self.k(c);
            sum = self.fma(sum, x, c);
        }
        sum
    }

    /// Returns the sign bit of x.
    fn sign(&mut self, x: Val<'c>) -> Val<'c> {
        let bits = self.bits(x);
        self.integer(
            "arith.andi",
            bits,
            if self.wide { i64::MIN } else { i64::from(i32::MIN) },
        )
    }

    /// Returns |x| and the sign bit of x.
    fn split_sign(&mut self, x: Val<'c>) -> (Val<'c>, Val<'c>) {
        let (bits, sign) = (self.bits(x), self.sign(x));
        let rest = self.e.binary("arith.xori", bits, sign);
        (self.float_of_bits(rest), sign)
    }

    /// `magnitude`, which has no sign, with the sign bit `sign`.
    fn with_sign(&mut self, magnitude: Val<'c>, sign: Val<'c>) -> Val<'c> {
        let bits = self.bits(magnitude);
        let bits = self.e.binary("arith.ori", bits, sign);
        self.float_of_bits(bits)
    }

    /// x negated where the sign bit `sign` is set.
    fn flip(&mut self, x: Val<'c>, sign: Val<'c>) -> Val<'c> {
        let bits = self.bits(x);
        let bits = self.e.binary("arith.xori", bits, sign);
        self.float_of_bits(bits)
    }

    /// Returns the mask of the f32 lanes that are not positive, normal and finite.
    fn outside_normal(&mut self, x: Val<'c>) -> Val<'c> {
        let least = f32::MIN_POSITIVE.to_bits();
        let bits = self.bits(x);
        // One unsigned comparison tests both ends.
        let after = self.integer("arith.subi", bits, least.into());
        let count = self.int((f32::INFINITY.to_bits() - least).into());
        self.e.cmpi("uge", after, count, Some(self.lanes))
    }

    /// `slow` in the lanes of `mask`, `fast` in the others. `slow` is computed only if the mask has a lane that is set.
    fn seldom<const N: usize>(
        &mut self,
        mask: Val<'c>,
        fast: [Val<'c>; N],
        slow: impl FnOnce(&mut Floats<'_, 'c>) -> [Val<'c>; N],
    ) -> [Val<'c>; N] {
        let any = self.e.reduce_lanes("or", mask, false);
        let any = self.e.unlikely(any);
        let types = fast.map(|v| v.r#type());
        let (lanes, wide) = (self.lanes, self.wide);
        let then = |e: &mut Emitter<'c>| {
            let slow = slow(&mut Floats {
                e: &mut *e,
                lanes,
                wide,
            });
            let lanes = slow.iter().zip(fast).map(|(&slow, fast)| e.select(mask, slow, fast));
            lanes.collect()
        };
        let results = self.e.if_else(any, &types, then, |_| fast.to_vec());
        std::array::from_fn(|i| results[i])
    }
}

/// Adding 1.5 · 2²³ leaves the rounded integer in the low bits.
const MAGIC: f32 = 12_582_912.0;
/// 1.5 · 2⁵², for f64.
const WIDE_MAGIC: f64 = 6_755_399_441_055_744.0;

/// a · b + c on scalars or vectors of f32 or f64.
pub fn fma<'c>(e: &mut Emitter<'c>, a: Val<'c>, b: Val<'c>, c: Val<'c>, lanes: Option<i64>) -> Val<'c> {
    match lanes {
        Some(_) => e.fma(a, b, c),
        None => {
            let ty = a.r#type();
            e.op1("math.fma", &[a, b, c], ty)
        }
    }
}

/// Returns libm's name of a function of one f64, without the `f` of the f32 version; `None` if libm does not have it.
pub fn libm_unary(op: UnaryOp) -> Option<&'static str> {
    use UnaryOp as U;
    Some(match op {
        U::Exp => "exp",
        U::Exp2 => "exp2",
        U::Expm1 => "expm1",
        U::Log => "log",
        U::Log2 => "log2",
        U::Log10 => "log10",
        U::Log1p => "log1p",
        U::Sin => "sin",
        U::Cos => "cos",
        U::Tan => "tan",
        U::Asin => "asin",
        U::Acos => "acos",
        U::Atan => "atan",
        U::Sinh => "sinh",
        U::Cosh => "cosh",
        U::Tanh => "tanh",
        U::Asinh => "asinh",
        U::Acosh => "acosh",
        U::Atanh => "atanh",
        U::Erf => "erf",
        U::Erfc => "erfc",
        U::Floor => "floor",
        U::Ceil => "ceil",
        U::Round => "rint",
        U::Trunc => "trunc",
        U::Lgamma => "lgamma",
        _ => return None,
    })
}
