//! Elementwise arithmetic.

use super::by_tensor;
use super::complex::mapped;
use frazil_ir::DType;
use frazil_ir::schema::{AliasUse, Observes, ResultRank};
use frazil_runtime::Scalar;
use frazil_runtime::args::Args;
use frazil_runtime::call::run_as_program;
use frazil_runtime::entry::{Entry, ResultLayout, Row, ScalarConversion, ScalarVariant};
use frazil_runtime::expr::{BinaryOp, UnaryOp};
use frazil_runtime::op::{Form, OpError, one};
use frazil_runtime::pointwise::Promotion::{Default, IntToFloat, Wide};
use frazil_runtime::pointwise::{Body, Pointwise};
use frazil_runtime::promote::real_of;
use frazil_runtime::structured::Program;
use frazil_runtime::sym::Sym;
use frazil_runtime::value::Value;
use num_complex::Complex64;

const SELF: &[&str] = &["self"];
const SELF_OTHER: &[&str] = &["self", "other"];

/// Computes `condition ? self : other`. The overload `where(condition)`, which returns indices, is implemented elsewhere.
const WHERE: Pointwise = Pointwise::new(SELF_OTHER, Default, |b| {
    // PyTorch makes tensors of one element of numbers, and checks those, unless they are halves.
    if !matches!(b.dtype(), DType::Half | DType::BFloat16) {
        b.check_operand(0, b.dtype());
        b.check_operand(1, b.dtype());
    }
    b.mask(0).select(b.x(0), b.x(1))
})
.with_others(&["condition"]);

fn is_integer(dtype: DType) -> bool {
    !(dtype.is_floating_point() || dtype.is_complex() || dtype == DType::Bool)
}

fn is_real_number(dtype: DType) -> bool {
    is_integer(dtype) || dtype.is_floating_point()
}

