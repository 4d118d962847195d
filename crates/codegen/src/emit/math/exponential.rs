//! Exponentials, and functions that are computed from them.

use super::{Floats, MAGIC};
use crate::emit::builder::Val;

/// An integer in the two representations that the instructions of different processors need. Unused representations are not computed.
#[derive(Clone, Copy)]
pub(super) struct Whole<'c> {
    float: Val<'c>,
    /// As i32, for integers that fit.
    integer: Val<'c>,
}

impl<'c> Floats<'_, 'c> {
    /// n = x / ln 2, rounded. Returns the bits of n + 1.5 · 2²³ + `bias`, and n.
    fn quotient(&mut self, x: Val<'c>, bias: f32) -> (Val<'c>, Val<'c>) {
        let (log2e, magic) = (self.k(std::f32::consts::LOG2_E), self.k(MAGIC + bias));
        let shifted = self.fma(x, log2e, magic);
        let n = self.sub(shifted, magic);
        (self.bits(shifted), n)
    }

    /// x = n ln 2 + r with |r| ≤ ln 2 / 2. Returns (n, r).
    pub(super) fn reduce(&mut self, x: Val<'c>) -> (Whole<'c>, Val<'c>) {
        let (bits, n) = self.quotient(x, 0.0);
        // ln 2 in two parts, the first with trailing zeros so that n · high is exact.
        let (high, low) = (self.k(-0.693_359_4), self.k(2.121_944_4e-4));
        let r = self.fma(n, high, x);
        let r = self.fma(n, low, r);
        (self.whole(bits, n), r)
    }

    /// Returns the integer n; `bits` are those of n + 1.5 · 2²³.
    fn whole(&mut self, bits: Val<'c>, n: Val<'c>) -> Whole<'c> {
        let integer = self.integer("arith.subi", bits, i64::from(MAGIC.to_bits()));
        Whole { float: n, integer }
    }

    /// e^x = m · s + s with a power of two s, for |x| ≤ 80. Returns (m, s). ln 2 is rounded, so the result is only for uses in which an error of 3 · 10⁻⁹ x
    /// is negligible.
    pub(super) fn scaled_expm1(&mut self, x: Val<'c>) -> (Val<'c>, Val<'c>) {
        // The exponent's bias comes with the bits.
        let (bits, n) = self.quotient(x, 127.0);
        let minus_ln2 = self.k(-std::f32::consts::LN_2);
        let r = self.fma(n, minus_ln2, x);
        let m = self.expm1_reduced(r);
        let shift = self.int(23);
        let scale = self.e.binary("arith.shli", bits, shift);
        (m, self.float_of_bits(scale))
    }

    /// e^r − 1 for |r| ≤ ln 2 / 2.
    pub(super) fn expm1_reduced(&mut self, r: Val<'c>) -> Val<'c> {
        let q = self.polynomial(r, &EXPM1);
        let rr = self.mul(r, r);
        self.fma(q, rr, r)
    }

    /// 2ⁿ for −126 ≤ n ≤ 127.
    fn power_of_two(&mut self, n: Val<'c>) -> Val<'c> {
        let (bias, shift) = (self.int(127), self.int(23));
        let n = self.e.binary("arith.addi", n, bias);
        let bits = self.e.binary("arith.shli", n, shift);
        self.float_of_bits(bits)
    }

    /// e^x, including results that are infinite, zero or denormal.
    pub(super) fn exp(&mut self, x: Val<'c>) -> Val<'c> {
        if self.has_avx512() {
            // Every n has its power of two: only r has to stay a number, where n has become so great that it says all.
            let (n, r) = self.reduce(x);
            let r = self.e.at_most_one(r, self.lanes);
            return self.scaled_exp(r, n);
        }
        let x = self.between(x, -104.0, 89.0);
        let (n, r) = self.reduce(x);
        self.scaled_exp(r, n)
    }

    /// 2^x, as [`Floats::exp`].
    pub(super) fn exp2(&mut self, x: Val<'c>) -> Val<'c> {
        let x = self.between(x, -151.0, 129.0);
        let magic = self.k(MAGIC);
        let shifted = self.add(x, magic);
        let n = self.sub(shifted, magic);
        let rest = self.sub(x, n);
        let ln2 = self.k(std::f32::consts::LN_2);
        let r = self.mul(rest, ln2);
        let bits = self.bits(shifted);
        let n = self.whole(bits, n);
        self.scaled_exp(r, n)
    }

    /// e^r · 2ⁿ for |r| ≤ ln 2 / 2 and n from −151 to 129; with AVX-512 for every n.
    pub(super) fn scaled_exp(&mut self, r: Val<'c>, n: Whole<'c>) -> Val<'c> {
        let [c2, c3, c4, c5, c6] = EXPM1;
        let p = self.polynomial(r, &[1.0, 1.0, c2, c3, c4, c5, c6]);
        if self.has_avx512() {
            return self.e.scale(p, n.float, self.lanes);
        }
        let n = n.integer;
        // 2ⁿ in two factors, as one would be no normal number.
        let shift = self.int(1);
        let half = self.e.binary("arith.shrsi", n, shift);
        let rest = self.e.binary("arith.subi", n, half);
        let (a, b) = (self.power_of_two(half), self.power_of_two(rest));
        let p = self.mul(p, a);
        self.mul(p, b)
    }

    /// e^x − 1, with full relative precision near zero; zeros keep their sign.
    pub(super) fn expm1(&mut self, x: Val<'c>) -> Val<'c> {
        let a = self.at_most(x, 89.0);
        // From here on the result rounds to −1.
        let a = self.at_least(a, -18.0);
        let (n, r) = self.reduce(a);
        let m = self.expm1_reduced(r);
        // Half of it at first: 2ⁿ is no number yet where e^x still is one.
        let (minus_one, half) = (self.int(-1), self.k(0.5));
        let below = self.e.binary("arith.addi", n.integer, minus_one);
        let scale = self.power_of_two(below);
        let rest = self.sub(scale, half);
        let y = self.fma(m, scale, rest);
        let y = self.add(y, y);
        self.e.binary("math.copysign", y, x)
    }

    /// sinh x = (e^x − e^−x) / 2, near zero by its series.
    pub(super) fn sinh(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        let (up, down) = self.half_exponentials(a);
        let far = self.sub(up, down);
        let near = self.odd_polynomial(a, &SINH);
        let small = self.compared("olt", a, 1.0);
        let magnitude = self.select(small, near, far);
        self.with_sign(magnitude, sign)
    }

    /// cosh x = (e^x + e^−x) / 2
    pub(super) fn cosh(&mut self, x: Val<'c>) -> Val<'c> {
        let a = self.abs(x);
        let (up, down) = self.half_exponentials(a);
        self.add(up, down)
    }

    /// e^a / 2, which is finite for some a for which e^a overflows, and e^−a / 2, for a ≥ 0.
    fn half_exponentials(&mut self, a: Val<'c>) -> (Val<'c>, Val<'c>) {
        let a = self.at_most(a, 90.0);
        let (n, r) = self.reduce(a);
        let minus_one = self.k(-1.0);
        let below = Whole {
            float: self.add(n.float, minus_one),
            integer: self.integer("arith.addi", n.integer, -1),
        };
        let (up, quarter) = (self.scaled_exp(r, below), self.k(0.25));
        (up, self.div(quarter, up))
    }

    /// tanh x = m / (m + 2) with m = e^2|x| − 1.
    pub(super) fn tanh(&mut self, x: Val<'c>) -> Val<'c> {
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
}

/// (e^r − 1 − r) / r² as a polynomial in r on [−ln 2 / 2, ln 2 / 2], to 0.24 units in the last place of e^r − 1.
const EXPM1: [f32; 5] = [0.5, 0.166_665_38, 0.041_666_266, 0.008_367_247, 0.001_394_759_2];
/// (sinh x / x − 1) / x² as a polynomial in x² up to 1, to 0.01 units in the last place of sinh x.
const SINH: [f32; 4] = [0.166_666_67, 0.008_333_31, 0.000_198_428_91, 2.782_266_6e-6];
