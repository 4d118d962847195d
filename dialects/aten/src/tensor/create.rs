//! Creation of tensors: `full`, `arange`, `eye` and similar operators.

use super::by_tensor;
use frazil_ir::DType;
use frazil_runtime::args::{Arg, Args};
use frazil_runtime::build::ProgramBuilder;
use frazil_runtime::call::laid_out_as;
use frazil_runtime::entry::{Entry, Role, Row, ScalarConversion};
use frazil_runtime::op::{Call, Form::Pointwise, OpError, Results, one};
use frazil_runtime::structured::Program;
use frazil_runtime::sym::Formula;
use frazil_runtime::value::{ListValue, Value};
use frazil_runtime::{Scalar, Tensor, layout};
use std::mem::discriminant;

/// Entries of operators that create tensors. `*_like` operators have kernels that keep the strides of their operand.
pub(super) const ENTRIES: &[Row] = &[
    ("aten::zeros", Entry::program(Pointwise, |a| filled(a, Scalar::Int(0)))),
    ("aten::ones", Entry::program(Pointwise, |a| filled(a, Scalar::Int(1)))),
    // Memory without a value: zero is as good as any, and the same each time.
    (
        "aten::empty",
        Entry::program(Pointwise, |a| filled(a, Scalar::Int(0))).external(),
    ),
    (
        "aten::full",
        Entry::program(Pointwise, full).eager(|c| {
            let value = c.scalar(1)?;
            let dtype = c.opt_dtype(2)?.unwrap_or(value.default_dtype());
            one(full_checked(dtype, &c.ints(0)?, value)?)
        }),
    ),
    (
        "aten::zeros_like",
        Entry::program(Pointwise, |a| filled_like(a, Scalar::Int(0)))
            .eager(|c| like(c, Scalar::Int(0), 1))
            .without_gradients(),
    ),
    (
        "aten::ones_like",
        Entry::program(Pointwise, |a| filled_like(a, Scalar::Int(1)))
            .eager(|c| like(c, Scalar::Int(1), 1))
            .without_gradients(),
    ),
    (
        "aten::empty_like",
        Entry::program(Pointwise, |a| filled_like(a, Scalar::Int(0)))
            .eager(|c| like(c, Scalar::Int(0), 1))
            .external()
            .without_gradients(),
    ),
    (
        "aten::full_like",
        Entry::program(Pointwise, |a| filled_like(a, a.scalar("fill_value")?))
            .eager(|c| like(c, c.scalar(1)?, 2))
            .without_gradients(),
    ),
    (
        "aten::new_zeros",
        Entry::program(Pointwise, |a| new_filled(a, Scalar::Int(0))).without_gradients(),
    ),
    (
        "aten::new_ones",
        Entry::program(Pointwise, |a| new_filled(a, Scalar::Int(1))).without_gradients(),
    ),
    (
        "aten::new_empty",
        Entry::program(Pointwise, |a| new_filled(a, Scalar::Int(0)))
            .external()
            .without_gradients(),
    ),
    (
        "aten::new_full",
        Entry::program(Pointwise, |a| new_filled(a, a.scalar("fill_value")?))
            .eager(|c| {
                let dtype = c.opt_dtype(3)?.unwrap_or(c.tensor(0)?.dtype());
                one(full_checked(dtype, &c.ints(1)?, c.scalar(2)?)?)
            })
            .without_gradients(),
    ),
    (
        "aten::scalar_tensor",
        Entry::program(Pointwise, |a| {
            let dtype = a.opt_dtype("dtype")?.unwrap_or(DType::Float);
            fill(a, dtype, &[], a.scalar("s")?)
        }),
    ),
    ("aten::arange", Entry::program(Pointwise, arange)),
    ("aten::linspace", Entry::program(Pointwise, |a| spaced(a, None))),
    (
        "aten::logspace",
        Entry::program(Pointwise, |a| spaced(a, Some(a.float("base")?))),
    ),
    ("aten::eye", Entry::program(Pointwise, eye)),
    (
        "aten::zero",
        Entry::program(Pointwise, |a| filled_like(a, Scalar::Int(0))).fills(),
    ),
    ("aten::fill", Entry::program(Pointwise, fill_value).fills()),
    ("aten::tril", Entry::program(Pointwise, |a| triangle(a, true))),
    ("aten::triu", Entry::program(Pointwise, |a| triangle(a, false))),
    (
        "aten::tensor",
        Entry::kernel(tensor).role(Role::TensorOf).constant_in_traces(),
    ),
    (
        "aten::fill.Scalar",
        Entry::new().scalar_variant(&by_tensor(1, ScalarConversion::Stored)),
    ),
    ("aten::tensor.float", Entry::kernel(tensor)),
    ("aten::tensor.int", Entry::kernel(tensor)),
    ("aten::tensor.bool", Entry::kernel(tensor)),
    ("aten::tensor.complex", Entry::kernel(tensor)),
    ("aten::as_tensor", Entry::kernel(tensor).constant_in_traces()),
    ("aten::as_tensor.float", Entry::kernel(tensor)),
    ("aten::as_tensor.int", Entry::kernel(tensor)),
    ("aten::as_tensor.bool", Entry::kernel(tensor)),
    ("aten::as_tensor.list", Entry::kernel(tensor)),
];

