//! Transcendental functions of f32 vectors as polynomials, and the names of libm's functions for everything else.
//!
//! The coefficients are our own minimax fits or Taylor coefficients. Accuracy in units in the last place over the whole range:
//! exp 1.5, exp2 1.5, expm1 2, log 1.5, log2 2.5, log1p 2, tanh 4, erf 3 (measured by the tests against the double-precision functions).

use super::builder::{Emitter, Val};
use frazil_runtime::expr::UnaryOp;
use melior::ir::ValueLike;

/// Vector arithmetic on f32, one method an operator, to write polynomials readably.
pub struct F32<'e, 'c> {
    e: &'e mut Emitter<'c>,
    lanes: Option<i64>,
}

impl<'e, 'c> F32<'e, 'c> {
    /// Arithmetic on vectors of `lanes`, or on scalars.
    pub fn new(e: &'e mut Emitter<'c>, lanes: Option<i64>) -> F32<'e, 'c> {
        F32 { e, lanes }
    }

    fn k(&mut self, x: f32) -> Val<'c> {
        self.e.f32_constant(x, self.lanes)
    }

    fn i32(&mut self, x: i32) -> Val<'c> {
        match self.lanes {
            None => self.e.constant(&format!("{x} : i32")),
            Some(n) => self.e.constant(&format!("dense<{x}> : vector<{n}xi32>")),
        }
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
        fma(self.e, a, b, c, self.lanes)
    }

    fn bits(&mut self, a: Val<'c>) -> Val<'c> {
        let ty = self.e.shaped("i32", self.lanes);
        self.e.op1("arith.bitcast", &[a], ty)
    }

    fn float_of_bits(&mut self, a: Val<'c>) -> Val<'c> {
        let ty = self.e.shaped("f32", self.lanes);
        self.e.op1("arith.bitcast", &[a], ty)
    }

    /// The smaller of `a` and the constant; NaN stays. The form that becomes one instruction.
    fn at_most(&mut self, a: Val<'c>, limit: f32) -> Val<'c> {
        let limit = self.k(limit);
        let above = self.e.cmpf("olt", limit, a, self.lanes);
        self.e.select(above, limit, a)
    }

    fn at_least(&mut self, a: Val<'c>, limit: f32) -> Val<'c> {
        let limit = self.k(limit);
        let below = self.e.cmpf("ogt", limit, a, self.lanes);
        self.e.select(below, limit, a)
    }

    /// c[0] + c[1] x + c[2] x² + ...
    fn polynomial(&mut self, x: Val<'c>, coefficients: &[f32]) -> Val<'c> {
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

    /// (|x|, the sign bit of x)
    fn split_sign(&mut self, x: Val<'c>) -> (Val<'c>, Val<'c>) {
        let bits = self.bits(x);
        let mask = self.i32(i32::MIN);
        let sign = self.e.binary("arith.andi", bits, mask);
        let rest = self.e.binary("arith.xori", bits, sign);
        (self.float_of_bits(rest), sign)
    }

    fn with_sign(&mut self, magnitude: Val<'c>, sign: Val<'c>) -> Val<'c> {
        let bits = self.bits(magnitude);
        let bits = self.e.binary("arith.ori", bits, sign);
        self.float_of_bits(bits)
    }

    /// n = x / ln 2, rounded, as (the bits of n + 1.5 · 2²³ + `bias`, n).
    fn quotient(&mut self, x: Val<'c>, bias: f32) -> (Val<'c>, Val<'c>) {
        let (log2e, magic) = (self.k(std::f32::consts::LOG2_E), self.k(MAGIC + bias));
        let shifted = self.fma(x, log2e, magic);
        let n = self.sub(shifted, magic);
        (self.bits(shifted), n)
    }

    /// x = n ln 2 + r with |r| ≤ ln 2 / 2: (n as i32, r).
    fn reduce(&mut self, x: Val<'c>) -> (Val<'c>, Val<'c>) {
        let (bits, n) = self.quotient(x, 0.0);
        // ln 2 in two parts, the first with trailing zeros so that n · high is exact.
        let (high, low) = (self.k(-0.693_359_4), self.k(2.121_944_4e-4));
        let r = self.fma(n, high, x);
        let r = self.fma(n, low, r);
        let zero = self.i32(MAGIC.to_bits() as i32);
        (self.e.binary("arith.subi", bits, zero), r)
    }

    /// e^x = m · s + s with a power of two s, for |x| ≤ 80, as (m, s). ln 2 is rounded: good where an error of 3 · 10⁻⁹ x does not show.
    fn scaled_expm1(&mut self, x: Val<'c>) -> (Val<'c>, Val<'c>) {
        // The exponent's bias comes with the bits.
        let (bits, n) = self.quotient(x, 127.0);
        let minus_ln2 = self.k(-std::f32::consts::LN_2);
        let r = self.fma(n, minus_ln2, x);
        let m = self.expm1_reduced(r);
        let shift = self.i32(23);
        let scale = self.e.binary("arith.shli", bits, shift);
        (m, self.float_of_bits(scale))
    }

    /// e^r − 1 for |r| ≤ ln 2 / 2.
    fn expm1_reduced(&mut self, r: Val<'c>) -> Val<'c> {
        let q = self.polynomial(r, &EXPM1);
        let rr = self.mul(r, r);
        self.fma(q, rr, r)
    }

    /// 2ⁿ for −126 ≤ n ≤ 127.
    fn power_of_two(&mut self, n: Val<'c>) -> Val<'c> {
        let (bias, shift) = (self.i32(127), self.i32(23));
        let n = self.e.binary("arith.addi", n, bias);
        let bits = self.e.binary("arith.shli", n, shift);
        self.float_of_bits(bits)
    }

    /// The function `op` of vectors, if it is one of those here.
    pub fn function(op: UnaryOp) -> Option<fn(&mut Self, Val<'c>) -> Val<'c>> {
        Some(match op {
            UnaryOp::Exp => Self::exp,
            UnaryOp::Exp2 => Self::exp2,
            UnaryOp::Expm1 => Self::expm1,
            UnaryOp::Log => Self::log,
            UnaryOp::Log2 => Self::log2,
            UnaryOp::Log1p => Self::log1p,
            UnaryOp::Tanh => Self::tanh,
            UnaryOp::Erf => Self::erf,
            _ => return None,
        })
    }

    /// e^x, with infinity, zero and denormals where they belong.
    fn exp(&mut self, x: Val<'c>) -> Val<'c> {
        let x = self.at_most(x, 89.0);
        let x = self.at_least(x, -104.0);
        let (n, r) = self.reduce(x);
        self.scaled_exp(r, n)
    }

    /// 2^x, as [`F32::exp`].
    fn exp2(&mut self, x: Val<'c>) -> Val<'c> {
        let x = self.at_most(x, 129.0);
        let x = self.at_least(x, -151.0);
        let magic = self.k(MAGIC);
        let shifted = self.add(x, magic);
        let n = self.sub(shifted, magic);
        let rest = self.sub(x, n);
        let ln2 = self.k(std::f32::consts::LN_2);
        let r = self.mul(rest, ln2);
        let (bits, zero) = (self.bits(shifted), self.i32(MAGIC.to_bits() as i32));
        let n = self.e.binary("arith.subi", bits, zero);
        self.scaled_exp(r, n)
    }

    /// e^r · 2ⁿ for |r| ≤ ln 2 / 2 and n from −151 to 129.
    fn scaled_exp(&mut self, r: Val<'c>, n: Val<'c>) -> Val<'c> {
        let [c2, c3, c4, c5, c6] = EXPM1;
        let p = self.polynomial(r, &[1.0, 1.0, c2, c3, c4, c5, c6]);
        if self.e.lanes == AVX512_LANES {
            return self.scale(p, n);
        }
        // 2ⁿ in two factors, as one would be no normal number.
        let shift = self.i32(1);
        let half = self.e.binary("arith.shrsi", n, shift);
        let rest = self.e.binary("arith.subi", n, half);
        let (a, b) = (self.power_of_two(half), self.power_of_two(rest));
        let p = self.mul(p, a);
        self.mul(p, b)
    }

    /// p · 2ⁿ for every n, which AVX-512 does in two instructions. Where no instruction does it LLVM would call a function for each lane.
    fn scale(&mut self, p: Val<'c>, n: Val<'c>) -> Val<'c> {
        self.e.intrinsic("llvm.ldexp", &[p, n], p.r#type())
    }

    /// e^x − 1 with as many digits as it has near zero, and the zeros' signs.
    fn expm1(&mut self, x: Val<'c>) -> Val<'c> {
        let a = self.at_most(x, 89.0);
        // From here on the result rounds to −1.
        let a = self.at_least(a, -18.0);
        let (n, r) = self.reduce(a);
        let m = self.expm1_reduced(r);
        // Half of it at first: 2ⁿ is no number yet where e^x still is one.
        let (minus_one, half) = (self.i32(-1), self.k(0.5));
        let below = self.e.binary("arith.addi", n, minus_one);
        let scale = self.power_of_two(below);
        let rest = self.sub(scale, half);
        let y = self.fma(m, scale, rest);
        let y = self.add(y, y);
        self.e.binary("math.copysign", y, x)
    }

    /// x = 2ᵏ (1 + f) of the bits of a normal x > 0, with 1 + f between √½ and √2: (k as i32, 1 + f).
    fn split_exponent(&mut self, bits: Val<'c>) -> (Val<'c>, Val<'c>) {
        let (root, shift) = (self.i32(std::f32::consts::FRAC_1_SQRT_2.to_bits() as i32), self.i32(23));
        let above = self.e.binary("arith.subi", bits, root);
        let k = self.e.binary("arith.shrsi", above, shift);
        let exponent = self.e.binary("arith.shli", k, shift);
        let m = self.e.binary("arith.subi", bits, exponent);
        (k, self.float_of_bits(m))
    }

    /// ln(1 + f) − f for 1 + f between √½ and √2, and `low`.
    fn log1p_rest(&mut self, f: Val<'c>, low: Val<'c>) -> Val<'c> {
        let p = self.polynomial(f, &LOG1P);
        let square = self.mul(f, f);
        let cube = self.mul(square, f);
        let r = self.fma(p, cube, low);
        let minus_half = self.k(-0.5);
        self.fma(square, minus_half, r)
    }

    /// k ln 2 + ln(1 + f)
    fn log_sum(&mut self, k: Val<'c>, f: Val<'c>) -> Val<'c> {
        let k = self.float_of_int(k);
        let (high, low) = (self.k(0.693_359_4), self.k(-2.121_944_4e-4));
        let low = self.mul(k, low);
        let r = self.log1p_rest(f, low);
        let r = self.add(r, f);
        self.fma(k, high, r)
    }

    fn float_of_int(&mut self, n: Val<'c>) -> Val<'c> {
        let ty = self.e.shaped("f32", self.lanes);
        self.e.op1("arith.sitofp", &[n], ty)
    }

    /// `log` for finite x > 0; else what a logarithm of `x` is.
    fn log_ends(&mut self, x: Val<'c>, log: Val<'c>) -> Val<'c> {
        let (zero, infinity) = (self.k(0.0), self.k(f32::INFINITY));
        let (nan, pole) = (self.k(f32::NAN), self.k(f32::NEG_INFINITY));
        let is_zero = self.e.cmpf("oeq", x, zero, self.lanes);
        let outside = self.e.select(is_zero, pole, nan);
        let below = self.e.cmpf("ole", x, zero, self.lanes);
        let log = self.e.select(below, outside, log);
        // True of NaN as well.
        let beyond = self.e.cmpf("uge", x, infinity, self.lanes);
        self.e.select(beyond, x, log)
    }

    /// x = 2ᵏ (1 + f) for x > 0, denormal ones too: (k as i32, f).
    fn log_parts(&mut self, x: Val<'c>) -> (Val<'c>, Val<'c>) {
        const SHIFT: i32 = 23;
        let (least, factor) = (self.k(f32::MIN_POSITIVE), self.k((1u32 << SHIFT) as f32));
        let denormal = self.e.cmpf("olt", x, least, self.lanes);
        let raised = self.mul(x, factor);
        let normal = self.e.select(denormal, raised, x);
        let bits = self.bits(normal);
        let (k, m) = self.split_exponent(bits);
        let (shift, none, one) = (self.i32(SHIFT), self.i32(0), self.k(1.0));
        let raised_by = self.e.select(denormal, shift, none);
        (self.e.binary("arith.subi", k, raised_by), self.sub(m, one))
    }

    fn log(&mut self, x: Val<'c>) -> Val<'c> {
        let (k, f) = self.log_parts(x);
        let log = self.log_sum(k, f);
        self.log_ends(x, log)
    }

    /// Exact for powers of two.
    fn log2(&mut self, x: Val<'c>) -> Val<'c> {
        let (k, f) = self.log_parts(x);
        let (k, none, log2e) = (self.float_of_int(k), self.k(0.0), self.k(std::f32::consts::LOG2_E));
        let rest = self.log1p_rest(f, none);
        let log = self.add(rest, f);
        let log = self.fma(log, log2e, k);
        self.log_ends(x, log)
    }

    /// ln(1 + x): of the rounded sum u = 2ᵏ m, with what was rounded away.
    fn log1p(&mut self, x: Val<'c>) -> Val<'c> {
        let one = self.k(1.0);
        let u = self.add(x, one);
        let back = self.sub(u, one);
        let lost = self.sub(x, back);
        let bits = self.bits(u);
        let (k, m) = self.split_exponent(bits);
        // 2⁻ᵏ; 0 where k is 127 or 128, and nothing is lost that counts.
        let (bias, shift, none) = (self.i32(127), self.i32(23), self.i32(0));
        let opposite = self.e.binary("arith.subi", bias, k);
        let opposite = self.e.binary("arith.maxsi", opposite, none);
        let scale = self.e.binary("arith.shli", opposite, shift);
        let scale = self.float_of_bits(scale);
        let f = self.sub(m, one);
        let f = self.fma(lost, scale, f);
        let log = self.log_sum(k, f);
        let log = self.log_ends(u, log);
        // The zeros keep their signs.
        let zero = self.k(0.0);
        let is_zero = self.e.cmpf("oeq", x, zero, self.lanes);
        self.e.select(is_zero, x, log)
    }

    /// tanh x = m / (m + 2) with m = e^2|x| − 1.
    fn tanh(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        // From here on the result rounds to 1.
        let a = self.at_most(a, 10.0);
        let a = self.add(a, a);
        let (m, scale) = self.scaled_expm1(a);
        let one = self.k(1.0);
        let rest = self.sub(scale, one);
        let m = self.fma(m, scale, rest);
        let two = self.k(2.0);
        let d = self.add(m, two);
        let t = self.div(m, d);
        self.with_sign(t, sign)
    }

    /// erf x = 1 − e^u with u = |x| · P(|x|), as −(e^u − 1), which keeps what is small.
    fn erf(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        // From here on the result rounds to 1.
        let a = self.at_most(a, 3.92);
        let p = self.polynomial(a, &ERFC_LOG);
        let u = self.mul(p, a);
        let (m, scale) = self.scaled_expm1(u);
        let one = self.k(1.0);
        let rest = self.sub(one, scale);
        let negative = self.e.op1("arith.negf", &[m], m.r#type());
        let magnitude = self.fma(negative, scale, rest);
        self.with_sign(magnitude, sign)
    }
}

/// Adding 1.5 · 2²³ leaves the rounded integer in the low bits.
const MAGIC: f32 = 12_582_912.0;
/// f32 lanes of a vector of AVX-512.
const AVX512_LANES: i64 = 16;
/// (e^r − 1 − r) / r² as a polynomial in r on [−ln 2 / 2, ln 2 / 2], to 0.24 units in the last place of e^r − 1.
const EXPM1: [f32; 5] = [0.5, 0.166_665_38, 0.041_666_266, 0.008_367_247, 0.001_394_759_2];
/// (ln(1 + f) − f + f² / 2) / f³ as a polynomial in f for 1 + f between √½ and √2, to 0.1 units in the last place of ln(1 + f).
const LOG1P: [f32; 8] = [
    0.333_333_16,
    -0.250_008_1,
    0.200_022_86,
    -0.166_245_5,
    0.141_812_09,
    -0.131_288_07,
    0.128_815_47,
    -0.078_593_48,
];
/// ln(1 − erf(x)) / x as a polynomial in x on [0, 3.92], to 0.6 units in the last place of erf(x).
const ERFC_LOG: [f32; 8] = [
    // As the series begins.
    -std::f32::consts::FRAC_2_SQRT_PI,
    -0.636_616_47,
    -0.102_814_41,
    0.019_321_714,
    -0.000_205_712_65,
    -0.001_251_750_2,
    0.000_381_002_3,
    -4.070_821_5e-5,
];

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

/// libm's name of a function of one f64, without the `f` of the f32 form; `None` when libm does not have it.
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
