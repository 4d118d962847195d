//! Rust's arithmetic operators on tensors. They return `Result`, since shapes may not fit: `((&x * 2.0)? + &y)?`.

use super::names::known;
use super::{Arg, Var};
use crate::error::Result;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Sub};

macro_rules! binary {
    ($($trait:ident $method:ident $operator:literal;)*) => {$(
        impl<'a, T: Into<Arg<'a>>> $trait<T> for &Var {
            type Output = Result<Var>;

            #[track_caller]
            fn $method(self, other: T) -> Result<Var> {
                let other: Arg<'a> = other.into();
                self.start_known(const { known($operator) }).positional(other).call()
            }
        }

        impl<'a, T: Into<Arg<'a>>> $trait<T> for Var {
            type Output = Result<Var>;

            #[track_caller]
            fn $method(self, other: T) -> Result<Var> {
                $trait::$method(&self, other)
            }
        }
    )*};
}

binary! {
    Add add "aten::add";
    Sub sub "aten::sub";
    Mul mul "aten::mul";
    Div div "aten::div";
    Rem rem "aten::remainder";
    BitAnd bitand "aten::__and__";
    BitOr bitor "aten::__or__";
    BitXor bitxor "aten::__xor__";
}

/// Implements arithmetic with a number on the left. It is added or multiplied from the right; subtraction and division are PyTorch's reflected methods.
macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Add<&Var> for $number {
            type Output = Result<Var>;

            #[track_caller]
            fn add(self, var: &Var) -> Result<Var> {
                var + self
            }
        }

        impl Mul<&Var> for $number {
            type Output = Result<Var>;

            #[track_caller]
            fn mul(self, var: &Var) -> Result<Var> {
                var * self
            }
        }

        impl Sub<&Var> for $number {
            type Output = Result<Var>;

            #[track_caller]
            fn sub(self, var: &Var) -> Result<Var> {
                var.start_known(const { known("aten::rsub") }).positional(self).call()
            }
        }

        impl Div<&Var> for $number {
            type Output = Result<Var>;

            #[track_caller]
            fn div(self, var: &Var) -> Result<Var> {
                var.start_known(const { known("aten::reciprocal") }).call()?.start_known(const { known("aten::mul") }).positional(self).call()
            }
        }
    )*};
}

numbers! { i64 f64 }

impl Neg for &Var {
    type Output = Result<Var>;

    #[track_caller]
    fn neg(self) -> Result<Var> {
        self.start_known(const { known("aten::neg") }).call()
    }
}

impl Not for &Var {
    type Output = Result<Var>;

    #[track_caller]
    fn not(self) -> Result<Var> {
        self.start_known(const { known("aten::bitwise_not") }).call()
    }
}
