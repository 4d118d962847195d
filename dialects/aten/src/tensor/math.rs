//! Elementwise unary functions.

use frazil_ir::schema::{Activation, AliasUse, Observes};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::expr::UnaryOp;
use frazil_runtime::op::OpError;
use frazil_runtime::pointwise::Promotion::{Default, IntToFloat, Real, ToBool};
use frazil_runtime::pointwise::{Body, Pointwise};
use frazil_runtime::promote::real_of;
use frazil_runtime::sym::Sym;

const SELF: &[&str] = &["self"];

/// Defines a unary function on floats; integers are converted to floats.
macro_rules! float {
    ($op:ident) => {
        Entry::pointwise(Pointwise::new(SELF, IntToFloat, |b| b.x(0).unary(UnaryOp::$op)))
    };
}

/// Defines a unary function on any dtype.
macro_rules! any {
    ($op:ident) => {
        Entry::pointwise(Pointwise::new(SELF, Default, |b| b.x(0).unary(UnaryOp::$op)))
    };
}

pub(super) const ENTRIES: &[Row] = &[
    ("aten::exp", float!(Exp)),
    (
        "aten::exp2",
        float!(Exp2).aliases(&[("aten::special_exp2", AliasUse::Normalised)]),
    ),
    (
        "aten::expm1",
        float!(Expm1).aliases(&[("aten::special_expm1", AliasUse::Normalised)]),
    ),
    ("aten::log", float!(Log)),
    ("aten::log2", float!(Log2)),
    ("aten::log10", float!(Log10)),
    (
        "aten::log1p",
        float!(Log1p).aliases(&[("aten::special_log1p", AliasUse::Normalised)]),
    ),
    ("aten::sqrt", float!(Sqrt)),
    ("aten::rsqrt", float!(Rsqrt)),
    ("aten::sin", float!(Sin)),
    ("aten::cos", float!(Cos)),
    ("aten::tan", float!(Tan)),
    (
        "aten::asin",
        float!(Asin).aliases(&[("aten::arcsin", AliasUse::Everywhere)]),
    ),
    (
        "aten::acos",
        float!(Acos).aliases(&[("aten::arccos", AliasUse::Everywhere)]),
    ),
    (
        "aten::atan",
        float!(Atan).aliases(&[("aten::arctan", AliasUse::Everywhere)]),
    ),
    ("aten::sinh", float!(Sinh)),
    ("aten::cosh", float!(Cosh)),
    (
        "aten::tanh",
        float!(Tanh)
            .preserves_rank()
            .activation(Activation::PromotesIntegers)
            .observes(Observes::Elements),
    ),
    (
        "aten::asinh",
        float!(Asinh).aliases(&[("aten::arcsinh", AliasUse::Everywhere)]),
    ),
    (
        "aten::acosh",
        float!(Acosh).aliases(&[("aten::arccosh", AliasUse::Everywhere)]),
    ),
    (
        "aten::atanh",
        float!(Atanh).aliases(&[("aten::arctanh", AliasUse::Everywhere)]),
    ),
    (
        "aten::erf",
        float!(Erf).aliases(&[("aten::special_erf", AliasUse::Normalised)]),
    ),
    (
        "aten::erfc",
        float!(Erfc).aliases(&[("aten::special_erfc", AliasUse::Normalised)]),
    ),
    (
        "aten::erfinv",
        float!(Erfinv).aliases(&[("aten::special_erfinv", AliasUse::Normalised)]),
    ),
    (
        "aten::lgamma",
        float!(Lgamma).aliases(&[("aten::special_gammaln", AliasUse::Normalised)]),
    ),
    (
        "aten::digamma",
        float!(Digamma).aliases(&[
            ("aten::special_digamma", AliasUse::Normalised),
            ("aten::special_psi", AliasUse::Normalised),
        ]),
    ),
    (
        "aten::i0",
        float!(I0).aliases(&[
            ("aten::special_i0", AliasUse::Normalised),
            ("aten::special_modified_bessel_i0", AliasUse::Semantics),
        ]),
    ),
    (
        "aten::abs",
        Entry::pointwise(Pointwise::new(SELF, Real, |b| b.x(0).abs()))
            .aliases(&[("aten::absolute", AliasUse::Everywhere)]),
    ),
    ("aten::floor", any!(Floor)),
    ("aten::ceil", any!(Ceil)),
    (
        "aten::trunc",
        any!(Trunc).aliases(&[("aten::fix", AliasUse::Everywhere)]),
    ),
    (
        "aten::round",
        any!(Round).aliases(&[("aten::special_round", AliasUse::Normalised)]),
    ),
    (
        "aten::round.decimals",
        Entry::pointwise(Pointwise::new(SELF, Default, round_decimals)),
    ),
    ("aten::sign", any!(Sign).without_gradients()),
    ("aten::sgn", any!(Sign)),
    (
        "aten::signbit",
        Entry::pointwise(Pointwise::new(SELF, ToBool, |b| {
            // -0.0 has the bit, which only copysign shows.
            if !b.compute().is_floating_point() {
                return b.x(0).lt(0.0);
            }
            b.constant(1.0)
                .binary(frazil_runtime::expr::BinaryOp::Copysign, b.x(0))
                .lt(0.0)
        })),
    ),
    (
        "aten::frac",
        Entry::pointwise(Pointwise::new(SELF, Default, |b| b.x(0) - b.x(0).trunc())),
    ),
    (
        "aten::sigmoid",
        Entry::pointwise(Pointwise::new(SELF, IntToFloat, |b| b.x(0).sigmoid()))
            .preserves_rank()
            .aliases(&[("aten::special_expit", AliasUse::Normalised)])
            .activation(Activation::PromotesIntegers)
            .observes(Observes::Elements),
    ),
    (
        "aten::logit",
        Entry::pointwise(Pointwise::new(SELF, IntToFloat, logit))
            .aliases(&[("aten::special_logit", AliasUse::Normalised)]),
    ),
    (
        "aten::sinc",
        Entry::pointwise(Pointwise::new(SELF, IntToFloat, |b| {
            let angle = b.x(0) * std::f64::consts::PI;
            b.x(0).eq(0.0).select(b.constant(1.0), angle.sin() / angle)
        }))
        .aliases(&[("aten::special_sinc", AliasUse::Normalised)]),
    ),
    (
        "aten::deg2rad",
        Entry::pointwise(Pointwise::new(SELF, IntToFloat, |b| {
            b.x(0) * (std::f64::consts::PI / 180.0)
        })),
    ),
    (
        "aten::rad2deg",
        Entry::pointwise(Pointwise::new(SELF, IntToFloat, |b| {
            b.x(0) * (180.0 / std::f64::consts::PI)
        })),
    ),
    (
        "aten::xlogy",
        Entry::pointwise(Pointwise::new(&["self", "other"], IntToFloat, |b| {
            x_times(b, b.stored(b.x(1).log()))
        }))
        .aliases(&[("aten::special_xlogy", AliasUse::Normalised)]),
    ),
    (
        "aten::special_xlog1py",
        Entry::pointwise(Pointwise::new(&["self", "other"], IntToFloat, |b| {
            x_times(b, b.stored(b.x(1).log1p()))
        })),
    ),
    (
        "aten::special_entr",
        Entry::pointwise(Pointwise::new(SELF, IntToFloat, |b| {
            let x = b.x(0);
            let inside = x.eq(0.0).select(b.constant(0.0), -(x * b.stored(x.log())));
            x.is_nan()
                .select(x, x.lt(0.0).select(b.constant(f64::NEG_INFINITY), inside))
        })),
    ),
    (
        "aten::logaddexp",
        Entry::pointwise(Pointwise::new(&["self", "other"], Default, |b| {
            let (x, y) = (b.x(0), b.x(1));
            if b.compute().is_complex() {
                return log_add_complex(b);
            }
            let equal_infinities = x.is_inf().and(x.eq(y));
            equal_infinities.select(x, x.maximum(y) + (-(x - y).abs()).exp().log1p())
        })),
    ),
    (
        "aten::logaddexp2",
        Entry::pointwise(Pointwise::new(&["self", "other"], Default, |b| {
            let (x, y) = (b.x(0), b.x(1));
            let equal_infinities = x.is_inf().and(x.eq(y));
            let tail = (-(x - y).abs()).unary(UnaryOp::Exp2).log1p() * std::f64::consts::LOG2_E;
            equal_infinities.select(x, x.maximum(y) + tail)
        })),
    ),
];

