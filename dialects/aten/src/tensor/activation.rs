//! Activation functions, such as `relu`, `gelu` and `hardtanh`.

use super::arithmetic::times_alpha;
use frazil_ir::DType;
use frazil_ir::schema::{Activation, Observes};
use frazil_runtime::Scalar;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::OpError;
use frazil_runtime::pointwise::Promotion::{Default, Float};
use frazil_runtime::pointwise::{Body, Pointwise};
use frazil_runtime::sym::Sym;

const SELF: &[&str] = &["self"];

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::relu",
        Entry::pointwise(Pointwise::new(SELF, Default, |b| match b.dtype() {
            DType::Bool => b.fail(OpError::raised("Boolean inputs not supported for relu")),
            _ => b.x(0).maximum(0.0),
        }))
        .preserves_rank()
        .activation(Activation::KeepsDtype)
        .observes(Observes::Elements),
    ),
    // The result of `add` and `relu`. PyTorch's kernel differs: it clamps infinity to the largest finite number, and NaN to zero for some elements.
    (
        "aten::_add_relu",
        Entry::pointwise(Pointwise::new(&["self", "other"], Default, |b| {
            (b.x(0) + times_alpha(b, 1)).maximum(0.0)
        })),
    ),
    (
        "aten::relu6",
        Entry::pointwise(Pointwise::new(SELF, Default, |b| b.x(0).maximum(0.0).minimum(6.0)))
            .preserves_rank()
            .activation(Activation::KeepsDtype),
    ),
    (
        "aten::hardtanh",
        Entry::pointwise(Pointwise::new(SELF, Default, |b| {
            let (low, high) = (b.value("min_val"), b.value("max_val"));
            if let Some(text) = refused_limits(b.dtype(), low, high) {
                return b.fail(OpError::raised(text));
            }
            if b.compute().is_floating_point() || b.compute().is_complex() {
                let (low, high) = (b.rounded_scalar("min_val"), b.rounded_scalar("max_val"));
                return b.x(0).maximum(low).minimum(high);
            }
            // A limit may be one that the dtype cannot hold, as long as it is an integer.
            let x = b.x(0).cast(DType::Long);
            let limit = |name| match b.number_argument(name).map(|s| s.checked_to(DType::Long)) {
                Some(Ok(s)) => x.number(s.as_i64().into()),
                Some(Err(error)) => b.fail(error.into()).cast(DType::Long),
                None => x,
            };
            x.maximum(limit("min_val")).minimum(limit("max_val")).cast(b.compute())
        }))
        .preserves_rank()
        .activation(Activation::KeepsDtype),
    ),
    (
        "aten::leaky_relu",
        Entry::pointwise(Pointwise::new(SELF, Float, |b| {
            b.x(0).gt(0.0).select(b.x(0), b.x(0) * b.scalar("negative_slope"))
        }))
        .preserves_rank()
        .activation(Activation::KeepsDtype),
    ),
    (
        "aten::elu",
        Entry::pointwise(Pointwise::new(SELF, Float, elu))
            .preserves_rank()
            .activation(Activation::KeepsDtype),
    ),
    (
        "aten::selu",
        Entry::pointwise(Pointwise::new(SELF, Float, |b| {
            // The constants of the paper, which make activations normalise themselves.
            const ALPHA: f64 = 1.673_263_242_354_377_2;
            const SCALE: f64 = 1.050_700_987_355_480_5;
            b.x(0).lt(0.0).select(b.x(0).expm1() * (ALPHA * SCALE), b.x(0) * SCALE)
        }))
        .activation(Activation::KeepsDtype),
    ),
    (
        "aten::celu",
        Entry::pointwise(Pointwise::new(SELF, Float, |b| {
            let alpha = b.value_in_range("alpha");
            if alpha == 0.0 {
                return b.fail(OpError::raised("ZeroDivisionError: alpha cannot be 0 for CELU"));
            }
            b.x(0).lt(0.0).select((b.x(0) / alpha).expm1() * alpha, b.x(0))
        }))
        .activation(Activation::KeepsDtype),
    ),
    (
        "aten::gelu",
        Entry::pointwise(Pointwise::new(SELF, Float, gelu))
            .preserves_rank()
            .activation(Activation::KeepsDtype)
            .observes(Observes::Elements),
    ),
    (
        "aten::silu",
        Entry::pointwise(Pointwise::new(SELF, Float, |b| {
            b.x(0) / (b.constant(1.0) + (-b.x(0)).exp())
        }))
        .preserves_rank()
        .activation(Activation::KeepsDtype)
        .observes(Observes::Elements),
    ),
    (
        "aten::mish",
        Entry::pointwise(Pointwise::new(SELF, Float, |b| b.x(0) * b.x(0).softplus().tanh())).preserves_rank(),
    ),
    (
        "aten::softplus",
        Entry::pointwise(Pointwise::new(SELF, Float, softplus)),
    ),
    (
        "aten::log_sigmoid",
        Entry::pointwise(Pointwise::new(SELF, Float, |b| {
            b.x(0).minimum(0.0) - (-b.x(0).abs()).exp().log1p()
        })),
    ),
    (
        "aten::hardsigmoid",
        Entry::pointwise(Pointwise::new(SELF, Float, |b| {
            (b.x(0) + 3.0).maximum(0.0).minimum(6.0) / 6.0
        }))
        .activation(Activation::KeepsDtype),
    ),
    (
        "aten::hardswish",
        Entry::pointwise(Pointwise::new(SELF, Float, |b| {
            b.x(0) * (b.x(0) + 3.0).maximum(0.0).minimum(6.0) / 6.0
        }))
        .preserves_rank()
        .activation(Activation::KeepsDtype),
    ),
    (
        "aten::hardshrink",
        Entry::pointwise(Pointwise::new(SELF, Float, |b| {
            let lambda = b.rounded_scalar("lambd");
            b.x(0).abs().le(lambda).select(b.constant(0.0), b.x(0))
        }))
        .activation(Activation::KeepsDtype),
    ),
    (
        "aten::softshrink",
        Entry::pointwise(Pointwise::new(SELF, Float, |b| {
            let (x, lambda) = (b.x(0), b.rounded_scalar("lambd"));
            let (given, dtype) = (b.value("lambd"), b.dtype());
            if !(given >= 0.0 && given.is_finite()) || Scalar::Float(given).checked_to(dtype).is_err() {
                return b.fail(OpError::raised(format!(
                    "lambda must be in range [0, the largest number] for input dtype {}, but found {given}",
                    dtype.type_name()
                )));
            }
            x.gt(lambda)
                .select(x - lambda, x.lt(-lambda).select(x + lambda, x * 0.0))
        })),
    ),
    (
        "aten::threshold",
        Entry::pointwise(Pointwise::new(SELF, Default, |b| {
            b.demand("threshold_cpu", |dtype| dtype != DType::Bool);
            b.x(0)
                .le(b.scalar("threshold"))
                .select(b.rounded_scalar("value"), b.x(0))
        })),
    ),
    // Channels are dimension 1; a weight of one element serves all.
    (
        "aten::_prelu_kernel",
        Entry::pointwise(Pointwise::new(&["self", "weight"], Float, |b| {
            b.x(0).gt(0.0).select(b.x(0), b.x(0) * b.x(1))
        })),
    ),
];