/// Entries of the elementwise arithmetic operators.
pub(super) const ENTRIES: &[Row] = &[
    // self + alpha * other
    (
        "aten::add",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| b.x(0) + scaled(b, 1)))
            .rank(ResultRank::Broadcast)
            .observes(Observes::Elements),
    ),
    (
        "aten::sub",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            no_bools(b);
            b.x(0) - scaled(b, 1)
        }))
        .aliases(&[("aten::subtract", AliasUse::Everywhere)])
        .rank(ResultRank::Broadcast)
        .observes(Observes::Elements),
    ),
    (
        "aten::rsub",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            no_bools(b);
            b.x(1) - scaled(b, 0)
        })),
    ),
    (
        "aten::mul",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| b.x(0) * b.unrounded(1)))
            .aliases(&[("aten::multiply", AliasUse::Everywhere)])
            .rank(ResultRank::Broadcast)
            .observes(Observes::Elements),
    ),
    (
        "aten::div",
        Entry::pointwise(Pointwise::new(SELF_OTHER, IntToFloat, quotient))
            .layout(ResultLayout::Elementwise)
            .aliases(&[
                ("aten::divide", AliasUse::Everywhere),
                ("aten::true_divide", AliasUse::Everywhere),
            ])
            .rank(ResultRank::Broadcast)
            .observes(Observes::Elements),
    ),
    (
        "aten::floor_divide",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            b.demand("div_floor_cpu", is_real_number);
            b.x(0).binary(BinaryOp::DivFloor, b.unrounded(1))
        })),
    ),
    (
        "aten::remainder",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            b.demand("remainder_cpu", is_real_number);
            b.x(0).binary(BinaryOp::Remainder, b.x(1))
        })),
    ),
    (
        "aten::fmod",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            b.demand("fmod_cpu", is_real_number);
            b.x(0).binary(BinaryOp::Fmod, b.x(1))
        })),
    ),
    (
        "aten::pow",
        Entry::pointwise(Pointwise::new(&["self", "exponent"], Default, power)),
    ),
    (
        "aten::float_power",
        Entry::pointwise(Pointwise::new(&["self", "exponent"], Wide, power)),
    ),
    (
        "aten::neg",
        Entry::pointwise(Pointwise::new(SELF, Default, |b| -no_bool(b)))
            .aliases(&[("aten::negative", AliasUse::Everywhere)]),
    ),
    (
        "aten::reciprocal",
        Entry::pointwise(Pointwise::new(SELF, IntToFloat, |b| b.constant(1.0) / b.x(0))),
    ),
    (
        "aten::maximum",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| b.x(0).maximum(b.x(1)))),
    ),
    (
        "aten::minimum",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| b.x(0).minimum(b.x(1)))),
    ),
    (
        "aten::max.other",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| b.x(0).maximum(b.x(1)))),
    ),
    (
        "aten::min.other",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| b.x(0).minimum(b.x(1)))),
    ),
    (
        "aten::fmax",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            b.x(0).binary(BinaryOp::Fmax, b.x(1))
        })),
    ),
    (
        "aten::fmin",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            b.x(0).binary(BinaryOp::Fmin, b.x(1))
        })),
    ),
    (
        "aten::hypot",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            b.demand("hypot_cpu", DType::is_floating_point);
            b.x(0).binary(BinaryOp::Hypot, b.x(1))
        })),
    ),
    (
        "aten::atan2",
        Entry::pointwise(Pointwise::new(SELF_OTHER, IntToFloat, |b| {
            b.x(0).binary(BinaryOp::Atan2, b.x(1))
        }))
        .aliases(&[("aten::arctan2", AliasUse::Everywhere)]),
    ),
    (
        "aten::copysign",
        Entry::pointwise(Pointwise::new(SELF_OTHER, IntToFloat, |b| {
            b.x(0).binary(BinaryOp::Copysign, b.x(1))
        })),
    ),
    (
        "aten::nextafter",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, next_after)),
    ),
    (
        "aten::gcd",
        Entry::pointwise(Pointwise::new(SELF_OTHER, Default, |b| {
            b.demand("gcd_cpu", is_integer);
            b.x(0).binary(BinaryOp::Gcd, b.x(1))
        })),
    ),
    ("aten::lcm", Entry::pointwise(Pointwise::new(SELF_OTHER, Default, lcm))),
    (
        "aten::heaviside",
        Entry::pointwise(Pointwise::new(&["self", "values"], Default, heaviside)).without_gradients(),
    ),
    (
        "aten::clamp",
        Entry::pointwise(Pointwise::new(&["self", "min", "max"], Default, clamp))
            .aliases(&[("aten::clip", AliasUse::Everywhere)]),
    ),
    (
        "aten::clamp_min",
        Entry::pointwise(Pointwise::new(&["self", "min"], Default, |b| {
            limited(b, BinaryOp::Maximum)
        })),
    ),
    (
        "aten::clamp_max",
        Entry::pointwise(Pointwise::new(&["self", "max"], Default, |b| {
            limited(b, BinaryOp::Minimum)
        })),
    ),
    // start + weight * (end - start), from the nearer end
    (
        "aten::lerp",
        Entry::pointwise(Pointwise::new(&["self", "end", "weight"], Default, lerp)),
    ),
    // self + value * tensor1 * tensor2, and with a quotient
    (
        "aten::addcmul",
        Entry::pointwise(Pointwise::new(&["self", "tensor1", "tensor2"], Default, |b| {
            b.demand("addcmul_cpu_out", |dtype| dtype != DType::Bool);
            b.x(0) + b.scalar("value") * b.x(1) * b.x(2)
        })),
    ),
    (
        "aten::addcdiv",
        Entry::pointwise(Pointwise::new(&["self", "tensor1", "tensor2"], Default, |b| {
            let whole = |n| b.operand_dtype(n).is_some_and(|d| is_integer(d) || d == DType::Bool);
            if whole(1) && whole(2) {
                return b.fail(OpError::raised(INTEGER_ADDCDIV));
            }
            b.x(0) + b.scalar("value") * b.x(1) / b.x(2)
        })),
    ),
    // condition ? self : other
    ("aten::where.self", Entry::pointwise(WHERE)),
    ("aten::where.Scalar", Entry::pointwise(WHERE)),
    ("aten::where.ScalarSelf", Entry::pointwise(WHERE)),
    ("aten::where.ScalarOther", Entry::pointwise(WHERE)),
    (
        "aten::nan_to_num",
        Entry::pointwise(NAN_TO_NUM).eager(|c| {
            let t = c.tensor(0)?;
            if !t.dtype().is_complex() {
                if c.schema.is_mutable() && !t.dtype().is_floating_point() {
                    // Nothing is written, so the tensor may as well be one that cannot be.
                    return one(t);
                }
                return run_as_program(c, |args| NAN_TO_NUM.program(args));
            }
            let given = |n: usize, default: f64| match c.arg(n) {
                Value::None => Ok(default),
                _ => c.float(n),
            };
            let max = match real_of(t.dtype()) {
                DType::Half => 65504.0,
                DType::Double => f64::MAX,
                _ => f64::from(f32::MAX),
            };
            let (nan, above, below) = (given(1, 0.0)?, given(2, max)?, given(3, -max)?);
            let number = |x: f64| match x {
                _ if x.is_nan() => nan,
                f64::INFINITY => above,
                f64::NEG_INFINITY => below,
                _ => x,
            };
            one(mapped(&t, |z| Complex64::new(number(z.re), number(z.im)))?)
        }),
    ),
    (
        "aten::masked_fill",
        Entry::pointwise(Pointwise::new(SELF, Default, masked_fill).with_others(&["mask", "value"]))
            .layout(ResultLayout::AsComputed),
    ),
    ("aten::div.Tensor_mode", Entry::program(Form::Pointwise, divided)),
    (
        "aten::div.Scalar_mode",
        Entry::program(Form::Pointwise, divided).scalar_variant(&ScalarVariant {
            overload: "Tensor_mode",
            ..by_tensor(1, ScalarConversion::Quotient)
        }),
    ),
    (
        "aten::add.Scalar",
        Entry::new().scalar_variant(&by_tensor(1, ScalarConversion::Promoted)),
    ),
    (
        "aten::sub.Scalar",
        Entry::new().scalar_variant(&by_tensor(1, ScalarConversion::Promoted)),
    ),
    (
        "aten::mul.Scalar",
        Entry::new().scalar_variant(&by_tensor(1, ScalarConversion::Widened)),
    ),
    (
        "aten::div.Scalar",
        Entry::new().scalar_variant(&by_tensor(1, ScalarConversion::Quotient)),
    ),
    (
        "aten::masked_fill.Scalar",
        Entry::new().scalar_variant(&by_tensor(2, ScalarConversion::Stored)),
    ),
];