/// Returns a tensor filled with `value`, which must be in the range of `dtype`.
fn full_checked(dtype: DType, sizes: &[i64], value: Scalar) -> Result<Tensor, OpError> {
    Ok(Tensor::full(dtype, sizes, value.checked_fill(dtype, sizes)?)?)
}

/// Returns a tensor like argument 0. The arguments from `at` on are dtype, layout, device, pin_memory and
/// memory_format.
fn like(call: &Call<'_>, value: Scalar, at: usize) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let dtype = call.opt_dtype(at)?.unwrap_or(t.dtype());
    let out = full_checked(dtype, t.sizes(), value)?;
    one(in_format_of(&out, &t, call.opt_int(at + 4)?)?)
}

/// Returns the row-major tensor `out` in the memory format with the code `format`, or, without a format, with strides like those of `t`.
pub(super) fn in_format_of(out: &Tensor, t: &Tensor, format: Option<i64>) -> Result<Tensor, OpError> {
    match format {
        None | Some(layout::PRESERVE_FORMAT) => Ok(laid_out_as(out, std::slice::from_ref(t))?),
        Some(format) => super::convert::in_format(out, format),
    }
}

fn fill(args: &Args<'_>, dtype: DType, sizes: &[i64], value: Scalar) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let out = p.fill(dtype, sizes, value)?;
    p.finish(&[out])
}

fn filled(args: &Args<'_>, value: Scalar) -> Result<Program, OpError> {
    let dtype = args.result_dtype()?.unwrap_or(DType::Float);
    fill(args, dtype, &args.ints("size")?, value)
}

/// Implements `full`. Without a dtype, the value determines it: `torch.full((2,), 1)` is Long.
fn full(args: &Args<'_>) -> Result<Program, OpError> {
    let value = args.scalar("fill_value")?;
    let dtype = args.result_dtype()?.unwrap_or(value.default_dtype());
    fill(args, dtype, &args.ints("size")?, value)
}

fn filled_like(args: &Args<'_>, value: Scalar) -> Result<Program, OpError> {
    let like = args.tensor("self")?;
    fill(args, args.result_dtype()?.unwrap_or(like.dtype()), like.sizes(), value)
}

fn new_filled(args: &Args<'_>, value: Scalar) -> Result<Program, OpError> {
    let like = args.tensor("self")?;
    fill(
        args,
        args.result_dtype()?.unwrap_or(like.dtype()),
        &args.ints("size")?,
        value,
    )
}

/// Implements `fill(self, value)`, the functional form of `fill_`. The value may be a zero-dimensional tensor.
fn fill_value(args: &Args<'_>) -> Result<Program, OpError> {
    let like = args.tensor("self")?;
    let Arg::Tensor(value) = args.get("value") else {
        return fill(args, like.dtype(), like.sizes(), args.scalar("value")?);
    };
    if value.rank() != 0 {
        let rank = value.rank();
        return Err(OpError::raised(format!(
            "fill_ only supports 0-dimension value tensor but got tensor with {rank} dimensions."
        )));
    }
    let mut p = ProgramBuilder::new(args);
    let body = Formula::build(like.dtype(), |f| f.input(0, value.dtype()));
    let out = p.pointwise_to(&[value.id], like.sizes(), body)?;
    p.finish(&[out])
}