/// Returns PyTorch's error message for the limits of a hardtanh, if PyTorch refuses them.
fn refused_limits(dtype: DType, low: f64, high: f64) -> Option<&'static str> {
    match dtype {
        DType::Bool => Some("Bool inputs not supported for hardtanh"),
        _ if low > high => Some("min_val cannot be greater than max_val"),
        _ => None,
    }
}

fn elu<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let (alpha, scale, input_scale) = (
        b.value_in_range("alpha"),
        b.value_in_range("scale"),
        b.value_in_range("input_scale"),
    );
    let x = b.x(0);
    let negative = (x * input_scale).expm1() * (alpha * scale);
    // Zero is on the straight side, whatever the sign of the other.
    x.lt(0.0).select(negative, x * scale)
}

fn gelu<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let x = b.x(0);
    match b.text("approximate").as_str() {
        "tanh" => {
            let inner = (x + x * x * x * 0.044715) * (2.0 / std::f64::consts::PI).sqrt();
            x * 0.5 * (inner.tanh() + 1.0)
        }
        "none" => x * 0.5 * ((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0),
        _ => b.fail(OpError::raised("approximate argument must be either none or tanh.")),
    }
}

/// Returns the softplus of operand 0. Above the threshold, it equals the operand to working precision.
fn softplus<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let (beta, threshold) = (b.value_in_range("beta"), b.value_in_range("threshold"));
    let scaled = b.x(0) * beta;
    scaled.gt(threshold).select(b.x(0), scaled.exp().log1p() / beta)
}
