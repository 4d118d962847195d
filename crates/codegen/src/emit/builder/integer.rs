//! Index arithmetic, constant-folded where operands are known, and comparisons.

use super::{Emitter, Int, Val};
use melior::ir::attribute::IntegerAttribute;

impl<'c> Emitter<'c> {
    /// The `i64` value of `i`.
    pub fn int(&mut self, i: impl Into<Int<'c>>) -> Val<'c> {
        match i.into() {
            Int::Const(c) => self.constant(&format!("{c} : i64")),
            Int::Dyn(v) => v,
        }
    }

    fn int_op(&mut self, name: &str, a: Int<'c>, b: Int<'c>, fold: impl FnOnce(i64, i64) -> i64) -> Int<'c> {
        if let (Int::Const(a), Int::Const(b)) = (a, b) {
            return Int::Const(fold(a, b));
        }
        let (a, b) = (self.int(a), self.int(b));
        let ty = self.i64();
        Int::Dyn(self.op1(name, &[a, b], ty))
    }

    /// a + b
    pub fn add(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (a, Int::Const(0)) => a,
            (Int::Const(0), b) => b,
            (a, b) => self.int_op("arith.addi", a, b, |a, b| a + b),
        }
    }

    /// a − b
    pub fn sub(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (a, Int::Const(0)) => a,
            (a, b) => self.int_op("arith.subi", a, b, |a, b| a - b),
        }
    }

    /// a · b
    pub fn mul(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (_, Int::Const(0)) | (Int::Const(0), _) => Int::Const(0),
            (a, Int::Const(1)) => a,
            (Int::Const(1), b) => b,
            (a, b) => self.int_op("arith.muli", a, b, |a, b| a * b),
        }
    }

    /// The quotient of non-negative integers.
    pub fn div(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (a, Int::Const(1)) => a,
            (a, b) => self.int_op("arith.divui", a, b, |a, b| a / b),
        }
    }

    /// The remainder of non-negative integers.
    pub fn rem(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        match (a.into(), b.into()) {
            (_, Int::Const(1)) => Int::Const(0),
            (a, b) => self.int_op("arith.remui", a, b, |a, b| a % b),
        }
    }

    /// The smaller of two signed integers.
    pub fn min(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        self.int_op("arith.minsi", a.into(), b.into(), i64::min)
    }

    /// The larger of two signed integers.
    pub fn max(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        self.int_op("arith.maxsi", a.into(), b.into(), i64::max)
    }

    /// a / b, rounded up, for non-negative integers.
    pub fn div_ceil(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        let b = b.into();
        let most = self.sub(b, 1);
        let a = self.add(a, most);
        self.div(a, b)
    }

    /// The largest multiple of `b` that is at most `a`, for non-negative integers.
    pub fn round_down(&mut self, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Int<'c> {
        let b = b.into();
        let quotient = self.div(a, b);
        self.mul(quotient, b)
    }

    /// Splits `index` into coordinates of a row-major box with these extents. The first coordinate is not reduced.
    pub fn delinearize<N: Into<Int<'c>> + Copy>(&mut self, index: Int<'c>, extents: &[N]) -> Vec<Int<'c>> {
        let mut rest = index;
        let mut out = Vec::with_capacity(extents.len());
        for (i, &extent) in extents.iter().enumerate().rev() {
            if i == 0 {
                out.push(rest);
            } else {
                // Without elements there is no index; the divisions are not to fail while they are emitted.
                let extent = match extent.into() {
                    Int::Const(n) => Int::Const(n.max(1)),
                    extent => extent,
                };
                out.push(self.rem(rest, extent));
                rest = self.div(rest, extent);
            }
        }
        out.reverse();
        out
    }

    /// Σ coefficient · index + offset
    pub fn linear<N: Into<Int<'c>>>(
        &mut self,
        terms: impl IntoIterator<Item = (N, Int<'c>)>,
        offset: impl Into<Int<'c>>,
    ) -> Int<'c> {
        let (mut sum, mut constant) = match offset.into() {
            Int::Const(offset) => (Int::Const(0), offset),
            offset => (offset, 0),
        };
        for (c, i) in terms {
            match self.mul(i, c) {
                Int::Const(k) => constant += k,
                term => sum = self.add(sum, term),
            }
        }
        self.add(sum, constant)
    }

    /// `arith.cmpi`; `predicate` is MLIR's name of the comparison, for signed operands or for equality.
    pub fn compare(&mut self, predicate: &str, a: impl Into<Int<'c>>, b: impl Into<Int<'c>>) -> Val<'c> {
        let (a, b) = (self.int(a), self.int(b));
        self.cmpi(predicate, a, b, None)
    }

    /// `arith.cmpi` of integers or vectors of `lanes` integers.
    pub fn cmpi(&mut self, predicate: &str, a: Val<'c>, b: Val<'c>, lanes: Option<i64>) -> Val<'c> {
        const NAMES: [&str; 10] = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];
        self.compare_op("arith.cmpi", &NAMES, predicate, a, b, lanes)
    }

    /// `arith.cmpf` of numbers or vectors of `lanes` numbers.
    pub fn cmpf(&mut self, predicate: &str, a: Val<'c>, b: Val<'c>, lanes: Option<i64>) -> Val<'c> {
        const NAMES: [&str; 16] = [
            "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno",
            "true",
        ];
        self.compare_op("arith.cmpf", &NAMES, predicate, a, b, lanes)
    }

    fn compare_op(
        &mut self,
        op: &str,
        names: &[&str],
        predicate: &str,
        a: Val<'c>,
        b: Val<'c>,
        lanes: Option<i64>,
    ) -> Val<'c> {
        let number = names
            .iter()
            .position(|n| *n == predicate)
            .expect("the emitters name known predicates");
        let attribute = IntegerAttribute::new(self.i64(), number as i64).into();
        let result = self.shaped("i1", lanes);
        self.op(op, &[a, b], &[result], &[("predicate", attribute)], Vec::new())[0]
    }
}