/// Computes `start + i * step`, in integers unless a bound is a float or a dtype is requested.
fn arange(args: &Args<'_>) -> Result<Program, OpError> {
    let start = if args.has("start") {
        args.scalar("start")?
    } else {
        Scalar::Int(0)
    };
    let (end, step) = (args.scalar("end")?, args.opt_scalar("step")?.unwrap_or(Scalar::Int(1)));
    let integers = [start, end, step]
        .iter()
        .all(|s| matches!(s, Scalar::Int(_) | Scalar::Bool(_)));
    let dtype = args
        .result_dtype()?
        .unwrap_or(if integers { DType::Long } else { DType::Float });
    let (low, high, by) = (start.as_f64(), end.as_f64(), step.as_f64());
    let counted_in = match dtype {
        DType::Half | DType::BFloat16 => DType::Float,
        d if d.is_floating_point() => DType::Double,
        _ => DType::Long,
    };
    if low.is_finite() && high.is_finite() {
        for bound in [start, end, step] {
            bound.checked_to(counted_in)?;
        }
    }
    if by == 0.0 {
        return Err(OpError::raised("step must be nonzero"));
    }
    if (by > 0.0 && low > high) || (by < 0.0 && low < high) {
        return Err(OpError::raised(
            "upper bound and lower bound inconsistent with step sign",
        ));
    }
    let count = if integers {
        let (low, high, by) = (
            i128::from(start.as_i64()),
            i128::from(end.as_i64()),
            i128::from(step.as_i64()),
        );
        let distance = if by > 0 { high - low } else { low - high };
        ((distance + by.abs() - 1) / by.abs()) as f64
    } else {
        ((high - low) / by).ceil()
    };
    if !(count.is_finite() && (0.0..1e15).contains(&count)) {
        return Err(OpError::raised("invalid size, possible overflow?"));
    }
    let mut p = ProgramBuilder::new(args);
    let body = Formula::build(dtype, |f| {
        let i = f.index(0);
        if dtype.is_floating_point() {
            // Computed as PyTorch computes it: in double for Float as well.
            i.cast(DType::Double) * by + f.float(low, DType::Double)
        } else {
            i * f.int(step.as_i64(), DType::Long) + f.int(start.as_i64(), DType::Long)
        }
    });
    let out = p.pointwise_to(&[], &[count as i64], body)?;
    p.finish(&[out])
}

/// Computes `steps` numbers from start to end, both included, or `base` to the power of these numbers. The second half is computed from the end.
fn spaced(args: &Args<'_>, base: Option<f64>) -> Result<Program, OpError> {
    let steps = args.int("steps")?;
    if steps < 0 {
        return Err(OpError::raised("number of steps must be non-negative"));
    }
    let dtype = args.result_dtype()?.unwrap_or(DType::Float);
    let (start, end) = (in_dtype(args, "start", dtype)?, in_dtype(args, "end", dtype)?);
    if steps > 0 {
        args.scalar("start")?.checked_to(dtype)?;
    }
    if steps > 1 {
        args.scalar("end")?.checked_to(dtype)?;
    }
    let step = if steps > 1 {
        (end - start) / (steps - 1) as f64
    } else {
        0.0
    };
    let mut p = ProgramBuilder::new(args);
    let body = Formula::build(dtype, |f| {
        let i = f.index(0);
        let first_half = i.lt((steps / 2) as f64);
        let from_start = i.cast(DType::Double) * step + f.float(start, DType::Double);
        let back = (f.int(steps - 1, DType::Long) - i).cast(DType::Double) * step;
        let from_end = f.float(end, DType::Double) - back;
        let at = if steps == 1 {
            from_start
        } else {
            first_half.select(from_start, from_end)
        };
        match base {
            Some(base) => f.float(base, DType::Double).pow(at),
            None => at,
        }
    });
    let out = p.pointwise_to(&[], &[steps], body)?;
    p.finish(&[out])
}

/// Returns the argument `name` as PyTorch converts it to `dtype` before it computes with it: towards zero and modulo the dtype's range for integers.
fn in_dtype(args: &Args<'_>, name: &str, dtype: DType) -> Result<f64, OpError> {
    let number = args.scalar(name)?.as_i64();
    Ok(match dtype {
        DType::Byte => f64::from(number as u8),
        DType::Char => f64::from(number as i8),
        DType::Short => f64::from(number as i16),
        DType::Int => f64::from(number as i32),
        DType::Long => number as f64,
        _ => args.float(name)?,
    })
}

fn eye(args: &Args<'_>) -> Result<Program, OpError> {
    let rows = args.int("n")?;
    let columns = if args.has("m") { args.int("m")? } else { rows };
    let dtype = args.result_dtype()?.unwrap_or(DType::Float);
    let mut p = ProgramBuilder::new(args);
    if rows < 0 || columns < 0 {
        return Err(OpError::raised("n must be greater or equal to 0"));
    }
    let body = Formula::build(dtype, |f| f.index(0).eq(f.index(1)));
    let out = p.pointwise_to(&[], &[rows, columns], body)?;
    p.finish(&[out])
}

