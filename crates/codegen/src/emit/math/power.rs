//! Powers, by logarithms and exponentials in f64, whose errors are too small to affect the f32 result.

use super::{Floats, WIDE_MAGIC};
use crate::emit::builder::Val;
use std::f64::consts::FRAC_1_SQRT_2;

impl<'c> Floats<'_, 'c> {
    /// x to the power y, with all of C's special cases.
    pub(super) fn pow(&mut self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        let power = self.power(x, y);
        // Not positive, not normal, or not finite.
        let odd = self.outside_normal(x);
        let size = self.abs(y);
        let unbounded = self.compared("ugt", size, f32::MAX);
        let special = self.e.binary("arith.ori", odd, unbounded);
        self.seldom(special, [power], |f| [f.special_power(x, y)])[0]
    }

    /// x to the power y for finite x > 0 and finite y.
    fn power(&mut self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        let (x, y, mut f) = (self.widen(x), self.widen(y), self.wide());
        let log = f.wide_log2(x);
        let z = f.mul(log, y);
        let power = f.wide_exp2(z);
        self.narrow(power)
    }

    fn special_power(&mut self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        let a = self.abs(x);
        // The logarithm of 1 times an infinity is no number.
        let finite = self.at_most(y, f32::MAX);
        let finite = self.at_least(finite, f32::MIN);
        let power = self.power(a, finite);
        // Zeros and infinities.
        let (zero, infinite) = (self.compared("oeq", a, 0.0), self.compared("oeq", a, f32::INFINITY));
        let edge = self.e.binary("arith.ori", zero, infinite);
        let down = self.compared("olt", y, 0.0);
        let vanishes = self.e.binary("arith.xori", zero, down);
        let end = self.choose(vanishes, 0.0, f32::INFINITY);
        let power = self.select(edge, end, power);
        // Negative numbers: those to an odd power are negative, those to a fraction none.
        let half = self.k(0.5);
        let half = self.mul(y, half);
        let (whole, whole_half) = (self.truncated(y), self.truncated(half));
        let (fraction, odd) = (self.compare("une", y, whole), self.compare("une", half, whole_half));
        let (sign, none) = (self.sign(x), self.int(0));
        let sign = self.select(odd, sign, none);
        let sign = self.select(fraction, none, sign);
        let power = self.with_sign(power, sign);
        let (negative, inside) = (self.compared("olt", x, 0.0), self.compared("ogt", x, f32::NEG_INFINITY));
        let negative = self.both(negative, inside);
        let (bad, unordered) = (self.both(negative, fraction), self.compare("uno", x, y));
        let bad = self.e.binary("arith.ori", bad, unordered);
        let (nan, one) = (self.k(f32::NAN), self.k(1.0));
        let power = self.select(bad, nan, power);
        // Of these not even NaN is looked at.
        let (of_one, to_zero) = (self.compared("oeq", x, 1.0), self.compared("oeq", y, 0.0));
        let unit = self.e.binary("arith.ori", of_one, to_zero);
        self.select(unit, one, power)
    }

    /// The logarithm to the base 2 of a normal f64 x > 0.
    pub(super) fn wide_log2(&mut self, x: Val<'c>) -> Val<'c> {
        const DIGITS: i64 = (1 << 52) - 1;
        let root = FRAC_1_SQRT_2.to_bits() as i64;
        let bits = self.bits(x);
        let above = self.integer("arith.subi", bits, root);
        let m = self.integer("arith.andi", above, DIGITS);
        let m = self.integer("arith.addi", m, root);
        // The exponent as a number: an unsigned integer below 2⁵² is the digits of one between 2⁵² and 2⁵³.
        let k = self.integer("arith.addi", above, 1023 << 52);
        let k = self.integer("arith.shrui", k, 52);
        let k = self.integer("arith.ori", k, POWER_52.to_bits() as i64);
        let (k, m) = (self.float_of_bits(k), self.float_of_bits(m));
        let (zero, one) = (self.k(POWER_52 + 1023.0), self.k(1.0));
        let (k, f) = (self.sub(k, zero), self.sub(m, one));
        let p = self.polynomial(f, &LOG2);
        self.fma(f, p, k)
    }

    /// 2^z. The result overflows or underflows when it is converted to f32.
    pub(super) fn wide_exp2(&mut self, z: Val<'c>) -> Val<'c> {
        let z = self.at_most(z, 200.0);
        let z = self.at_least(z, -200.0);
        let magic = self.k(WIDE_MAGIC);
        let shifted = self.add(z, magic);
        let n = self.sub(shifted, magic);
        let r = self.sub(z, n);
        let p = self.polynomial(r, &EXP2);
        let (p, n) = (self.bits(p), self.bits(shifted));
        let n = self.integer("arith.shli", n, 52);
        let bits = self.e.binary("arith.addi", p, n);
        self.float_of_bits(bits)
    }
}

const POWER_52: f64 = 4_503_599_627_370_496.0;
/// log2 (1 + f) / f as a polynomial in f for 1 + f between √½ and √2, to 2⁻³⁵ of the logarithm.
const LOG2: [f64; 13] = [
    1.442_695_040_868_713,
    -0.721_347_520_869_095,
    0.480_898_361_394_313_13,
    -0.360_673_674_784_910_7,
    0.288_537_293_536_514_1,
    -0.240_453_167_540_458_53,
    0.206_175_358_369_339_45,
    -0.180_300_560_047_305_1,
    0.158_769_792_244_459_4,
    -0.143_156_876_674_659,
    0.144_748_820_128_333_98,
    -0.142_837_722_421_084_67,
    0.077_368_085_181_336_34,
];
/// 2^r as a polynomial in r up to ½, to 2⁻²⁹.
const EXP2: [f64; 7] = [
    1.000_000_000_554_703,
    0.693_147_205_746_331_3,
    0.240_226_468_919_351_4,
    0.055_503_287_636_157_49,
    0.009_618_488_797_736_665,
    0.001_339_993_534_768_06,
    0.000_153_458_530_968_694_45,
];
