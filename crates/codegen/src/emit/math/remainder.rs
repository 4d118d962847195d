//! Remainders, and lengths of two-dimensional vectors.

use super::Floats;
use crate::emit::builder::Val;

impl<'c> Floats<'_, 'c> {
    /// x − n y, exactly. The result is smaller in magnitude than y and has the sign of x.
    pub(super) fn fmod(&mut self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        let ((a, sign), b) = (self.split_sign(x), self.abs(y));
        let quotient = self.div(a, b);
        let rest = self.take_multiple(a, b, quotient);
        let large = self.compared("oge", quotient, QUOTIENT_LIMIT);
        let [rest] = self.seldom(large, [rest], |s| [s.large_quotient(a, b)]);
        let (unbounded, finite) = (
            self.compared("oeq", b, f32::INFINITY),
            self.compared("olt", a, f32::INFINITY),
        );
        let whole = self.both(unbounded, finite);
        let rest = self.select(whole, a, rest);
        self.with_sign(rest, sign)
    }

    /// a − n b for the truncated quotient n of a and b. Exact if n is so small that the last digit of the product is one of a's or b's.
    fn take_multiple(&mut self, a: Val<'c>, b: Val<'c>, quotient: Val<'c>) -> Val<'c> {
        let n = self.truncated(quotient);
        let n = self.negate(n);
        let rest = self.fma(n, b, a);
        // The quotient may have been rounded up to a whole number.
        let (again, below) = (self.add(rest, b), self.compared("olt", rest, 0.0));
        self.select(below, again, rest)
    }

    /// The remainder of f32 for a quotient of any size, which has up to 277 bits. Computed in f64: multiples of b are subtracted, with decreasing powers of
    /// two.
    fn large_quotient(&mut self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        const STEP: i32 = 50;
        let (a, b, mut f) = (self.widen(a), self.widen(b), self.wide());
        let mut rest = a;
        for step in (0..6).rev() {
            let factor = f.k(f64::from(step * STEP).exp2());
            let multiple = f.mul(b, factor);
            let quotient = f.div(rest, multiple);
            rest = f.take_multiple(rest, multiple, quotient);
        }
        self.narrow(rest)
    }

    /// √(x² + y²), also if the squares overflow or underflow.
    pub(super) fn hypot(&mut self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        let (a, b) = (self.abs(x), self.abs(y));
        let length = self.root_of_squares(a, b);
        let steep = self.compare("ogt", b, a);
        let larger = self.select(steep, b, a);
        let (small, large) = (f64::from(SMALL), f64::from(LARGE));
        let (above, below) = (self.compared("ogt", larger, small), self.compared("olt", larger, large));
        let inside = self.both(above, below);
        let yes = self.e.constant(&format!("dense<true> : vector<{}xi1>", self.lanes));
        let outside = self.e.binary("arith.xori", inside, yes);
        self.seldom(outside, [length], |s| {
            let low = s.compared("olt", larger, 1.0);
            let (factor, inverse) = (
                s.choose(low, 1.0 / small / small, small * small),
                s.choose(low, small * small, 1.0 / small / small),
            );
            let (p, q) = (s.mul(a, factor), s.mul(b, factor));
            let length = s.root_of_squares(p, q);
            let length = s.mul(length, inverse);
            // Infinite even beside NaN.
            let (first, second) = (s.compared("oeq", a, f32::INFINITY), s.compared("oeq", b, f32::INFINITY));
            let unbounded = s.e.binary("arith.ori", first, second);
            let infinity = s.k(f32::INFINITY);
            [s.select(unbounded, infinity, length)]
        })[0]
    }

    fn root_of_squares(&mut self, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        let square = self.mul(b, b);
        let sum = self.fma(a, a, square);
        self.sqrt(sum)
    }
}

/// Quotients of f32 below this limit have at least one bit for the fraction.
const QUOTIENT_LIMIT: f32 = 4_194_304.0;
/// The squares of numbers between these limits neither overflow nor underflow. The loss for smaller numbers is below the precision of the result.
const SMALL: f32 = 1.0 / LARGE;
const LARGE: f32 = 1_125_899_906_842_624.0;
