//! Scalar expressions written as formulas: `x / ((-x).exp() + 1.0)` builds an [`Expr`].

use crate::program::expr::{BinaryOp, Expr, ExprId, ExprOp, UnaryOp};
use crate::scalar::Scalar;
use frazil_ir::DType;
use std::cell::RefCell;
use std::ops;

/// An [`Expr`] under construction. [`Sym`]s refer to its operations.
#[derive(Default)]
pub struct Formula(RefCell<Expr>);

/// An operation of a [`Formula`]. Arithmetic on it appends operations. A plain number as operand gets the dtype of the other operand.
#[derive(Clone, Copy)]
pub struct Sym<'f> {
    formula: &'f Formula,
    id: ExprId,
}

impl Formula {
    /// Returns an empty formula.
    pub fn new() -> Formula {
        Formula::default()
    }

    fn push(&self, op: ExprOp, dtype: DType) -> Sym<'_> {
        Sym {
            formula: self,
            id: self.0.borrow_mut().push(op, dtype),
        }
    }

    /// Returns input number `n`.
    pub fn input(&self, n: usize, dtype: DType) -> Sym<'_> {
        self.push(ExprOp::Input(n as u32), dtype)
    }

    /// Returns the coordinate along loop `n`, as a `Long`.
    pub fn index(&self, n: usize) -> Sym<'_> {
        self.push(ExprOp::Index(n as u32), DType::Long)
    }

    /// Returns the constant `value` of dtype `dtype`.
    pub fn float(&self, value: f64, dtype: DType) -> Sym<'_> {
        Sym {
            formula: self,
            id: self.0.borrow_mut().float(value, dtype),
        }
    }

    /// Returns the constant `value` of dtype `dtype`.
    pub fn int(&self, value: i64, dtype: DType) -> Sym<'_> {
        Sym {
            formula: self,
            id: self.0.borrow_mut().int(value, dtype),
        }
    }

    /// Returns a constant of dtype `dtype`. For a real dtype, it is the real part of a complex number.
    pub fn number(&self, value: Scalar, dtype: DType) -> Sym<'_> {
        match value {
            Scalar::Complex(c) if dtype.is_complex() && c.im != 0.0 => {
                self.float(c.re, dtype).plus_imaginary(self.float(c.im, dtype))
            }
            Scalar::Int(i) => self.int(i, dtype),
            Scalar::Bool(b) => self.int(i64::from(b), dtype),
            other => self.float(other.as_f64(), dtype),
        }
    }

    /// Returns the expression that `build` constructs, with its result converted to `dtype`.
    pub fn build(dtype: DType, build: impl FnOnce(&Formula) -> Sym<'_>) -> Expr {
        let formula = Formula::new();
        let id = build(&formula).cast(dtype).id;
        formula.0.into_inner().finish(id)
    }

    /// Returns the finished expression, whose result is the operation `id` of this formula.
    pub(crate) fn finish(self, id: ExprId) -> Expr {
        self.0.into_inner().finish(id)
    }
}

impl<'f> Sym<'f> {
    /// Returns the operation's id in the expression.
    pub(crate) fn id(self) -> ExprId {
        self.id
    }

    /// Returns the dtype of this operation.
    pub fn dtype(self) -> DType {
        self.formula.0.borrow().node(self.id).dtype
    }

    /// Returns `op(self)`.
    pub fn unary(self, op: UnaryOp) -> Sym<'f> {
        Sym {
            id: self.formula.0.borrow_mut().unary(op, self.id),
            ..self
        }
    }

    /// Returns `op(self, other)`.
    pub fn binary(self, op: BinaryOp, other: impl Operand<'f>) -> Sym<'f> {
        let other = other.sym(self);
        Sym {
            id: self.formula.0.borrow_mut().binary(op, self.id, other.id),
            ..self
        }
    }

    /// Returns this operation converted to `dtype`.
    pub fn cast(self, dtype: DType) -> Sym<'f> {
        Sym {
            id: self.formula.0.borrow_mut().cast(self.id, dtype),
            ..self
        }
    }

    /// Returns the constant `value` in this operation's dtype.
    pub fn constant(self, value: f64) -> Sym<'f> {
        self.formula.float(value, self.dtype())
    }

    /// Returns `self + i * imaginary` for complex `self` and `imaginary`. Expressions have no complex constants, so i is computed as the root of -1.
    pub fn plus_imaginary(self, imaginary: Sym<'f>) -> Sym<'f> {
        self + imaginary * self.constant(-1.0).sqrt()
    }

    /// Returns the number `value` as a constant in this operation's dtype; see [`Formula::number`].
    pub fn number(self, value: Scalar) -> Sym<'f> {
        self.formula.number(value, self.dtype())
    }

    /// Returns `if self { then } else { other }`, in the dtype of `then`.
    pub fn select(self, then: Sym<'f>, other: impl Operand<'f>) -> Sym<'f> {
        let other = other.sym(then);
        Sym {
            id: self.formula.0.borrow_mut().select(self.id, then.id, other.id),
            ..self
        }
    }

    /// Returns self * b + c, rounded once.
    pub fn fma(self, b: impl Operand<'f>, c: impl Operand<'f>) -> Sym<'f> {
        let (b, c) = (b.sym(self), c.sym(self));
        self.formula.push(ExprOp::Fma(self.id, b.id, c.id), self.dtype())
    }

    /// Returns the logical negation. A number is first compared with zero.
    pub fn negated(self) -> Sym<'f> {
        self.cast(DType::Bool).unary(UnaryOp::Not)
    }

    /// Returns this operation clamped to the range from `low` to `high`.
    pub fn clamp(self, low: impl Operand<'f>, high: impl Operand<'f>) -> Sym<'f> {
        self.maximum(low).minimum(high)
    }

    /// Returns 1 / (1 + e^-x).
    pub fn sigmoid(self) -> Sym<'f> {
        let one = self.constant(1.0);
        one / (one + (-self).exp())
    }

    /// Returns log(1 + e^x) without overflow.
    pub fn softplus(self) -> Sym<'f> {
        self.maximum(0.0) + (-self.abs()).exp().log1p()
    }
}

