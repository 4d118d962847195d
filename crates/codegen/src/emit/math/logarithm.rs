//! Logarithms, and functions that are computed from them.

use super::Floats;
use crate::emit::builder::Val;

impl<'c> Floats<'_, 'c> {
    /// x = 2ᵏ (1 + f) with 1 + f between √½ and √2, from the bits of a normal x > 0. Returns k as i32, and 1 + f.
    fn split_exponent(&mut self, bits: Val<'c>) -> (Val<'c>, Val<'c>) {
        let (root, shift) = (self.int(std::f32::consts::FRAC_1_SQRT_2.to_bits().into()), self.int(23));
        let above = self.e.binary("arith.subi", bits, root);
        let k = self.e.binary("arith.shrsi", above, shift);
        let exponent = self.e.binary("arith.shli", k, shift);
        let m = self.e.binary("arith.subi", bits, exponent);
        (k, self.float_of_bits(m))
    }

    /// ln(1 + f) − f + `low`, for 1 + f between √½ and √2.
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
        let (high, low) = (self.k(0.693_359_4), self.k(-2.121_944_4e-4));
        let low = self.mul(k, low);
        let r = self.log1p_rest(f, low);
        let r = self.add(r, f);
        self.fma(k, high, r)
    }

    fn float_of_int(&mut self, n: Val<'c>) -> Val<'c> {
        let ty = self.ty();
        self.e.op1("arith.sitofp", &[n], ty)
    }

    /// Returns `log` for finite x > 0; otherwise the special value of a logarithm of `x`: −∞, NaN, or `x` itself if it is ∞ or NaN.
    fn log_ends(&mut self, x: Val<'c>, log: Val<'c>) -> Val<'c> {
        let (zero, infinity) = (self.k(0.0), self.k(f32::INFINITY));
        let (nan, pole) = (self.k(f32::NAN), self.k(f32::NEG_INFINITY));
        let is_zero = self.compare("oeq", x, zero);
        let outside = self.select(is_zero, pole, nan);
        let below = self.compare("ole", x, zero);
        let log = self.select(below, outside, log);
        // True of NaN as well.
        let beyond = self.compare("uge", x, infinity);
        self.select(beyond, x, log)
    }

    /// A logarithm of x = 2ᵏ (1 + f), which `finish` computes from k and f. Handles denormal, zero, negative, infinite and NaN operands.
    fn logarithm(&mut self, x: Val<'c>, finish: fn(&mut Floats<'_, 'c>, Val<'c>, Val<'c>) -> Val<'c>) -> Val<'c> {
        let bits = self.bits(x);
        let (k, m) = self.split_exponent(bits);
        let one = self.k(1.0);
        let f = self.sub(m, one);
        let k = self.float_of_int(k);
        let log = finish(self, k, f);
        let special = self.outside_normal(x);
        self.seldom(special, [log], |s| {
            // Denormal numbers as normal ones.
            const SHIFT: f32 = 23.0;
            let factor = s.k(SHIFT.exp2());
            let raised = s.mul(x, factor);
            let bits = s.bits(raised);
            let (k, m) = s.split_exponent(bits);
            let (k, shift) = (s.float_of_int(k), s.k(SHIFT));
            let (k, one) = (s.sub(k, shift), s.k(1.0));
            let f = s.sub(m, one);
            let log = finish(s, k, f);
            [s.log_ends(x, log)]
        })[0]
    }

    pub(super) fn log(&mut self, x: Val<'c>) -> Val<'c> {
        self.logarithm(x, |s, k, f| s.log_sum(k, f))
    }

    /// The logarithm to base 2; exact for powers of two.
    pub(super) fn log2(&mut self, x: Val<'c>) -> Val<'c> {
        self.logarithm(x, |s, k, f| {
            let (none, log2e) = (s.k(0.0), s.k(std::f32::consts::LOG2_E));
            let rest = s.log1p_rest(f, none);
            let log = s.add(rest, f);
            s.fma(log, log2e, k)
        })
    }

    /// The logarithm to base 10; exact for powers of ten.
    pub(super) fn log10(&mut self, x: Val<'c>) -> Val<'c> {
        self.logarithm(x, |s, k, f| {
            let none = s.k(0.0);
            let rest = s.log1p_rest(f, none);
            // The logarithms of 2 and e in two parts, the first of 2 with trailing zeros so that its product with k is exact.
            let (of_two, of_two_low) = (s.k(0.301_025_39), s.k(4.605_039e-6));
            let (of_e, of_e_low) = (s.k(std::f32::consts::LOG10_E), s.k(-1.010_305e-8));
            let low = s.mul(k, of_two_low);
            let low = s.fma(rest, of_e, low);
            let low = s.fma(f, of_e_low, low);
            let low = s.fma(f, of_e, low);
            s.fma(k, of_two, low)
        })
    }

    /// ln(1 + x): the logarithm of the rounded sum u = 2ᵏ m, corrected by the rounding error of the sum.
    pub(super) fn log1p(&mut self, x: Val<'c>) -> Val<'c> {
        let one = self.k(1.0);
        let u = self.add(x, one);
        let back = self.sub(u, one);
        let lost = self.sub(x, back);
        let bits = self.bits(u);
        let (k, m) = self.split_exponent(bits);
        // 2⁻ᵏ; 0 where k is 127 or 128, and nothing is lost that counts.
        let (bias, shift, none) = (self.int(127), self.int(23), self.int(0));
        let opposite = self.e.binary("arith.subi", bias, k);
        let opposite = self.e.binary("arith.maxsi", opposite, none);
        let scale = self.e.binary("arith.shli", opposite, shift);
        let scale = self.float_of_bits(scale);
        let f = self.sub(m, one);
        let f = self.fma(lost, scale, f);
        let k = self.float_of_int(k);
        let log = self.log_sum(k, f);
        let special = self.outside_normal(u);
        let [log] = self.seldom(special, [log], |s| [s.log_ends(u, log)]);
        // The zeros keep their signs.
        self.e.binary("math.copysign", log, x)
    }

    /// Returns ln x of an f64 vector, rounded to f32.
    fn narrow_log(&mut self, x: Val<'c>) -> Val<'c> {
        let mut f = self.wide();
        let (log, ln2) = (f.wide_log2(x), f.k(std::f64::consts::LN_2));
        let log = f.mul(log, ln2);
        self.narrow(log)
    }

    /// asinh x = ln (x + √(x² + 1))
    pub(super) fn asinh(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        let sum = self.with_root(a, 1.0);
        let log = self.narrow_log(sum);
        let near = self.odd_polynomial(a, &[-1.0 / 6.0, 3.0 / 40.0, -15.0 / 336.0]);
        let small = self.compared("olt", a, NEAR_ZERO);
        let log = self.select(small, near, log);
        let beyond = self.compared("uge", a, f32::INFINITY);
        let log = self.select(beyond, a, log);
        self.with_sign(log, sign)
    }

    /// acosh x = ln (x + √(x² − 1))
    pub(super) fn acosh(&mut self, x: Val<'c>) -> Val<'c> {
        let sum = self.with_root(x, -1.0);
        let log = self.narrow_log(sum);
        let (beyond, below) = (self.compared("uge", x, f32::INFINITY), self.compared("olt", x, 1.0));
        let log = self.select(beyond, x, log);
        let nan = self.k(f32::NAN);
        self.select(below, nan, log)
    }

    /// x + √(x² + c) in f64.
    fn with_root(&mut self, x: Val<'c>, c: f64) -> Val<'c> {
        let (x, mut f) = (self.widen(x), self.wide());
        let c = f.k(c);
        let square = f.fma(x, x, c);
        let root = f.sqrt(square);
        f.add(x, root)
    }

    /// atanh x = ½ ln ((1 + x) / (1 − x))
    pub(super) fn atanh(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        let quotient = {
            let (a, mut f) = (self.widen(a), self.wide());
            let one = f.k(1.0);
            let (above, below) = (f.add(one, a), f.sub(one, a));
            f.div(above, below)
        };
        let (log, half) = (self.narrow_log(quotient), self.k(0.5));
        let log = self.mul(log, half);
        let near = self.odd_polynomial(a, &[1.0 / 3.0, 1.0 / 5.0, 1.0 / 7.0]);
        let small = self.compared("olt", a, NEAR_ZERO);
        let log = self.select(small, near, log);
        let (inside, end) = (self.compared("olt", a, 1.0), self.compared("oeq", a, 1.0));
        let outside = self.choose(end, f32::INFINITY, f32::NAN);
        let log = self.select(inside, log, outside);
        self.with_sign(log, sign)
    }
}

/// Magnitude below which short series are used.
const NEAR_ZERO: f32 = 0.0625;
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
