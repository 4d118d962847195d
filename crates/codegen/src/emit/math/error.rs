//! The error function and its complement.

use super::{Floats, MAGIC};
use crate::emit::builder::Val;

impl<'c> Floats<'_, 'c> {
    /// erf x, by the algorithm that is fastest for these vectors.
    pub(super) fn erf(&mut self, x: Val<'c>) -> Val<'c> {
        let (a, sign) = self.split_sign(x);
        let magnitude = match self.has_avx512() {
            true => self.tabled_erf(a),
            false => self.exponential_erf(a),
        };
        self.with_sign(magnitude, sign)
    }

    /// erf a for a ≥ 0, by a polynomial around the nearest of sixteen points. The coefficients are in lanes of six vectors.
    fn tabled_erf(&mut self, a: Val<'c>) -> Val<'c> {
        // From here on the result rounds to 1; half a step further the number of the point would begin anew.
        let a = self.at_most(a, 3.93);
        let (per_unit, magic) = (self.k(1.0 / ERF_STEP), self.k(MAGIC));
        let shifted = self.fma(a, per_unit, magic);
        let (point, step) = (self.sub(shifted, magic), self.k(-ERF_STEP));
        let t = self.fma(point, step, a);
        let point = self.bits(shifted);
        let [constant, rest @ ..] = ERF.each_ref().map(|table| self.e.lane_of(table, point, self.lanes));
        let sum = rest.into_iter().rev().reduce(|sum, c| self.fma(sum, t, c));
        match sum {
            Some(sum) => self.fma(sum, t, constant),
            None => constant,
        }
    }

    /// erf a for a ≥ 0 as 1 − e^u with u = a · P(a), computed as −(e^u − 1) to keep the precision of small results.
    fn exponential_erf(&mut self, a: Val<'c>) -> Val<'c> {
        // From here on the result rounds to 1.
        let a = self.at_most(a, 3.92);
        let p = self.polynomial(a, &ERFC_LOG);
        let u = self.mul(p, a);
        let (m, scale) = self.scaled_expm1(u);
        let one = self.k(1.0);
        let rest = self.sub(one, scale);
        let negative = self.negate(m);
        self.fma(negative, scale, rest)
    }

    /// erfc x = e^−x² P((x − K) / (x + K)) for x ≥ 0, in f64; erfc(−x) = 2 − erfc x.
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

/// The x at which the variable of [`ERFC`] is 0.
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
/// The distance between the points of [`ERF`]. Multiples of it are exact in f32.
const ERF_STEP: f32 = 65.0 / 256.0;
/// erf(n · [`ERF_STEP`] + t) for n from 0 to 15 and |t| ≤ [`ERF_STEP`] / 2: the coefficients of t⁰, t¹, …, t⁵, each for all n, to 2.3 units in
/// the last place of erf.
const ERF: [[f32; 16]; 6] = [
    [
        0.0,
        0.280_463,
        0.527_338_45,
        0.718_623_8,
        0.849_086_05,
        0.927_408_16,
        0.968_796_4,
        0.988_047_5,
        0.995_929_2,
        0.998_769_46,
        0.999_670_3,
        0.999_921_8,
        0.999_983_6,
        0.999_996_96,
        0.999_999_5,
        0.999_999_94,
    ],
    [
        std::f32::consts::FRAC_2_SQRT_PI,
        1.057_929_6,
        0.871_890_6,
        0.631_641_57,
        0.402_237_77,
        0.225_163_76,
        0.110_794_336,
        0.047_922_57,
        0.018_220_747,
        0.006_089_697,
        0.001_789_076_3,
        0.000_462_025_17,
        0.000_104_883_28,
        2.092_911_4e-5,
        3.671_129e-6,
        5.660_477e-7,
    ],
    [
        0.0,
        -0.268_609_02,
        -0.442_749_74,
        -0.481_129_53,
        -0.408_523_62,
        -0.285_855_56,
        -0.168_790_95,
        -0.085_176_036,
        -0.037_010_87,
        -0.013_915_471,
        -0.004_542_19,
        -0.001_290_205_6,
        -0.000_319_474_67,
        -6.905_132e-5,
        -1.304_099_7e-5,
        -2.153_797e-6,
    ],
    [
        -0.376_122_47,
        -0.307_169_68,
        -0.140_740_36,
        0.033_772_565,
        0.142_520_25,
        0.166_876_94,
        0.134_495_69,
        0.084_950_98,
        0.044_046_145,
        0.019_170_249,
        0.007_092_71,
        0.002_248_54,
        0.000_614_050_7,
        0.000_144_996_99,
        2.968_717_3e-5,
        5.281_384_3e-6,
    ],
    [
        0.0,
        0.127_549_28,
        0.182_122_44,
        0.146_901_16,
        0.063_946_32,
        -0.010_121_243,
        -0.045_737_334,
        -0.046_910_893,
        -0.032_401_29,
        -0.017_337_71,
        -0.007_554_205_6,
        -0.002_745_713,
        -0.000_844_105_55,
        -0.000_221_423_03,
        -4.985_702e-5,
        -9.677_536e-6,
    ],
    [
        0.112_190_85,
        0.078_588_92,
        0.005_177_163,
        -0.054_481_21,
        -0.068_209_66,
        -0.044_568_844,
        -0.012_369_598,
        0.007_811_770_3,
        0.013_017_314_5,
        0.010_016_662,
        0.005_499_138,
        0.002_372_815_5,
        0.000_837_245_96,
        0.000_246_638_23,
        6.141_714_4e-5,
        1.303_457e-5,
    ],
];