macro_rules! unary_methods {
    ($($name:ident = $op:ident: $doc:literal;)*) => {
        impl<'f> Sym<'f> {$(
            #[doc = $doc]
            pub fn $name(self) -> Sym<'f> { self.unary(UnaryOp::$op) }
        )*}
    };
}
unary_methods! {
    abs = Abs: "|x|";
    exp = Exp: "e^x";
    expm1 = Expm1: "e^x - 1";
    log = Log: "ln x";
    log1p = Log1p: "ln(1 + x)";
    sqrt = Sqrt: "√x";
    rsqrt = Rsqrt: "1/√x";
    tanh = Tanh: "tanh x";
    sin = Sin: "sin x";
    cos = Cos: "cos x";
    tan = Tan: "tan x";
    erf = Erf: "erf x";
    erfc = Erfc: "1 - erf x";
    floor = Floor: "⌊x⌋";
    ceil = Ceil: "⌈x⌉";
    round = Round: "Half to even.";
    trunc = Trunc: "Towards zero.";
    sign = Sign: "-1, 0 or 1.";
    is_nan = IsNan: "True where NaN.";
    is_inf = IsInf: "True where infinite.";
}

macro_rules! binary_methods {
    ($($name:ident = $op:ident: $doc:literal;)*) => {
        impl<'f> Sym<'f> {$(
            #[doc = $doc]
            pub fn $name(self, other: impl Operand<'f>) -> Sym<'f> { self.binary(BinaryOp::$op, other) }
        )*}
    };
}
binary_methods! {
    maximum = Maximum: "The larger; NaN wins.";
    minimum = Minimum: "The smaller; NaN wins.";
    pow = Pow: "self to the power other.";
    and = And: "Bitwise and.";
    or = Or: "Bitwise or.";
    xor = Xor: "Bitwise exclusive or.";
    eq = Eq: "Equal.";
    ne = Ne: "Not equal.";
    lt = Lt: "Less.";
    le = Le: "Less or equal.";
    gt = Gt: "Greater.";
    ge = Ge: "Greater or equal.";
}

/// A right operand: another operation, or a plain number, which gets the dtype of the left operand.
pub trait Operand<'f> {
    /// Converts the operand to an operation. A number gets the dtype of `partner`.
    fn sym(self, partner: Sym<'f>) -> Sym<'f>;
}

impl<'f> Operand<'f> for Sym<'f> {
    fn sym(self, _: Sym<'f>) -> Sym<'f> {
        self
    }
}

impl<'f> Operand<'f> for f64 {
    fn sym(self, partner: Sym<'f>) -> Sym<'f> {
        partner.constant(self)
    }
}

macro_rules! operators {
    ($($trait:ident::$method:ident = $op:ident;)*) => {$(
        impl<'f, T: Operand<'f>> ops::$trait<T> for Sym<'f> {
            type Output = Sym<'f>;
            fn $method(self, other: T) -> Sym<'f> { self.binary(BinaryOp::$op, other) }
        }
    )*};
}
operators! {
    Add::add = Add;
    Sub::sub = Sub;
    Mul::mul = Mul;
    Div::div = Div;
}

impl<'f> ops::Neg for Sym<'f> {
    type Output = Sym<'f>;
    fn neg(self) -> Sym<'f> {
        self.unary(UnaryOp::Neg)
    }
}
