//! Names of the operations of scalar expressions.

use frazil_runtime::expr::{BinaryOp, UnaryOp};
use frazil_runtime::structured::Combine;

/// Defines functions that convert between the variants of an enumeration and their names. A variant without a name does
/// not compile.
macro_rules! names {
    ($($(#[$doc:meta])* $ty:ident: $to:ident, $from:ident { $($variant:ident = $name:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        pub(super) fn $to(op: $ty) -> &'static str {
            match op { $($ty::$variant => $name),* }
        }

        pub(super) fn $from(name: &str) -> Option<$ty> {
            match name {
                $($name => Some($ty::$variant),)*
                _ => None,
            }
        }
    )*};
}

names! {
    /// Returns the name of a function of one argument.
    UnaryOp: unary_name, unary_of {
        Neg = "neg", Abs = "abs", Not = "not", BitNot = "bitwise_not", Exp = "exp", Exp2 = "exp2", Expm1 = "expm1",
        Log = "log", Log2 = "log2", Log10 = "log10", Log1p = "log1p", Sqrt = "sqrt", Rsqrt = "rsqrt", Sin = "sin",
        Cos = "cos", Tan = "tan", Asin = "asin", Acos = "acos", Atan = "atan", Sinh = "sinh", Cosh = "cosh",
        Tanh = "tanh", Asinh = "asinh", Acosh = "acosh", Atanh = "atanh", Erf = "erf", Erfc = "erfc",
        Floor = "floor", Ceil = "ceil", Round = "round", Trunc = "trunc", Sign = "sign", IsNan = "isnan",
        IsInf = "isinf", Lgamma = "lgamma", Digamma = "digamma", Erfinv = "erfinv", I0 = "i0",
    }
    /// Returns the name of a function of two arguments.
    BinaryOp: binary_name, binary_of {
        Add = "add", Sub = "sub", Mul = "mul", Div = "div", DivTrunc = "div_trunc", DivFloor = "div_floor",
        Fmod = "fmod", Remainder = "remainder", Pow = "pow", Atan2 = "atan2", Maximum = "maximum",
        Minimum = "minimum", Fmax = "fmax", Fmin = "fmin", Hypot = "hypot", Copysign = "copysign",
        Nextafter = "nextafter", And = "and", Or = "or", Xor = "xor", Shl = "shl", Shr = "shr", Gcd = "gcd",
        Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge",
    }
    /// Returns the name of the combiner of a reduction.
    Combine: combiner_name, combiner_of {
        Add = "add", Mul = "mul", Max = "max", Min = "min", Or = "or", And = "and",
    }
}
