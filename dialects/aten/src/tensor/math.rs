//! Functions of one number, element by element.

use super::PointwiseRow;
use frazil_runtime::expr::UnaryOp;
use frazil_runtime::op::OpError;
use frazil_runtime::pointwise::Promotion::{Default, IntToFloat, Real, ToBool};
use frazil_runtime::pointwise::{Body, Pointwise};
use frazil_runtime::promote::real_of;
use frazil_runtime::sym::Sym;

const SELF: &[&str] = &["self"];

/// A function of one number on floats; integers become floats.
macro_rules! float {
    ($name:literal, $op:ident) => {
        ($name, Pointwise::new(SELF, IntToFloat, |b| b.x(0).unary(UnaryOp::$op)))
    };
}

/// A function of one number on any dtype.
macro_rules! any {
    ($name:literal, $op:ident) => {
        ($name, Pointwise::new(SELF, Default, |b| b.x(0).unary(UnaryOp::$op)))
    };
}

pub(super) const POINTWISE: &[PointwiseRow] = &[
    float!("aten::exp", Exp),
    float!("aten::exp2", Exp2),
    float!("aten::special_exp2", Exp2),
    float!("aten::expm1", Expm1),
    float!("aten::special_expm1", Expm1),
    float!("aten::log", Log),
    float!("aten::log2", Log2),
    float!("aten::log10", Log10),
    float!("aten::log1p", Log1p),
    float!("aten::special_log1p", Log1p),
    float!("aten::sqrt", Sqrt),
    float!("aten::rsqrt", Rsqrt),
    float!("aten::sin", Sin),
    float!("aten::cos", Cos),
    float!("aten::tan", Tan),
    float!("aten::asin", Asin),
    float!("aten::arcsin", Asin),
    float!("aten::acos", Acos),
    float!("aten::arccos", Acos),
    float!("aten::atan", Atan),
    float!("aten::arctan", Atan),
    float!("aten::sinh", Sinh),
    float!("aten::cosh", Cosh),
    float!("aten::tanh", Tanh),
    float!("aten::asinh", Asinh),
    float!("aten::arcsinh", Asinh),
    float!("aten::acosh", Acosh),
    float!("aten::arccosh", Acosh),
    float!("aten::atanh", Atanh),
    float!("aten::arctanh", Atanh),
    float!("aten::erf", Erf),
    float!("aten::special_erf", Erf),
    float!("aten::erfc", Erfc),
    float!("aten::special_erfc", Erfc),
    float!("aten::erfinv", Erfinv),
    float!("aten::special_erfinv", Erfinv),
    float!("aten::lgamma", Lgamma),
    float!("aten::special_gammaln", Lgamma),
    float!("aten::digamma", Digamma),
    float!("aten::special_digamma", Digamma),
    float!("aten::special_psi", Digamma),
    float!("aten::i0", I0),
    float!("aten::special_i0", I0),
    ("aten::abs", Pointwise::new(SELF, Real, |b| b.x(0).abs())),
    ("aten::absolute", Pointwise::new(SELF, Real, |b| b.x(0).abs())),
    any!("aten::floor", Floor),
    any!("aten::ceil", Ceil),
    any!("aten::trunc", Trunc),
    any!("aten::fix", Trunc),
    any!("aten::round", Round),
    ("aten::round.decimals", Pointwise::new(SELF, Default, round_decimals)),
    any!("aten::sign", Sign),
    any!("aten::sgn", Sign),
    (
        "aten::signbit",
        Pointwise::new(SELF, ToBool, |b| {
            // -0.0 has the bit, which only copysign shows.
            if !b.compute().is_floating_point() {
                return b.x(0).lt(0.0);
            }
            b.constant(1.0)
                .binary(frazil_runtime::expr::BinaryOp::Copysign, b.x(0))
                .lt(0.0)
        }),
    ),
    ("aten::frac", Pointwise::new(SELF, Default, |b| b.x(0) - b.x(0).trunc())),
    ("aten::sigmoid", Pointwise::new(SELF, IntToFloat, |b| b.x(0).sigmoid())),
    (
        "aten::special_expit",
        Pointwise::new(SELF, IntToFloat, |b| b.x(0).sigmoid()),
    ),
    ("aten::logit", Pointwise::new(SELF, IntToFloat, logit)),
    ("aten::special_logit", Pointwise::new(SELF, IntToFloat, logit)),
    (
        "aten::sinc",
        Pointwise::new(SELF, IntToFloat, |b| {
            let angle = b.x(0) * std::f64::consts::PI;
            b.x(0).eq(0.0).select(b.constant(1.0), angle.sin() / angle)
        }),
    ),
    (
        "aten::deg2rad",
        Pointwise::new(SELF, IntToFloat, |b| b.x(0) * (std::f64::consts::PI / 180.0)),
    ),
    (
        "aten::rad2deg",
        Pointwise::new(SELF, IntToFloat, |b| b.x(0) * (180.0 / std::f64::consts::PI)),
    ),
    (
        "aten::xlogy",
        Pointwise::new(&["self", "other"], IntToFloat, |b| x_times(b, b.stored(b.x(1).log()))),
    ),
    (
        "aten::special_xlogy",
        Pointwise::new(&["self", "other"], IntToFloat, |b| x_times(b, b.stored(b.x(1).log()))),
    ),
    (
        "aten::special_xlog1py",
        Pointwise::new(&["self", "other"], IntToFloat, |b| x_times(b, b.stored(b.x(1).log1p()))),
    ),
    (
        "aten::special_entr",
        Pointwise::new(SELF, IntToFloat, |b| {
            let x = b.x(0);
            let inside = x.eq(0.0).select(b.constant(0.0), -(x * b.stored(x.log())));
            x.is_nan()
                .select(x, x.lt(0.0).select(b.constant(f64::NEG_INFINITY), inside))
        }),
    ),
    (
        "aten::logaddexp",
        Pointwise::new(&["self", "other"], Default, |b| {
            let (x, y) = (b.x(0), b.x(1));
            if b.compute().is_complex() {
                return log_add_complex(b);
            }
            let equal_infinities = x.is_inf().and(x.eq(y));
            equal_infinities.select(x, x.maximum(y) + (-(x - y).abs()).exp().log1p())
        }),
    ),
    (
        "aten::logaddexp2",
        Pointwise::new(&["self", "other"], Default, |b| {
            let (x, y) = (b.x(0), b.x(1));
            let equal_infinities = x.is_inf().and(x.eq(y));
            let tail = (-(x - y).abs()).unary(UnaryOp::Exp2).log1p() * std::f64::consts::LOG2_E;
            equal_infinities.select(x, x.maximum(y) + tail)
        }),
    ),
];

/// x * y, which is 0 for x = 0 whatever y is, unless it is NaN.
fn x_times<'f>(b: &Body<'f, '_>, y: Sym<'f>) -> Sym<'f> {
    let product = b.x(0).eq(0.0).select(b.constant(0.0), b.x(0) * y);
    b.x(1).is_nan().select(b.x(1), product)
}

/// log(e^x + e^y), from the number with the larger real part.
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
