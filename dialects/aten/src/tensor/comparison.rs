//! Elementwise comparison, logic, bit operations, and predicates.

use super::by_tensor;
use frazil_ir::DType;
use frazil_ir::schema::AliasUse;
use frazil_runtime::entry::{Entry, Row, ScalarConversion, ScalarVariant};
use frazil_runtime::expr::{BinaryOp, UnaryOp};
use frazil_runtime::op::OpError;
use frazil_runtime::pointwise::Promotion::{Default, Logical, ToBool};
use frazil_runtime::pointwise::{Body, Pointwise};
use frazil_runtime::sym::Sym;

const SELF: &[&str] = &["self"];
const SELF_OTHER: &[&str] = &["self", "other"];

/// The tensor overload that computes the overload of a comparison with a scalar.
const WITH_SCALAR: ScalarVariant = by_tensor(1, ScalarConversion::Promoted);

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::eq",
        Entry::pointwise(Pointwise::new(SELF_OTHER, ToBool, |b| b.x(0).eq(b.x(1)))),
    ),
    (
        "aten::ne",
        Entry::pointwise(Pointwise::new(SELF_OTHER, ToBool, |b| b.x(0).ne(b.x(1))))
            .aliases(&[("aten::not_equal", AliasUse::Everywhere)]),
    ),
    (
        "aten::lt",
        Entry::pointwise(Pointwise::new(SELF_OTHER, ToBool, |b| b.x(0).lt(b.x(1))))
            .aliases(&[("aten::less", AliasUse::Everywhere)]),
    ),
    (
        "aten::le",
        Entry::pointwise(Pointwise::new(SELF_OTHER, ToBool, |b| b.x(0).le(b.x(1))))
            .aliases(&[("aten::less_equal", AliasUse::Everywhere)]),
    ),
    (
        "aten::gt",
        Entry::pointwise(Pointwise::new(SELF_OTHER, ToBool, |b| b.x(0).gt(b.x(1))))
            .aliases(&[("aten::greater", AliasUse::Everywhere)]),
    ),
    (
        "aten::ge",
        Entry::pointwise(Pointwise::new(SELF_OTHER, ToBool, |b| b.x(0).ge(b.x(1))))
            .aliases(&[("aten::greater_equal", AliasUse::Everywhere)]),
    ),
    (
        "aten::isclose",
        Entry::pointwise(Pointwise::new(SELF_OTHER, ToBool, is_close)),
    ),
    (
        "aten::logical_and",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Logical, |b| b.x(0).and(b.x(1)))),
    ),
    (
        "aten::logical_or",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Logical, |b| b.x(0).or(b.x(1)))),
    ),
    (
        "aten::logical_xor",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Logical, |b| b.x(0).xor(b.x(1)))),
    ),
    (
        "aten::logical_not",
        Entry::pointwise(Pointwise::new(SELF, Logical, |b| b.x(0).negated())),
    ),
    (
        "aten::bitwise_and",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| integer(b).and(b.x(1)))),
    ),
    (
        "aten::bitwise_or",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| integer(b).or(b.x(1)))),
    ),
    (
        "aten::bitwise_xor",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| integer(b).xor(b.x(1)))),
    ),
    (
        "aten::__and__",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| integer(b).and(b.x(1)))),
    ),
    (
        "aten::__or__",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| integer(b).or(b.x(1)))),
    ),
    (
        "aten::__xor__",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| integer(b).xor(b.x(1)))),
    ),
    (
        "aten::bitwise_not",
        Entry::pointwise(Pointwise::new(SELF, Default, |b| integer(b).unary(UnaryOp::BitNot))),
    ),
    (
        "aten::bitwise_left_shift",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            integer(b).binary(BinaryOp::Shl, b.x(1))
        })),
    ),
    (
        "aten::bitwise_right_shift",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            integer(b).binary(BinaryOp::Shr, b.x(1))
        })),
    ),
    (
        "aten::__lshift__",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            integer(b).binary(BinaryOp::Shl, b.x(1))
        })),
    ),
    (
        "aten::__rshift__",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            integer(b).binary(BinaryOp::Shr, b.x(1))
        })),
    ),
    ("aten::eq.Scalar", Entry::new().scalar_variant(&WITH_SCALAR)),
    ("aten::ne.Scalar", Entry::new().scalar_variant(&WITH_SCALAR)),
    ("aten::lt.Scalar", Entry::new().scalar_variant(&WITH_SCALAR)),
    ("aten::le.Scalar", Entry::new().scalar_variant(&WITH_SCALAR)),
    ("aten::gt.Scalar", Entry::new().scalar_variant(&WITH_SCALAR)),
    ("aten::ge.Scalar", Entry::new().scalar_variant(&WITH_SCALAR)),
    (
        "aten::isnan",
        Entry::pointwise(Pointwise::new(SELF, ToBool, |b| b.x(0).is_nan())),
    ),
    (
        "aten::isinf",
        Entry::pointwise(Pointwise::new(SELF, ToBool, |b| b.x(0).is_inf())),
    ),
    (
        "aten::isfinite",
        Entry::pointwise(Pointwise::new(SELF, ToBool, |b| {
            b.x(0).is_nan().or(b.x(0).is_inf()).negated()
        })),
    ),
    (
        "aten::isposinf",
        Entry::pointwise(Pointwise::new(SELF, ToBool, |b| b.x(0).is_inf().and(b.x(0).gt(0.0)))),
    ),
    (
        "aten::isneginf",
        Entry::pointwise(Pointwise::new(SELF, ToBool, |b| b.x(0).is_inf().and(b.x(0).lt(0.0)))),
    ),
];

/// Returns operand 0 of a bitwise operation, which refuses floats.
fn integer<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    if b.dtype().is_floating_point() || b.dtype().is_complex() {
        return b.fail(OpError::raised(format!(
            "\"bitwise\" not implemented for '{}'",
            b.dtype().type_name()
        )));
    }
    b.x(0)
}

fn is_close<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let (x, y) = (b.x(0), b.x(1));
    if let (Some(own), Some(other)) = (b.operand_dtype(0), b.operand_dtype(1))
        && own != other
    {
        let (own, other) = (own.type_name(), other.type_name());
        return b.fail(OpError::raised(format!("{own} did not match {other}")));
    }
    let (rtol, atol) = (b.value("rtol"), b.value("atol"));
    for (name, tolerance) in [("rtol", rtol), ("atol", atol)] {
        if tolerance < 0.0 {
            return b.fail(OpError::raised(format!(
                "{name} must be greater than or equal to zero, but got {tolerance}"
            )));
        }
    }
    let equal = if b.value("equal_nan") != 0.0 {
        x.eq(y).or(x.is_nan().and(y.is_nan()))
    } else {
        x.eq(y)
    };
    if b.compute().is_complex() {
        // Of complex numbers the sizes are compared.
        let size = |z: Sym<'f>| z.abs().cast(DType::Double);
        let error = size(x - y);
        let finite = error.is_nan().or(error.is_inf()).negated();
        return equal.or(finite.and(error.le(size(y) * rtol + error.constant(atol))));
    }
    if !b.compute().is_floating_point() {
        let (x, y) = (x.cast(DType::Double), y.cast(DType::Double));
        return equal.or((x - y).abs().le(y.abs() * rtol + x.constant(atol)));
    }
    let error = (x - y).abs();
    let finite = error.is_nan().or(error.is_inf()).negated();
    equal.or(finite.and(error.le(y.abs() * rtol + x.constant(atol))))
}