/// Implements `tril` and `triu`: keeps each matrix below (or above) a diagonal, with zeros elsewhere.
fn triangle(args: &Args<'_>, lower: bool) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let diagonal = args.int("diagonal")?;
    let rank = x.rank();
    if rank < 2 {
        return Err(OpError::raised("input must have at least 2 dimensions"));
    }
    // Beyond the matrix all diagonals are alike, and sums with a row's number do not overflow.
    let diagonal = diagonal.clamp(-x.sizes()[rank - 2], x.sizes()[rank - 1]);
    let mut p = ProgramBuilder::new(args);
    let body = Formula::build(x.dtype(), |f| {
        let limit = f.index(rank - 2) + f.int(diagonal, DType::Long);
        let column = f.index(rank - 1);
        let inside = if lower { column.le(limit) } else { column.ge(limit) };
        inside.select(f.input(0, x.dtype()), 0.0)
    });
    let out = p.pointwise_to(&[x.id], x.sizes(), body)?;
    p.finish(&[out])
}

/// Implements `torch.tensor(data, dtype)` for a number, or nested lists of numbers.
fn tensor(call: &Call<'_>) -> Result<Results, OpError> {
    if let Value::Tensor(cell) = call.arg(0) {
        return one(match call.opt_dtype(1)? {
            Some(dtype) => cell.get().to_dtype(dtype)?.into(),
            None => Value::Tensor(cell.clone()),
        });
    }
    let mut sizes = Vec::new();
    let mut numbers = Vec::new();
    flatten(call.arg(0), 0, &mut sizes, &mut numbers)?;
    if let Some(first) = numbers.first()
        && let Some(other) = numbers.iter().find(|n| discriminant(*n) != discriminant(first))
    {
        // The list's type is a union, of which PyTorch makes no tensor.
        return Err(OpError::raised(format!(
            "expected numbers of one type, but got {} and {}",
            first.default_dtype().type_name(),
            other.default_dtype().type_name()
        )));
    }
    let inferred = numbers.first().map_or_else(|| empty_dtype(call), |n| n.default_dtype());
    if let (true, Some(number)) = (sizes.is_empty(), numbers.first()) {
        // It is a tensor of its own dtype first.
        number.checked_to(inferred)?;
    }
    let dtype = call.opt_dtype(1)?.unwrap_or(inferred);
    let out = Tensor::zeros(dtype, &[numbers.len() as i64])?;
    for (i, n) in numbers.iter().enumerate() {
        out.as_strided(&[], &[], i as i64)?.fill_(*n)?;
    }
    one(out.reshape(&sizes)?)
}

/// Returns the dtype of the tensor that `torch.tensor` creates from an empty list.
fn empty_dtype(call: &Call<'_>) -> DType {
    use frazil_ir::TypeKind;
    let mut ty = call.arg(0).ty(call.ctx);
    while let TypeKind::List(e) = call.ctx.type_kind(ty) {
        ty = e;
    }
    match call.ctx.type_kind(ty) {
        TypeKind::Int => DType::Long,
        TypeKind::Bool => DType::Bool,
        TypeKind::Complex => DType::ComplexFloat,
        _ => DType::Float,
    }
}

fn flatten(v: &Value, depth: usize, sizes: &mut Vec<i64>, out: &mut Vec<Scalar>) -> Result<(), OpError> {
    let items = match v {
        Value::List(l) => ListValue::items(l),
        Value::Tensor(t) => {
            out.push(t.get().item()?);
            return Ok(());
        }
        other => {
            out.push(
                other
                    .as_scalar()
                    .ok_or_else(|| OpError::raised("tensor() takes numbers and lists of numbers"))?,
            );
            return Ok(());
        }
    };
    match sizes.get(depth) {
        None => sizes.push(items.len() as i64),
        Some(&n) if n == items.len() as i64 => {}
        Some(n) => {
            return Err(OpError::raised(format!(
                "Expected list of length {n} but got {} at dimension {depth}",
                items.len()
            )));
        }
    }
    if depth > 64 {
        return Err(OpError::raised("lists are nested too deeply"));
    }
    items.iter().try_for_each(|item| flatten(item, depth + 1, sizes, out))
}
