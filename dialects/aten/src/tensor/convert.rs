//! Conversions of dtypes and memory formats, and copies.

use frazil_ir::DType;
use frazil_runtime::args::Args;
use frazil_runtime::build::ProgramBuilder;
use frazil_runtime::call::{laid_out_as, run_as_program};
use frazil_runtime::element::DoubleElement;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::Form::Pointwise;
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::structured::Program;
use frazil_runtime::value::Value;
use frazil_runtime::{Tensor, TensorError, layout};

/// Entries of conversions and copies. Some have an additional kernel, which keeps strides that programs cannot express.
pub(super) const ENTRIES: &[Row] = &[
    ("aten::to", Entry::program(Pointwise, to)),
    (
        "aten::type_as",
        Entry::program(Pointwise, |a| {
            let dtype = a.tensor("other")?.dtype();
            converted(a, Some(dtype), false)
        })
        .may_return_operand(),
    ),
    (
        "aten::_to_copy",
        Entry::program(Pointwise, |a| converted(a, a.opt_dtype("dtype")?, true)),
    ),
    (
        "aten::clone",
        Entry::program(Pointwise, |a| converted(a, None, true))
            .eager(clone)
            .preserves_rank(),
    ),
    (
        "aten::contiguous",
        Entry::program(Pointwise, |a| converted(a, None, false))
            .eager(contiguous)
            .preserves_rank(),
    ),
    (
        "aten::copy",
        Entry::program(Pointwise, |a| {
            let (dst, src) = (a.tensor("self")?, a.tensor("src")?);
            let mut p = ProgramBuilder::new(a);
            // New memory, also where nothing changes, and for each element of its own.
            let wide = p.expand(src.id, dst.sizes())?;
            let out = p.map(&[wide], dst.dtype(), |_, x| x[0])?;
            p.finish(&[out])
        }),
    ),
    ("aten::copy_", Entry::kernel(copy)),
    ("aten::frexp.Tensor", Entry::kernel(frexp)),
    (
        "aten::detach",
        Entry::kernel(|c| one(c.tensor(0)?))
            .preserves_rank()
            .without_gradients(),
    ),
    (
        "aten::detach_",
        Entry::kernel(|c| one(c.arg(0).clone())).without_gradients(),
    ),
    ("aten::detach_copy", Entry::kernel(|c| one(c.tensor(0)?.deep_copy()?))),
    ("aten::alias", Entry::kernel(|c| one(c.tensor(0)?))),
    ("aten::lift_fresh", Entry::kernel(|c| one(c.arg(0).clone()))),
    ("aten::cpu", Entry::kernel(|c| one(c.arg(0).clone()))),
    ("aten::cuda", Entry::kernel(|c| one(c.arg(0).clone()))),
    ("aten::requires_grad_", Entry::kernel(|c| one(c.arg(0).clone()))),
    ("aten::pin_memory", Entry::kernel(|c| one(c.arg(0).clone()))),
    ("aten::to.device", Entry::new().eager(to_eager)),
    ("aten::to.dtype", Entry::new().eager(to_eager)),
    ("aten::to.other", Entry::new().eager(to_eager)),
    ("aten::to.dtype_layout", Entry::new().eager(to_eager)),
    ("aten::to.prim_Device", Entry::new().eager(to_eager)),
    ("aten::to.prim_dtype", Entry::new().eager(to_eager)),
    ("aten::to.prim_other", Entry::new().eager(to_eager)),
];

/// Converts a tensor. The result keeps the strides, or has those of the requested memory format.
fn to_eager(call: &Call<'_>) -> Result<Results, OpError> {
    let results = run_as_program(call, to)?;
    let (Value::Tensor(x), Some(Value::Tensor(out))) = (call.arg(0), results.first()) else {
        return Ok(results);
    };
    let names = call.schema.arguments.iter().map(|a| call.ctx.name(a.name));
    let at = names.into_iter().position(|n| n == "memory_format");
    let format = at.map(|i| call.opt_int(i)).transpose()?.flatten();
    match format.filter(|&f| f != layout::PRESERVE_FORMAT) {
        None if out.is(x) => Ok(results),
        Some(format) if out.is(x) && layout::suggested_format(x.get().sizes(), x.get().strides()) == format => {
            Ok(results)
        }
        None => one(laid_out_as(&out.get(), &[x.get()])?),
        Some(format) => one(in_format(&out.get(), format)?),
    }
}