/// Returns a division with `rounding_mode` None, "trunc" or "floor". Without rounding, integers are converted to
/// floats.
fn divided(args: &Args<'_>) -> Result<Program, OpError> {
    let entry = match args.opt_str("rounding_mode")? {
        None => Pointwise::new(SELF_OTHER, IntToFloat, quotient),
        Some(_) => Pointwise::new(SELF_OTHER, Default, rounded_division),
    };
    entry.program(args)
}

fn quotient<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    b.x(0) / b.unrounded(1)
}

const INTEGER_ADDCDIV: &str = "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true \
    division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / \
    tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior \
    is just the latter implementation: (input + value * tensor1 / tensor2), for all dtypes.";

/// Refuses a factor `alpha` of a higher type category (integer, float, complex) than `dtype`, the dtype of the operand.
pub(super) fn check_alpha(alpha: Scalar, dtype: DType) -> Result<(), OpError> {
    let float = dtype.is_floating_point() || dtype.is_complex();
    Err(OpError::raised(match alpha {
        Scalar::Bool(_) if dtype != DType::Bool => "Boolean alpha only supported for Boolean results.",
        Scalar::Float(_) if !float => "For integral input tensors, argument alpha must not be a floating point number.",
        Scalar::Complex(_) if !dtype.is_complex() => {
            "For non-complex input tensors, argument alpha must not be a complex number."
        }
        _ => return Ok(()),
    }))
}

/// Returns `alpha * operand`, without a multiplication if alpha is 1.
pub(super) fn scaled<'f>(b: &Body<'f, '_>, operand: usize) -> Sym<'f> {
    if let Some(Err(error)) = b.number_argument("alpha").map(|alpha| check_alpha(alpha, b.dtype())) {
        return b.fail(error);
    }
    times_alpha(b, operand)
}

/// Returns `alpha * operand` like [`scaled`], for operators with any `alpha`.
pub(super) fn times_alpha<'f>(b: &Body<'f, '_>, operand: usize) -> Sym<'f> {
    match b.value("alpha") {
        // Complex numbers are multiplied in any case, which makes NaN of an infinity.
        1.0 if !b.compute().is_complex() => b.x(operand),
        _ => b.rounded_scalar("alpha") * b.x(operand),
    }
}

/// Returns operand 0 of a negation. Bool is refused.
fn no_bool<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    if b.dtype() == DType::Bool {
        return b.fail(OpError::raised(
            "Negation, the `-` operator, on a bool tensor is not supported. \
             If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
        ));
    }
    b.x(0)
}

