//! Conversions between dtypes, and between values and their representation in memory.

use super::{ExprEmitter, element_type};
use crate::emit::builder::Val;
use frazil_ir::DType;

impl<'c> ExprEmitter<'_, 'c> {
    /// Converts a value as `Tensor.to` does.
    pub fn cast(&mut self, a: Val<'c>, from: DType, to: DType) -> Val<'c> {
        if from == to {
            return a;
        }
        let lanes = self.lanes;
        let ty = self.e.shaped(element_type(to).unwrap_or("i64"), lanes);
        let unsigned = matches!(from, DType::Byte | DType::Bool);
        if to == DType::Bool {
            return if from.is_floating_point() {
                let zero = self.float(0.0, from);
                self.e.cmpf("une", a, zero, lanes)
            } else {
                let zero = self.number(0, from);
                self.e.cmpi("ne", a, zero, lanes)
            };
        }
        match (from.is_floating_point(), to.is_floating_point()) {
            (true, true) => {
                let single = match (from == DType::Double, to == DType::Double) {
                    (false, true) => return self.e.op1("arith.extf", &[a], ty),
                    (true, true) => return a,
                    (true, false) => self.e.op1("arith.truncf", &[a], ty),
                    (false, false) => a,
                };
                self.round_to_half(single, to)
            }
            (false, true) => {
                let value = self
                    .e
                    .op1(if unsigned { "arith.uitofp" } else { "arith.sitofp" }, &[a], ty);
                self.round_to_half(value, to)
            }
            (true, false) => {
                // As the compilers that PyTorch is built with do it: through 64 bits, or through 32 for the narrower types.
                let width = if to == DType::Long { DType::Long } else { DType::Int };
                let value = self.truncate(a, from, width);
                if to == width {
                    value
                } else {
                    self.e.op1("arith.trunci", &[value], ty)
                }
            }
            (false, false) => {
                let bits = |d: DType| if d == DType::Bool { 1 } else { 8 * d.size() };
                match bits(to).cmp(&bits(from)) {
                    std::cmp::Ordering::Greater => {
                        self.e
                            .op1(if unsigned { "arith.extui" } else { "arith.extsi" }, &[a], ty)
                    }
                    std::cmp::Ordering::Less => self.e.op1("arith.trunci", &[a], ty),
                    std::cmp::Ordering::Equal => a,
                }
            }
        }
    }

    /// Truncates a float to an Int or Long. If the value does not fit or is NaN, the result is the minimum of the dtype.
    fn truncate(&mut self, a: Val<'c>, from: DType, to: DType) -> Val<'c> {
        let lanes = self.lanes;
        let half = (8 * to.size() - 1) as i32;
        let (low, high) = (
            self.float(-f64::from(half).exp2() - 1.0, from),
            self.float(f64::from(half).exp2(), from),
        );
        let (above, below) = (self.e.cmpf("ogt", a, low, lanes), self.e.cmpf("olt", a, high, lanes));
        let inside = self.bin("arith.andi", above, below);
        // The conversion of what does not fit has no defined result.
        let zero = self.float(0.0, from);
        let fitting = self.e.select(inside, a, zero);
        let ty = self.e.shaped(element_type(to).unwrap_or("i64"), lanes);
        let value = self.e.op1("arith.fptosi", &[fitting], ty);
        let most_negative = self.number(i64::MIN >> (64 - 8 * to.size()), to);
        self.e.select(inside, value, most_negative)
    }

    /// Rounds `a`, an f32, to the nearest number of `dtype` if that is f16 or bf16. The result is still an f32.
    fn round_to_half(&mut self, a: Val<'c>, dtype: DType) -> Val<'c> {
        if !matches!(dtype, DType::Half | DType::BFloat16) {
            return a;
        }
        let stored = self.to_storage(a, dtype);
        self.from_storage(stored, dtype)
    }

    /// Converts a value to its representation in memory: `i8` for bools, 16 bits for f16 and bf16.
    pub fn to_storage(&mut self, a: Val<'c>, dtype: DType) -> Val<'c> {
        let lanes = self.lanes;
        match dtype {
            DType::Bool => {
                let ty = self.e.shaped("i8", lanes);
                self.e.op1("arith.extui", &[a], ty)
            }
            DType::Half => {
                let ty = self.e.shaped("f16", lanes);
                self.e.op1("arith.truncf", &[a], ty)
            }
            DType::BFloat16 => {
                // Round to nearest even on the bits: no library call, and denormals stay.
                let (wide, narrow) = (self.e.shaped("i32", lanes), self.e.shaped("i16", lanes));
                let bits = self.e.op1("arith.bitcast", &[a], wide);
                let (sixteen, one) = (self.number(16, DType::Int), self.number(1, DType::Int));
                let (half, quiet) = (self.number(0x7fff, DType::Int), self.number(0x7fc0, DType::Int));
                let high = self.bin("arith.shrui", bits, sixteen);
                let odd = self.bin("arith.andi", high, one);
                let up = self.bin("arith.addi", half, odd);
                let sum = self.bin("arith.addi", bits, up);
                let rounded = self.bin("arith.shrui", sum, sixteen);
                let nan = self.e.cmpf("uno", a, a, lanes);
                let result = self.e.select(nan, quiet, rounded);
                self.e.op1("arith.trunci", &[result], narrow)
            }
            _ => a,
        }
    }

    /// Converts a value from its representation in memory to the type in which it is computed.
    pub fn from_storage(&mut self, a: Val<'c>, dtype: DType) -> Val<'c> {
        let lanes = self.lanes;
        match dtype {
            DType::Bool => {
                let zero = self.number(0, DType::Char);
                self.e.cmpi("ne", a, zero, lanes)
            }
            DType::Half => {
                let ty = self.e.shaped("f32", lanes);
                self.e.op1("arith.extf", &[a], ty)
            }
            DType::BFloat16 => {
                let (wide, float) = (self.e.shaped("i32", lanes), self.e.shaped("f32", lanes));
                let bits = self.e.op1("arith.extui", &[a], wide);
                let sixteen = self.number(16, DType::Int);
                let bits = self.bin("arith.shli", bits, sixteen);
                self.e.op1("arith.bitcast", &[bits], float)
            }
            _ => a,
        }
    }
}