/// Returns the conversion of an overload of `to`. Without a requested dtype, that of self is kept.
fn to(args: &Args<'_>) -> Result<Program, OpError> {
    let dtype = match args.opt_tensor("other")? {
        Some(other) => Some(other.dtype()),
        None => args.opt_dtype("dtype")?,
    };
    converted(args, dtype, args.flag("copy")?)
}

/// Returns `self` if nothing changes and no copy is requested, otherwise a conversion.
fn converted(args: &Args<'_>, dtype: Option<DType>, copy: bool) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let dtype = dtype.unwrap_or(x.dtype());
    let mut p = ProgramBuilder::new(args);
    let out = if dtype == x.dtype() && !copy {
        x.id
    } else {
        p.map(&[x.id], dtype, |_, x| x[0])?
    };
    p.finish(&[out])
}

/// Implements `frexp`: decomposes x = mantissa * 2^exponent with the mantissa in [1/2, 1).
fn frexp(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    if !t.dtype().is_floating_point() {
        return Err(OpError::raised("torch.frexp() only supports floating-point dtypes"));
    }
    let (mantissas, exponents): (Vec<f64>, Vec<i64>) = t
        .to_f64_vec()
        .into_iter()
        .map(|x| {
            let (mantissa, exponent) = libm::frexp(x);
            (mantissa, if x.is_finite() { i64::from(exponent) } else { 0 })
        })
        .unzip();
    let mantissas = Tensor::from_elements::<DoubleElement>(&mantissas, t.sizes())?.to_dtype(t.dtype())?;
    let exponents = Tensor::from_i64(&exponents, t.sizes())?.to_dtype(DType::Int)?;
    let like = std::slice::from_ref(&t);
    Ok(smallvec::smallvec![
        laid_out_as(&mantissas, like)?.into(),
        laid_out_as(&exponents, like)?.into()
    ])
}

fn copy(call: &Call<'_>) -> Result<Results, OpError> {
    let target = call.tensor(0)?;
    match call.arg(1) {
        Value::Tensor(src) => {
            let src = src.get();
            if target.partially_overlaps(&src) {
                return Err(TensorError::PartialOverlap.into());
            }
            target.copy_(&src)?;
        }
        // The overloads of numbers fill.
        _ => target.fill_(call.scalar(1)?.checked_fill(target.dtype(), target.sizes())?)?,
    }
    one(call.arg(0).clone())
}

fn contiguous(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let format = call.opt_int(1)?.unwrap_or(layout::CONTIGUOUS_FORMAT);
    let already = match channels_last_rank(format) {
        Some(rank) => t.dim() == rank && layout::is_channels_last(t.sizes(), t.strides()),
        None => t.is_contiguous(),
    };
    match already {
        true => one(call.arg(0).clone()),
        false => one(in_format(&t, format)?),
    }
}

fn clone(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    match call.opt_int(1)? {
        Some(layout::PRESERVE_FORMAT) | None => one(t.deep_copy_preserving_strides()?),
        Some(format) => one(in_format(&t, format)?),
    }
}

/// Returns the number of dimensions of tensors in the format `torch.channels_last` or `torch.channels_last_3d`; `None` for the code of another format.
fn channels_last_rank(format: i64) -> Option<usize> {
    match format {
        layout::CHANNELS_LAST => Some(4),
        layout::CHANNELS_LAST_3D => Some(5),
        _ => None,
    }
}

/// Returns a copy of `t` in the memory format with PyTorch's code `format`.
pub(super) fn in_format(t: &Tensor, format: i64) -> Result<Tensor, OpError> {
    let Some(rank) = channels_last_rank(format) else {
        return Ok(t.deep_copy()?);
    };
    if t.dim() != rank {
        let name = if rank == 4 { "channels_last" } else { "channels_last_3d" };
        return Err(OpError::raised(format!(
            "required rank {rank} tensor to use {name} format"
        )));
    }
    let flat = Tensor::zeros(t.dtype(), &[t.numel()])?;
    let out = flat.as_strided(t.sizes(), &layout::channels_last_strides(t.sizes()), 0)?;
    out.copy_(t)?;
    Ok(out)
}