/// Refuses a subtraction with an operand of dtype Bool or type `bool`.
fn no_bools(b: &Body<'_, '_>) {
    let is_bool = |n| b.operand_dtype(n) == Some(DType::Bool);
    let text = match (is_bool(0), is_bool(1)) {
        (true, true) => {
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        }
        (false, false) => return,
        _ => {
            "Subtraction, the `-` operator, with a bool tensor is not supported. \
             If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        }
    };
    b.fail(OpError::raised(text));
}

fn rounded_division<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    match b.text("rounding_mode").as_str() {
        // Quotients of f16 and bf16 are rounded before they are cut off.
        "trunc" if b.compute() != b.dtype() => b.stored(b.x(0) / b.x(1)).trunc(),
        "trunc" => b.x(0).binary(BinaryOp::DivTrunc, b.unrounded(1)),
        "floor" => b.x(0).binary(BinaryOp::DivFloor, b.unrounded(1)),
        other => b.fail(OpError::raised(format!(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'"
        ))),
    }
}

/// Computes powers. Small constant exponents become products and roots, which are exact, unlike the general function.
fn power<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let x = b.x(0);
    let float = b.compute().is_floating_point() || b.compute().is_complex();
    b.demand("pow", |dtype| dtype != DType::Bool);
    // Wide floats take an exponent as a double.
    if !(float && matches!(b.compute(), DType::Float | DType::Double) && b.dtype() == b.compute()) {
        b.check_operand(1, b.dtype());
    }
    match b.constant_operand(1) {
        Some(0.0) => b.constant(1.0),
        Some(2.0) => x * x,
        Some(3.0) => x * x * x,
        Some(1.0) => x,
        // Of `Half` roots are powers, which are not NaN at minus infinity.
        Some(0.5) if float && b.dtype() != DType::Half => x.sqrt(),
        Some(-0.5) if float && b.dtype() != DType::Half => x.rsqrt(),
        Some(-1.0) if float => b.constant(1.0) / x,
        Some(-2.0) if float => b.constant(1.0) / (x * x),
        Some(e) if e < 0.0 && !float => b.fail(OpError::raised("Integers to negative integer powers are not allowed.")),
        _ => x.pow(b.x(1)),
    }
}

/// Implements `nextafter`. For f16 and bf16, the step is one unit in the last place of that dtype, although the computation is in Float.
fn next_after<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let (x, y) = (b.x(0), b.x(1));
    b.demand("nextafter_cpu", DType::is_floating_point);
    // Bits behind the leading one, the least exponent of a normal number, the largest number.
    let (digits, least, largest) = match b.dtype() {
        DType::Half => (10.0, -14.0, 65504.0),
        DType::BFloat16 => (7.0, -126.0, f64::from(half::bf16::MAX)),
        _ => return x.binary(BinaryOp::Nextafter, y),
    };
    let size = x.abs();
    let exponent = size.unary(UnaryOp::Log2).floor().maximum(least);
    let unit = (exponent - digits).unary(UnaryOp::Exp2);
    // Below a power of two, the distance between adjacent numbers is half of that above it.
    let at_power = size.eq(exponent.unary(UnaryOp::Exp2)).and(exponent.gt(least));
    let inwards = x.gt(0.0).and(y.lt(x)).or(x.lt(0.0).and(y.gt(x)));
    let unit = at_power.and(inwards).select(unit * 0.5, unit);
    let step = y.gt(x).select(unit, -unit);
    let next = x.is_inf().select(x.sign() * largest, x + step);
    let equal = x.eq(y);
    equal.or(y.is_nan()).select(y, x.is_nan().select(x, next))
}

fn lcm<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let (x, y) = (b.x(0), b.x(1));
    b.demand("lcm_cpu", is_integer);
    let g = x.binary(BinaryOp::Gcd, y);
    let zero = g.eq(0.0);
    let safe = zero.select(b.constant(1.0), g);
    zero.select(b.constant(0.0), x.binary(BinaryOp::DivTrunc, safe) * y)
        .abs()
}

fn heaviside<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let x = b.x(0);
    if b.operand_dtype(0) != b.operand_dtype(1) {
        return b.fail(OpError::raised(
            "heaviside is not yet implemented for tensors with different dtypes.",
        ));
    }
    x.eq(0.0).select(b.x(1), x.gt(0.0).select(b.constant(1.0), 0.0))
}

/// Returns operand 0 clamped to operand 1, a lower or upper limit.
fn limited<'f>(b: &Body<'f, '_>, op: BinaryOp) -> Sym<'f> {
    limit(b, b.x(0), (b.x(1), 1), op)
}