/// Returns x * y; for x = 0 it is 0 for every y except NaN.
fn x_times<'f>(b: &Body<'f, '_>, y: Sym<'f>) -> Sym<'f> {
    let product = b.x(0).eq(0.0).select(b.constant(0.0), b.x(0) * y);
    b.x(1).is_nan().select(b.x(1), product)
}

/// Returns log(e^x + e^y), computed relative to the number with the larger real part.
fn log_add_complex<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let (x, y) = (b.x(0), b.x(1));
    let real = real_of(b.compute());
    let (rx, ry) = (x.cast(real), y.cast(real));
    let less = rx.lt(ry);
    let (small, large) = (less.select(x, y), less.select(y, x));
    let near = large + (small - large).exp().log1p();
    let equal_infinities = rx.is_inf().and(rx.eq(ry));
    let far = rx.lt(0.0).select(small, (x.exp() + y.exp()).log());
    equal_infinities.select(far, near)
}

fn logit<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    // Halves are rounded after each step.
    let rounded = |x: Sym<'f>| x.cast(b.dtype()).cast(b.compute());
    let one = b.constant(1.0);
    let x = if b.is_none("eps") {
        b.x(0)
    } else {
        // With bounds the wrong way round the lower one counts first.
        let low = b.rounded_scalar("eps");
        let high = rounded(one - low);
        b.x(0).lt(low).select(low, b.x(0).gt(high).select(high, b.x(0)))
    };
    rounded(x / rounded(one - x)).log()
}

fn round_decimals<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let decimals = b.value("decimals");
    let scale = 10f64.powi(decimals.abs() as i32);
    match (decimals, b.compute().is_floating_point()) {
        (_, false) => b.fail(OpError::raised("round with decimals is not implemented for integers")),
        (0.0, _) => b.x(0).round(),
        (d, _) if d > 0.0 => (b.x(0) * scale).round() / scale,
        _ => (b.x(0) / scale).round() * scale,
    }
}
