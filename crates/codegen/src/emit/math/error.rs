//! The error function and its complement.

use super::Floats;
use crate::emit::builder::Val;

impl<'c> Floats<'_, 'c> {
    /// erf x = 1 − e^u with u = |x| · P(|x|), as −(e^u − 1), which keeps what is small.
    pub(super) fn erf(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        // From here on the result rounds to 1.
        let a = self.at_most(a, 3.92);
        let p = self.polynomial(a, &ERFC_LOG);
        let u = self.mul(p, a);
        let (m, scale) = self.scaled_expm1(u);
        let one = self.k(1.0);
        let rest = self.sub(one, scale);
        let negative = self.negate(m);
        let magnitude = self.fma(negative, scale, rest);
        self.with_sign(magnitude, sign)
    }

    /// erfc x = e^−x² P((x − K) / (x + K)) for x ≥ 0, in f64; that of −x is what is left of 2.
    pub(super) fn erfc(&mut self, x: Val<'c>) -> Val<'c> {
        // From here on the result rounds to 0.
        let a = self.abs(x);
        let a = self.at_most(a, 10.1);
        // The quotient to f32's precision, which a step of Newton's doubles.
        let (one, middle) = (self.k(1.0), self.k(ERFC_MIDDLE));
        let sum = self.add(a, middle);
        let inverse = self.div(one, sum);
        let (a, inverse) = (self.widen(a), self.widen(inverse));
        let product = {
            let mut f = self.wide();
            let (middle, two) = (f.k(ERFC_MIDDLE), f.k(2.0));
            let sum = f.add(a, middle);
            let negative = f.negate(sum);
            let rest = f.fma(negative, inverse, two);
            let difference = f.sub(a, middle);
            let quotient = f.mul(difference, inverse);
            let t = f.mul(quotient, rest);
            let p = f.polynomial(t, &ERFC);
            let (square, scale) = (f.mul(a, a), f.k(-std::f64::consts::LOG2_E));
            let z = f.mul(square, scale);
            let exponential = f.wide_exp2(z);
            f.mul(p, exponential)
        };
        let (value, two) = (self.narrow(product), self.k(2.0));
        let rest = self.sub(two, value);
        let negative = self.compared("olt", x, 0.0);
        self.select(negative, rest, value)
    }
}

/// Where the variable of [`ERFC`] is 0.
const ERFC_MIDDLE: f64 = 2.5;
/// e^x² erfc x as a polynomial in (x − 2.5) / (x + 2.5) for x up to 10.1, to 2⁻²⁹.
const ERFC: [f64; 11] = [
    0.210_806_364_269_903_85,
    -0.371_736_729_736_954_04,
    0.251_713_163_248_968_1,
    -0.125_033_188_992_200_1,
    0.039_923_115_458_235_61,
    -0.003_992_283_229_002_869,
    -0.002_645_942_241_215_82,
    0.000_868_793_995_795_895_3,
    0.000_236_602_306_486_193_96,
    -0.000_110_903_880_493_398_59,
    -3.761_312_793_528_28e-5,
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