/// Returns `x` clamped to a limit. A number as limit may be out of the range of a small integer dtype, unless no value
/// would be within it.
fn limit<'f>(b: &Body<'f, '_>, x: Sym<'f>, (to, operand): (Sym<'f>, usize), op: BinaryOp) -> Sym<'f> {
    let dtype = b.compute();
    let (Some(limit), Some((least, largest))) = (b.constant_operand(operand), small_range(dtype)) else {
        b.check_operand(operand, b.dtype());
        return x.binary(op, to);
    };
    let (name, nothing) = match op {
        BinaryOp::Maximum => ("min", limit > largest),
        _ => ("max", limit < least),
    };
    if nothing {
        let dtype = dtype.type_name();
        return b.fail(OpError::raised(format!(
            "Clamp {name} value {limit} is outside the representable range of {dtype}"
        )));
    }
    let x = x.cast(DType::Long);
    x.binary(op, x.constant(limit.clamp(least, largest).trunc()))
        .cast(dtype)
}

/// Returns the smallest and the largest value of an integer dtype of up to four bytes.
fn small_range(dtype: DType) -> Option<(f64, f64)> {
    match dtype {
        DType::Byte => Some((0.0, 255.0)),
        DType::Char => Some((-128.0, 127.0)),
        DType::Short => Some((-32768.0, 32767.0)),
        DType::Int => Some((f64::from(i32::MIN), f64::from(i32::MAX))),
        _ => None,
    }
}

fn clamp<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let (low, high) = (b.optional("min"), b.optional("max"));
    if low.is_none() && high.is_none() {
        return b.fail(OpError::raised(
            "torch.clamp: At least one of 'min' or 'max' must not be None",
        ));
    }
    let bound = |x, to: Option<Sym<'f>>, n, op| to.map_or(x, |to| limit(b, x, (to, n), op));
    let x = bound(b.x(0), low, 1, BinaryOp::Maximum);
    bound(x, high, 2, BinaryOp::Minimum)
}

fn lerp<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let (start, end) = (b.x(0), b.x(1));
    if let Some(error) = refused_ends(b) {
        return b.fail(error);
    }
    // A number is not rounded to f16 or bf16.
    b.check_operand(2, b.compute());
    let weight = b.unrounded(2);
    let difference = end - start;
    let near = weight.abs().cast(real_of(b.compute())).lt(0.5);
    near.select(
        start + weight * difference,
        end - difference * (b.constant(1.0) - weight),
    )
}

/// Returns PyTorch's error for operands of `lerp` that it refuses: both ends, and a weight with dimensions, must have the same float dtype.
fn refused_ends(b: &Body<'_, '_>) -> Option<OpError> {
    let own = b.operand_dtype(0)?;
    let weighs = b.rank("weight") > 0;
    for (n, name) in [(1, "end"), (2, "weight")] {
        let other = b.operand_dtype(n)?;
        if other != own && (n == 1 || weighs) {
            let (own, other) = (own.type_name(), other.type_name());
            return Some(OpError::raised(format!(
                "expected dtype {own} for `{name}` but got dtype {other}"
            )));
        }
    }
    if own.is_floating_point() || own.is_complex() {
        return None;
    }
    let (kind, dtype) = (if weighs { "tensor" } else { "scalar" }, own.type_name());
    Some(OpError::raised(format!(
        "\"lerp_kernel_{kind}\" not implemented for '{dtype}'"
    )))
}

const NAN_TO_NUM: Pointwise = Pointwise::new(SELF, Default, nan_to_num);

/// Replaces NaN by `nan` (0), infinities by `posinf` and `neginf` (the largest and the smallest finite number).
fn nan_to_num<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let x = b.x(0);
    let max = match b.dtype() {
        DType::Half => 65504.0,
        DType::BFloat16 => f64::from(half::bf16::MAX),
        DType::Float => f64::from(f32::MAX),
        DType::Double => f64::MAX,
        _ => return x,
    };
    let or = |name: &str, default: f64| if b.is_none(name) { default } else { b.value(name) };
    let finite = x
        .is_inf()
        .select(x.gt(0.0).select(b.constant(or("posinf", max)), or("neginf", -max)), x);
    x.is_nan().select(b.constant(or("nan", 0.0)), finite)
}

/// Returns `masked_fill`. The value is converted to the dtype of self and takes no part in promotion.
fn masked_fill<'f>(b: &Body<'f, '_>) -> Sym<'f> {
    let rank = b.rank("value");
    if rank > 0 {
        return b.fail(OpError::raised(format!(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {rank} dimension(s)."
        )));
    }
    if let Some(Err(error)) = b.number_argument("value").map(|value| value.checked_to(b.dtype())) {
        return b.fail(error.into());
    }
    let value = b.foreign("value");
    b.mask(0).select(value, b.x(0))
}
