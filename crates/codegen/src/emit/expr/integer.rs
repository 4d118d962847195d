//! Arithmetic of integers and bools.

use super::ExprEmitter;
use crate::emit::builder::Val;
use frazil_ir::DType;
use frazil_runtime::expr::{BinaryOp, Number, UnaryOp};

impl<'c> ExprEmitter<'_, 'c> {
    pub(super) fn unary_integer(&mut self, op: UnaryOp, a: Val<'c>, dtype: DType) -> Val<'c> {
        use UnaryOp as U;
        let lanes = self.lanes;
        match op {
            U::Neg => {
                let zero = self.number(0, dtype);
                self.bin("arith.subi", zero, a)
            }
            U::Abs if matches!(dtype, DType::Byte | DType::Bool) => a,
            U::Abs => self.same("math.absi", a),
            U::Not => {
                let zero = self.number(0, dtype);
                self.e.cmpi("eq", a, zero, lanes)
            }
            U::BitNot => {
                let ones = self.number(if dtype == DType::Bool { 1 } else { -1 }, dtype);
                self.bin("arith.xori", a, ones)
            }
            U::Sign if matches!(dtype, DType::Byte | DType::Bool) => {
                let (zero, one) = (self.number(0, dtype), self.number(1, dtype));
                let some = self.e.cmpi("ne", a, zero, lanes);
                self.e.select(some, one, zero)
            }
            U::Sign => {
                let (zero, one, minus) = (self.number(0, dtype), self.number(1, dtype), self.number(-1, dtype));
                let positive = self.e.cmpi("sgt", a, zero, lanes);
                let negative = self.e.cmpi("slt", a, zero, lanes);
                let rest = self.e.select(negative, minus, zero);
                self.e.select(positive, one, rest)
            }
            U::IsNan | U::IsInf => self.constant(Number::Int(0), DType::Bool),
            // Rounding leaves integers alone; the other functions are only applied to floating point.
            _ => a,
        }
    }

    pub(super) fn binary_integer(&mut self, op: BinaryOp, a: Val<'c>, b: Val<'c>, dtype: DType) -> Val<'c> {
        use BinaryOp as B;
        let lanes = self.lanes;
        let unsigned = matches!(dtype, DType::Byte | DType::Bool);
        let bool = dtype == DType::Bool;
        let signed = |s: &'static str, u: &'static str| if unsigned { u } else { s };
        match op {
            B::Add if bool => self.bin("arith.ori", a, b),
            B::Mul if bool => self.bin("arith.andi", a, b),
            B::Add => self.bin("arith.addi", a, b),
            B::Sub => self.bin("arith.subi", a, b),
            B::Mul => self.bin("arith.muli", a, b),
            B::Div | B::DivTrunc | B::DivFloor | B::Fmod | B::Remainder => self.divide(op, a, b, dtype),
            B::Maximum | B::Fmax => self.bin(signed("arith.maxsi", "arith.maxui"), a, b),
            B::Minimum | B::Fmin => self.bin(signed("arith.minsi", "arith.minui"), a, b),
            B::Pow => self.integer_power(a, b, dtype),
            B::And => self.bin("arith.andi", a, b),
            B::Or => self.bin("arith.ori", a, b),
            B::Xor => self.bin("arith.xori", a, b),
            B::Shl | B::Shr => self.shift(op, a, b, dtype),
            B::Eq => self.e.cmpi("eq", a, b, lanes),
            B::Ne => self.e.cmpi("ne", a, b, lanes),
            B::Lt => self.e.cmpi(signed("slt", "ult"), a, b, lanes),
            B::Le => self.e.cmpi(signed("sle", "ule"), a, b, lanes),
            B::Gt => self.e.cmpi(signed("sgt", "ugt"), a, b, lanes),
            B::Ge => self.e.cmpi(signed("sge", "uge"), a, b, lanes),
            // These are only applied to floating point; `check` refuses Gcd.
            B::Atan2 | B::Hypot | B::Copysign | B::Nextafter | B::Gcd => a,
        }
    }

    /// Integer division. Division by zero returns 0, and MIN / −1 wraps around: nothing traps.
    fn divide(&mut self, op: BinaryOp, a: Val<'c>, b: Val<'c>, dtype: DType) -> Val<'c> {
        use BinaryOp as B;
        let lanes = self.lanes;
        let unsigned = matches!(dtype, DType::Byte | DType::Bool);
        let (zero, one) = (self.number(0, dtype), self.number(1, dtype));
        let by_zero = self.e.cmpi("eq", b, zero, lanes);
        let mut safe = self.e.select(by_zero, one, b);
        let mut negate = None;
        if !unsigned {
            let minus = self.number(-1, dtype);
            let by_minus = self.e.cmpi("eq", b, minus, lanes);
            safe = self.e.select(by_minus, one, safe);
            negate = Some(by_minus);
        }
        let quotient = self.bin(if unsigned { "arith.divui" } else { "arith.divsi" }, a, safe);
        let negated = self.bin("arith.subi", zero, a);
        let quotient = match negate {
            Some(by_minus) => self.e.select(by_minus, negated, quotient),
            None => quotient,
        };
        let product = self.bin("arith.muli", quotient, b);
        let remainder = self.bin("arith.subi", a, product);
        let remainder = self.e.select(by_zero, zero, remainder);
        let floored = |this: &mut Self| {
            let nonzero = this.e.cmpi("ne", remainder, zero, lanes);
            let bits = this.bin("arith.xori", remainder, b);
            let differ = this.e.cmpi("slt", bits, zero, lanes);
            this.bin("arith.andi", nonzero, differ)
        };
        match op {
            B::DivFloor if !unsigned => {
                let fix = floored(self);
                let less = self.bin("arith.subi", quotient, one);
                let result = self.e.select(fix, less, quotient);
                self.e.select(by_zero, zero, result)
            }
            B::Remainder if !unsigned => {
                let fix = floored(self);
                let more = self.bin("arith.addi", remainder, b);
                self.e.select(fix, more, remainder)
            }
            B::Fmod | B::Remainder => remainder,
            _ => self.e.select(by_zero, zero, quotient),
        }
    }

    /// Shifts. The result of a shift by the width or more is that of repeated shifts by one bit.
    fn shift(&mut self, op: BinaryOp, a: Val<'c>, b: Val<'c>, dtype: DType) -> Val<'c> {
        let bits = 8 * dtype.size() as i64;
        let (limit, zero) = (self.number(bits - 1, dtype), self.number(0, dtype));
        let outside = self.e.cmpi("ugt", b, limit, self.lanes);
        let amount = self.e.select(outside, limit, b);
        if op == BinaryOp::Shl {
            let shifted = self.bin("arith.shli", a, amount);
            return self.e.select(outside, zero, shifted);
        }
        match dtype {
            DType::Byte | DType::Bool => {
                let shifted = self.bin("arith.shrui", a, amount);
                self.e.select(outside, zero, shifted)
            }
            _ => self.bin("arith.shrsi", a, amount),
        }
    }

    /// a to the power b by squaring. For b < 0, the result is the quotient 1 / a^|b|, truncated: 1, ±1 or 0.
    fn integer_power(&mut self, a: Val<'c>, b: Val<'c>, dtype: DType) -> Val<'c> {
        let lanes = self.lanes;
        let (zero, one, minus) = (self.number(0, dtype), self.number(1, dtype), self.number(-1, dtype));
        let mut result = one;
        let mut base = a;
        let sign_bits = i64::from(dtype != DType::Byte);
        for bit in 0..8 * dtype.size() as i64 - sign_bits {
            let mask = self.number(1 << bit, dtype);
            let on = self.bin("arith.andi", b, mask);
            let on = self.e.cmpi("ne", on, zero, lanes);
            let product = self.bin("arith.muli", result, base);
            result = self.e.select(on, product, result);
            base = self.bin("arith.muli", base, base);
        }
        if dtype == DType::Byte {
            return result;
        }
        let negative = self.e.cmpi("slt", b, zero, lanes);
        let odd = self.bin("arith.andi", b, one);
        let odd = self.e.cmpi("ne", odd, zero, lanes);
        let sign = self.e.select(odd, minus, one);
        let is_minus = self.e.cmpi("eq", a, minus, lanes);
        let is_one = self.e.cmpi("eq", a, one, lanes);
        let small = self.e.select(is_minus, sign, zero);
        let small = self.e.select(is_one, one, small);
        self.e.select(negative, small, result)
    }
}
