//! Trigonometric functions and their inverses.

use super::{Floats, MAGIC, WIDE_MAGIC};
use crate::emit::builder::Val;
use std::f64::consts::{FRAC_PI_2, PI};

/// The period by which an angle is reduced: a multiple of it is subtracted from the angle.
struct Period {
    /// Number of periods in π: 1 or 2.
    per_pi: f32,
    /// The period as a sum of parts. The first part is the nearest f32: subtracting a multiple of it from an f32 is exact.
    parts: [f32; 3],
    /// The offset of the multiples, in periods: 0 or ½.
    offset: f32,
}

impl Period {
    /// Multiples of π.
    const PI: Period = Period {
        per_pi: 1.0,
        parts: [std::f32::consts::PI, -8.742_278e-8, -3.430_249e-15],
        offset: 0.0,
    };
    /// Odd multiples of π/2.
    const ODD: Period = Period {
        offset: 0.5,
        ..Period::PI
    };
    /// Multiples of π/2.
    const HALF: Period = Period {
        per_pi: 2.0,
        parts: [std::f32::consts::FRAC_PI_2, -4.371_139e-8, -1.715_124_5e-15],
        offset: 0.0,
    };
}

impl<'c> Floats<'_, 'c> {
    /// sin x = ±sin r
    pub(super) fn sin(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        let (r, n) = self.angle(a, &Period::PI);
        let s = self.sin_reduced(r);
        let odd = self.integer("arith.shli", n, 31);
        let sign = self.e.binary("arith.xori", sign, odd);
        self.flip(s, sign)
    }

    /// cos x = ±sin r
    pub(super) fn cos(&mut self, x: Val<'c>) -> Val<'c> {
        let a = self.abs(x);
        let (r, n) = self.angle(a, &Period::ODD);
        let s = self.sin_reduced(r);
        let odd = self.integer("arith.shli", n, 31);
        self.flip(s, odd)
    }

    /// tan x = tan r or −1 / tan r
    pub(super) fn tan(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        let (r, n) = self.angle(a, &Period::HALF);
        let t = self.odd_polynomial(r, &TAN);
        let (odd, none) = (self.integer("arith.andi", n, 1), self.int(0));
        let odd = self.e.cmpi("ne", odd, none, Some(self.lanes));
        let (one, minus_one) = (self.k(1.0), self.k(-1.0));
        let (above, below) = (self.select(odd, minus_one, t), self.select(odd, t, one));
        let t = self.div(above, below);
        self.flip(t, sign)
    }

    /// sin r for |r| ≤ π/2.
    fn sin_reduced(&mut self, r: Val<'c>) -> Val<'c> {
        self.odd_polynomial(r, &SIN)
    }

    /// x + x³ P(x²)
    pub(super) fn odd_polynomial(&mut self, x: Val<'c>, coefficients: &[f32]) -> Val<'c> {
        let square = self.mul(x, x);
        let p = self.polynomial(square, coefficients);
        let cube = self.mul(square, x);
        self.fma(cube, p, x)
    }

    /// a = (n + offset) · period + r for a ≥ 0. Returns r, and an integer whose last bit is that of n, or of n + 1 with the offset.
    fn angle(&mut self, a: Val<'c>, period: &Period) -> (Val<'c>, Val<'c>) {
        let magic = self.k(MAGIC + 2.0 * period.offset);
        let (inverse, offset) = (
            self.k(period.per_pi * std::f32::consts::FRAC_1_PI),
            self.k(period.offset),
        );
        let shifted = if period.offset == 0.0 {
            self.fma(a, inverse, magic)
        } else {
            let before = self.k(-period.offset);
            let quotient = self.fma(a, inverse, before);
            self.add(quotient, magic)
        };
        let mut n = self.sub(shifted, magic);
        if period.offset != 0.0 {
            n = self.add(n, offset);
        }
        let mut r = a;
        for part in period.parts {
            let part = self.k(-part);
            r = self.fma(n, part, r);
        }
        let bits = self.bits(shifted);
        let large = self.compared("ogt", a, ANGLE_LIMIT);
        let [r, bits] = self.seldom(large, [r, bits], |f| f.large_angle(a, period));
        (r, bits)
    }

    /// [`Floats::angle`] for all a, in f64. The products with the parts of 1/π are exact. Even multiples of the period are removed from each product before
    /// the products are added.
    fn large_angle(&mut self, a: Val<'c>, period: &Period) -> [Val<'c>; 2] {
        let (a, mut f) = (self.widen(a), self.wide());
        let (half, minus_two) = (f.k(0.5), f.k(-2.0));
        let parts = INVERSE_PI.map(|part| {
            let part = f.k(part * f64::from(period.per_pi));
            let product = f.mul(a, part);
            let pairs = f.mul(product, half);
            let pairs = f.e.op1("math.roundeven", &[pairs], f.ty());
            f.fma(pairs, minus_two, product)
        });
        let sum = parts[1..].iter().fold(parts[0], |sum, &part| f.add(sum, part));
        let (before, offset) = (f.k(-f64::from(period.offset)), f.k(period.offset));
        let magic = f.k(WIDE_MAGIC + 2.0 * f64::from(period.offset));
        let quotient = f.add(sum, before);
        let shifted = f.add(quotient, magic);
        let n = f.sub(shifted, magic);
        let n = f.add(n, offset);
        // What cancels goes first: the sum loses nothing of what remains.
        let rest = f.sub(parts[0], n);
        let rest = parts[1..].iter().fold(rest, |sum, &part| f.add(sum, part));
        let pi = f.k(PI / f64::from(period.per_pi));
        let (r, bits) = (f.mul(rest, pi), f.bits(shifted));
        let ty = self.e.shaped("i32", Some(self.lanes));
        [self.narrow(r), self.e.op1("arith.trunci", &[bits], ty)]
    }

    /// asin x = x + x³ P(x²) up to ½, from there on π/2 − 2 asin √((1 − x) / 2).
    pub(super) fn asin(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        let (v, outer) = self.asin_parts(a);
        let (high, low) = (self.k(FRAC_PI_2), self.k(PI_LOW / 2.0));
        let minus_two = self.k(-2.0);
        let rest = self.fma(v, minus_two, low);
        let rest = self.add(high, rest);
        let v = self.select(outer, rest, v);
        self.with_sign(v, sign)
    }

    /// acos x = π/2 − asin x, or an equivalent expression without cancellation.
    pub(super) fn acos(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        let (v, outer) = self.asin_parts(a);
        let negative = self.compared("olt", x, 0.0);
        let end = self.choose(negative, PI, 0.0);
        let end_low = self.choose(negative, PI_LOW, 0.0);
        let (middle, middle_low) = (self.k(FRAC_PI_2), self.k(PI_LOW / 2.0));
        let (high, low) = (self.select(outer, end, middle), self.select(outer, end_low, middle_low));
        let twice = self.add(v, v);
        let v = self.select(outer, twice, v);
        // 2 asin … is added where x is positive, asin x where it is negative.
        let (top, none) = (self.int(i64::from(i32::MIN)), self.int(0));
        let inner = self.select(outer, none, top);
        let sign = self.e.binary("arith.xori", sign, inner);
        let v = self.flip(v, sign);
        let rest = self.add(v, low);
        self.add(high, rest)
    }

    /// asin a for 0 ≤ a ≤ ½, and asin √((1 − a) / 2) for larger a. Also returns the mask of the lanes with larger a.
    fn asin_parts(&mut self, a: Val<'c>) -> (Val<'c>, Val<'c>) {
        let outer = self.compared("ogt", a, 0.5);
        let (half, minus_half) = (self.k(0.5), self.k(-0.5));
        let rest = self.fma(a, minus_half, half);
        let (root, square) = (self.sqrt(rest), self.mul(a, a));
        let (y, yy) = (self.select(outer, root, a), self.select(outer, rest, square));
        let p = self.polynomial(yy, &ASIN);
        let cube = self.mul(yy, y);
        (self.fma(cube, p, y), outer)
    }

    /// atan x up to 1, from there on π/2 − atan 1/x.
    pub(super) fn atan(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        let beyond = self.compared("ogt", a, 1.0);
        let one = self.k(1.0);
        let (above, below) = (self.select(beyond, one, a), self.select(beyond, a, one));
        let q = self.div(above, below);
        let v = self.odd_polynomial(q, &ATAN);
        let (high, low) = (self.k(FRAC_PI_2), self.k(PI_LOW / 2.0));
        let rest = self.sub(low, v);
        let rest = self.add(high, rest);
        let v = self.select(beyond, rest, v);
        self.with_sign(v, sign)
    }

    /// The angle between the positive x axis and the point (x, y).
    pub(super) fn atan2(&mut self, y: Val<'c>, x: Val<'c>) -> Val<'c> {
        let ((ay, sign), (ax, left)) = (self.split_sign(y), self.split_sign(x));
        let steep = self.compare("ogt", ay, ax);
        let (large, small) = (self.select(steep, ay, ax), self.select(steep, ax, ay));
        // Of equals, infinite ones too, the quotient is 1, of zeros 0.
        let (equal, zero) = (self.compare("oeq", ay, ax), self.compared("oeq", ay, 0.0));
        let (one, unit) = (self.k(1.0), self.choose(zero, 0.0, 1.0));
        let (above, below) = (self.select(equal, unit, small), self.select(equal, one, large));
        let q = self.div(above, below);
        let v = self.odd_polynomial(q, &ATAN);
        let none = self.int(0);
        let negative = self.e.cmpi("ne", left, none, Some(self.lanes));
        let (end, end_low) = (self.choose(negative, PI, 0.0), self.choose(negative, PI_LOW, 0.0));
        let (middle, middle_low) = (self.k(FRAC_PI_2), self.k(PI_LOW / 2.0));
        let (high, low) = (self.select(steep, middle, end), self.select(steep, middle_low, end_low));
        // On the left of an axis the angle grows as the quotient does, on the right it falls.
        let top = self.int(i64::from(i32::MIN));
        let falls = self.select(steep, top, none);
        let falls = self.e.binary("arith.xori", falls, left);
        let v = self.flip(v, falls);
        let rest = self.add(v, low);
        let angle = self.add(high, rest);
        self.with_sign(angle, sign)
    }
}

/// Up to this magnitude, angles are reduced in f32.
const ANGLE_LIMIT: f32 = 32768.0;
/// π minus the nearest f32.
const PI_LOW: f64 = -8.742_277_657_347_586e-8;
/// 1/π in parts of 28 bits, whose products with f32 are exact.
const INVERSE_PI: [f64; 7] = [
    0.318_309_884_518_384_93,
    1.665_405_736_928_082_8e-9,
    1.138_005_023_905_068e-18,
    1.263_413_009_450_141_1e-26,
    8.341_433_828_509_763e-35,
    5.794_356_641_444_275e-44,
    3.526_979_587_202_148e-52,
];
/// (sin r / r − 1) / r² as a polynomial in r² up to π/2, to 0.2 units in the last place of sin r. The second coefficient is slightly below the optimum, so
/// that no sine exceeds 1.
const SIN: [f32; 4] = [-0.166_666_6, 0.008_333_067, -0.000_198_097_67, 2.606_047e-6];
/// (tan r / r − 1) / r² as a polynomial in r² up to π/4, to 0.31 units in the last place of tan r.
const TAN: [f32; 6] = [
    0.333_331_5,
    0.133_389_92,
    0.053_395_09,
    0.024_488_7,
    0.003_024_845_4,
    0.009_442_313,
];
/// (asin y / y − 1) / y² as a polynomial in y² up to ½, to 0.08 units in the last place of asin y.
const ASIN: [f32; 5] = [0.166_667_52, 0.074_953_064, 0.045_469_772, 0.024_180_839, 0.042_166_132];
/// (atan q / q − 1) / q² as a polynomial in q² up to 1, to 0.28 units in the last place of atan q.
const ATAN: [f32; 8] = [
    -0.333_331_53,
    0.199_937_67,
    -0.142_110_02,
    0.106_657_72,
    -0.075_516_81,
    0.043_205_25,
    -0.016_363_734,
    0.002_919_626,
];
