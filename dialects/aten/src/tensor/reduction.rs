//! Reductions over dimensions.

use frazil_ir::DType;
use frazil_ir::schema::AliasUse;
use frazil_runtime::args::{Arg, Args, TensorArg};
use frazil_runtime::build::{Accumulation, ProgramBuilder};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::Form::Reduction;
use frazil_runtime::op::OpError;
use frazil_runtime::promote::{compute_dtype, real_of};
use frazil_runtime::structured::{Combine, Program, TensorId};
use frazil_runtime::sym::Formula;

pub(super) const ENTRIES: &[Row] = &[
    ("aten::sum", Entry::program(Reduction, |a| folded(a, Combine::Add))),
    ("aten::prod", Entry::program(Reduction, |a| folded(a, Combine::Mul))),
    ("aten::mean", Entry::program(Reduction, mean)),
    ("aten::amax", Entry::program(Reduction, |a| extreme(a, Combine::Max))),
    ("aten::amin", Entry::program(Reduction, |a| extreme(a, Combine::Min))),
    ("aten::max", Entry::program(Reduction, |a| extreme(a, Combine::Max))),
    ("aten::min", Entry::program(Reduction, |a| extreme(a, Combine::Min))),
    (
        "aten::max.dim",
        Entry::program(Reduction, |a| extreme_and_index(a, Combine::Max)),
    ),
    (
        "aten::min.dim",
        Entry::program(Reduction, |a| extreme_and_index(a, Combine::Min)),
    ),
    (
        "aten::argmax",
        Entry::program(Reduction, |a| arg_extreme(a, Combine::Max)),
    ),
    (
        "aten::argmin",
        Entry::program(Reduction, |a| arg_extreme(a, Combine::Min)),
    ),
    (
        "aten::aminmax",
        Entry::program(Reduction, |a| {
            let x = a.tensor("self")?;
            let dims = a.dims("dim", x.rank())?;
            let mut p = ProgramBuilder::new(a);
            let low = fold_extreme(&mut p, &x, &dims, a.flag("keepdim")?, Combine::Min)?;
            let high = fold_extreme(&mut p, &x, &dims, a.flag("keepdim")?, Combine::Max)?;
            p.finish(&[low, high])
        })
        .aliases(&[("aten::_aminmax", AliasUse::Semantics)]),
    ),
    ("aten::any", Entry::program(Reduction, |a| truth(a, Combine::Or))),
    ("aten::all", Entry::program(Reduction, |a| truth(a, Combine::And))),
    ("aten::var", Entry::program(Reduction, |a| variance(a, false, false))),
    ("aten::std", Entry::program(Reduction, |a| variance(a, true, false))),
    (
        "aten::var_mean",
        Entry::program(Reduction, |a| variance(a, false, true)),
    ),
    ("aten::std_mean", Entry::program(Reduction, |a| variance(a, true, true))),
    (
        "aten::logsumexp",
        Entry::program(Reduction, logsumexp).aliases(&[("aten::special_logsumexp", AliasUse::Normalised)]),
    ),
    ("aten::norm", Entry::program(Reduction, norm)),
    ("aten::linalg_vector_norm", Entry::program(Reduction, norm)),
    ("aten::nansum", Entry::program(Reduction, nansum)),
    (
        "aten::count_nonzero",
        Entry::program(Reduction, |a| {
            let x = a.tensor("self")?;
            let dims = a.dims("dim", x.rank())?;
            let mut p = ProgramBuilder::new(a);
            let accumulation = Accumulation {
                combine: Combine::Add,
                accumulate: DType::Long,
                output: DType::Long,
            };
            let out = p.reduce(
                &[x.id],
                &dims,
                false,
                accumulation,
                |_, x| x[0].cast(DType::Bool).cast(DType::Long),
                None,
            )?;
            p.finish(&[out])
        }),
    ),
];

/// Returns the dimensions that a call reduces, and whether they are kept with extent 1.
pub(super) fn dims_of(args: &Args<'_>, x: &TensorArg) -> Result<(Vec<usize>, bool), OpError> {
    Ok((args.dims("dim", x.rank())?, args.flag("keepdim")?))
}

/// Implements sums and products. Integers and Bool become Long unless a dtype is requested.
fn folded(args: &Args<'_>, combine: Combine) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let (dims, keepdim) = dims_of(args, &x)?;
    let default = if x.dtype().is_floating_point() || x.dtype().is_complex() {
        x.dtype()
    } else {
        DType::Long
    };
    let output = args.result_dtype()?.unwrap_or(default);
    let accumulate = compute_dtype(output);
    let mut p = ProgramBuilder::new(args);
    let accumulation = Accumulation {
        combine,
        accumulate,
        output,
    };
    // Each element is converted to the result's dtype first, as PyTorch does.
    let out = p.reduce(
        &[x.id],
        &dims,
        keepdim,
        accumulation,
        |_, x| x[0].cast(output).cast(accumulate),
        None,
    )?;
    p.finish(&[out])
}

fn nansum(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    if x.dtype().is_complex() {
        return Err(OpError::raised("nansum on CPU does not support complex inputs"));
    }
    let (dims, keepdim) = dims_of(args, &x)?;
    let default = if x.dtype().is_floating_point() {
        x.dtype()
    } else {
        DType::Long
    };
    let output = args.result_dtype()?.unwrap_or(default);
    let accumulation = Accumulation {
        combine: Combine::Add,
        accumulate: compute_dtype(output),
        output,
    };
    let mut p = ProgramBuilder::new(args);
    let out = p.reduce(
        &[x.id],
        &dims,
        keepdim,
        accumulation,
        |_, x| x[0].is_nan().select(x[0].constant(0.0), x[0]),
        None,
    )?;
    p.finish(&[out])
}

/// Returns the number of elements that are reduced to one, if `dims` are the reduced dimensions.
pub(super) fn count(x: &TensorArg, dims: &[usize]) -> i64 {
    dims.iter().filter_map(|&d| x.sizes().get(d)).product()
}

fn mean(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let (dims, keepdim) = dims_of(args, &x)?;
    let output = args.opt_dtype("dtype")?.unwrap_or(x.dtype());
    if !(output.is_floating_point() || output.is_complex()) {
        return Err(OpError::raised(format!(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {}",
            x.dtype().type_name()
        )));
    }
    let mut p = ProgramBuilder::new(args);
    let out = mean_of(&mut p, x.id, &dims, keepdim, output, count(&x, &dims))?;
    p.finish(&[out])
}

/// Returns the mean of `n` elements along `dims`, accumulated in a wider dtype.
pub(super) fn mean_of(
    p: &mut ProgramBuilder,
    x: TensorId,
    dims: &[usize],
    keepdim: bool,
    output: DType,
    n: i64,
) -> Result<TensorId, OpError> {
    let accumulate = compute_dtype(output);
    let accumulation = Accumulation {
        combine: Combine::Add,
        accumulate,
        output,
    };
    let divide = Formula::build(output, |f| f.input(0, accumulate) / n as f64);
    p.reduce_with(
        &[x],
        dims,
        keepdim,
        accumulation,
        |_, x| x[0].cast(accumulate),
        Some(divide),
    )
}

fn fold_extreme(
    p: &mut ProgramBuilder,
    x: &TensorArg,
    dims: &[usize],
    keepdim: bool,
    combine: Combine,
) -> Result<TensorId, OpError> {
    if count(x, dims) == 0 {
        return Err(OpError::raised(
            "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.",
        ));
    }
    let accumulation = Accumulation {
        combine,
        accumulate: compute_dtype(x.dtype()),
        output: x.dtype(),
    };
    p.reduce(&[x.id], dims, keepdim, accumulation, |_, x| x[0], None)
}

fn extreme(args: &Args<'_>, combine: Combine) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let (dims, keepdim) = dims_of(args, &x)?;
    let mut p = ProgramBuilder::new(args);
    let out = fold_extreme(&mut p, &x, &dims, keepdim, combine)?;
    p.finish(&[out])
}

/// Returns the extremum along a dimension, and the index of its first occurrence. A NaN counts as the extremum.
fn value_and_index(
    p: &mut ProgramBuilder,
    x: TensorId,
    dim: usize,
    keepdim: bool,
    combine: Combine,
) -> Result<(TensorId, TensorId), OpError> {
    let shape = p.shape(x);
    let rank = shape.sizes.len();
    let dtype = shape.dtype;
    let dims: &[usize] = if rank == 0 { &[] } else { &[dim] };
    let accumulation = Accumulation {
        combine,
        accumulate: compute_dtype(dtype),
        output: dtype,
    };
    let best = p.reduce(&[x], dims, true, accumulation, |_, x| x[0], None)?;
    let accumulation = Accumulation {
        combine: Combine::Min,
        accumulate: DType::Long,
        output: DType::Long,
    };
    // The folded loop comes behind the kept ones.
    let at = rank.saturating_sub(1);
    let index = p.reduce(
        &[x, best],
        dims,
        keepdim,
        accumulation,
        move |f, x| {
            let here = x[0].eq(x[1]).or(x[0].is_nan());
            here.select(f.index(at), f.int(i64::MAX, DType::Long))
        },
        None,
    )?;
    let value = if keepdim || rank == 0 {
        best
    } else {
        p.squeeze(best, &[dim])
    };
    Ok((value, index))
}

fn extreme_and_index(args: &Args<'_>, combine: Combine) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let dim = args.dim("dim", x.rank())?;
    if x.sizes().get(dim) == Some(&0) {
        return Err(OpError::raised(format!(
            "max(): Expected reduction dim {dim} to have non-zero size."
        )));
    }
    let mut p = ProgramBuilder::new(args);
    let (value, index) = value_and_index(&mut p, x.id, dim, args.flag("keepdim")?, combine)?;
    p.finish(&[value, index])
}

fn arg_extreme(args: &Args<'_>, combine: Combine) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let keepdim = args.flag("keepdim")?;
    let mut p = ProgramBuilder::new(args);
    if x.shape.numel() == 0 && args.opt_int("dim")?.is_none() {
        return Err(OpError::raised(
            "argmax(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.",
        ));
    }
    let out = match args.opt_int("dim")? {
        Some(_) => {
            let dim = args.dim("dim", x.rank())?;
            if x.sizes().get(dim) == Some(&0) {
                return Err(OpError::raised(format!(
                    "argmax(): Expected reduction dim {dim} to have non-zero size."
                )));
            }
            value_and_index(&mut p, x.id, dim, keepdim, combine)?.1
        }
        None => {
            let flat = p.reshape(x.id, &[x.shape.numel()])?;
            let index = value_and_index(&mut p, flat, 0, false, combine)?.1;
            if keepdim {
                p.reshape(index, &vec![1; x.rank()])?
            } else {
                index
            }
        }
    };
    p.finish(&[out])
}

/// Implements `any` and `all`. Results for Byte are Byte, as in PyTorch.
fn truth(args: &Args<'_>, combine: Combine) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let (mut dims, keepdim) = dims_of(args, &x)?;
    // Unlike other reductions an empty list of dimensions folds none.
    if matches!(args.get("dim"), Arg::List(asked) if asked.is_empty()) {
        dims.clear();
    }
    let output = if x.dtype() == DType::Byte {
        DType::Byte
    } else {
        DType::Bool
    };
    let accumulation = Accumulation {
        combine,
        accumulate: DType::Bool,
        output,
    };
    let mut p = ProgramBuilder::new(args);
    let out = p.reduce(
        &[x.id],
        &dims,
        keepdim,
        accumulation,
        |_, x| x[0].cast(DType::Bool),
        None,
    )?;
    p.finish(&[out])
}

/// Returns the mean of squared deviations from the mean, with a corrected divisor (`n - correction`).
pub(super) fn variance_of(
    p: &mut ProgramBuilder,
    x: &TensorArg,
    dims: &[usize],
    keepdim: bool,
    correction: f64,
) -> Result<(TensorId, TensorId), OpError> {
    let n = count(x, dims);
    let compute = compute_dtype(x.dtype());
    let mean = mean_of(p, x.id, dims, true, compute, n)?;
    // The squares of complex deviations are those of their sizes.
    let spread = real_of(compute);
    let accumulation = Accumulation {
        combine: Combine::Add,
        accumulate: spread,
        output: spread,
    };
    // Of nothing there is no variance, whatever the correction.
    let divisor = if n == 0 { 0.0 } else { (n as f64 - correction).max(0.0) };
    let divide = Formula::build(spread, |f| f.input(0, spread) / divisor);
    let var = p.reduce_with(
        &[x.id, mean],
        dims,
        keepdim,
        accumulation,
        |_, x| {
            let d = x[0] - x[1];
            let d = if compute.is_complex() { d.abs().cast(spread) } else { d };
            d * d
        },
        Some(divide),
    )?;
    let mean = if keepdim || p.rank(mean) == 0 {
        mean
    } else {
        p.squeeze(mean, dims)
    };
    Ok((var, mean))
}

fn variance(args: &Args<'_>, root: bool, with_mean: bool) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    if !(x.dtype().is_floating_point() || x.dtype().is_complex()) {
        return Err(OpError::raised(
            "std and var only support floating point and complex dtypes",
        ));
    }
    let (dims, keepdim) = dims_of(args, &x)?;
    let correction = if args.has("correction") {
        args.opt_float("correction")?.unwrap_or(1.0)
    } else {
        f64::from(u8::from(args.flag("unbiased")?))
    };
    let mut p = ProgramBuilder::new(args);
    let (var, mean) = variance_of(&mut p, &x, &dims, keepdim, correction)?;
    let spread = if root {
        p.map(&[var], real_of(x.dtype()), |_, x| x[0].sqrt())?
    } else {
        p.cast(var, real_of(x.dtype()))?
    };
    if !with_mean {
        return p.finish(&[spread]);
    }
    let mean = running_mean(&mut p, &x, &dims, keepdim, mean)?;
    p.finish(&[spread, mean])
}

/// Returns the mean that PyTorch computes together with a variance, by element-wise updates. It is infinite only if the last element is, and NaN if an infinity
/// comes before the last element.
fn running_mean(
    p: &mut ProgramBuilder,
    x: &TensorArg,
    dims: &[usize],
    keepdim: bool,
    mean: TensorId,
) -> Result<TensorId, OpError> {
    let sizes = p.sizes(x.id);
    if x.dtype().is_complex() || sizes.is_empty() || dims.iter().any(|&d| sizes[d] == 0) {
        return p.cast(mean, x.dtype());
    }
    let mut last = x.id;
    for &d in dims {
        last = p.slice(last, d, sizes[d] - 1, 1, 1);
    }
    if !keepdim {
        last = p.squeeze(last, dims);
    }
    let accumulation = Accumulation {
        combine: Combine::Add,
        accumulate: DType::Long,
        output: DType::Long,
    };
    let infinities = p.reduce(
        &[x.id],
        dims,
        keepdim,
        accumulation,
        |_, x| x[0].is_inf().cast(DType::Long),
        None,
    )?;
    p.map(&[mean, infinities, last], x.dtype(), |_, x| {
        let earlier = x[1] - x[2].is_inf().cast(DType::Long);
        earlier.gt(0.0).select(x[0].constant(f64::NAN), x[0])
    })
}

/// Implements `logsumexp`: log Σ e^x, computed relative to the maximum.
fn logsumexp(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let (dims, keepdim) = dims_of(args, &x)?;
    let output = if x.dtype().is_floating_point() || x.dtype().is_complex() {
        x.dtype()
    } else {
        DType::Float
    };
    // Of complex numbers the real parts are compared.
    let (compute, real) = (compute_dtype(output), compute_dtype(real_of(output)));
    let mut p = ProgramBuilder::new(args);
    let accumulation = Accumulation {
        combine: Combine::Max,
        accumulate: real,
        output: real,
    };
    let max = p.reduce(
        &[x.id],
        &dims,
        true,
        accumulation,
        |_, x| x[0].cast(compute).cast(real),
        None,
    )?;
    // An infinite maximum would make NaN of the difference.
    let max = p.map(&[max], real, |_, x| x[0].is_inf().select(x[0].constant(0.0), x[0]))?;
    let accumulation = Accumulation {
        combine: Combine::Add,
        accumulate: compute,
        output: compute,
    };
    let sum = p.reduce(
        &[x.id, max],
        &dims,
        keepdim,
        accumulation,
        |_, x| (x[0].cast(compute) - x[1].cast(compute)).exp(),
        None,
    )?;
    let max = if keepdim || x.rank() == 0 {
        max
    } else {
        p.squeeze(max, &dims)
    };
    let out = p.map(&[sum, max], output, |_, x| x[0].log() + x[1].cast(compute))?;
    p.finish(&[out])
}

/// Returns PyTorch's error for a norm over no elements, if the order of the norm has no neutral element.
fn has_identity(args: &Args<'_>, x: &TensorArg, order: f64) -> Result<(), OpError> {
    let order = frazil_runtime::format::general(order, 6);
    let start = format!("linalg.vector_norm cannot compute the {order} norm on");
    let given = args.opt_ints("dim")?.filter(|dims| !dims.is_empty());
    let Some(given) = given.filter(|dims| dims.len() < x.rank()) else {
        return match x.shape.numel() {
            0 => Err(OpError::raised(format!(
                "{start} an empty tensor because the operation does not have an identity"
            ))),
            _ => Ok(()),
        };
    };
    for dim in given {
        if x.sizes().get(frazil_runtime::args::wrap_dim(dim, x.rank())?) == Some(&0) {
            return Err(OpError::raised(format!(
                "{start} the dimension {dim}because this dimension is empty and the operation does not have an identity"
            )));
        }
    }
    Ok(())
}

/// Implements vector norms of order `p` (or `ord`), by default 2.
fn norm(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let (dims, keepdim) = dims_of(args, &x)?;
    let order = match args.opt_scalar("p")?.or(args.opt_scalar("ord")?) {
        Some(p) => p.as_f64(),
        None => 2.0,
    };
    let output = args.opt_dtype("dtype")?.unwrap_or(x.dtype());
    if !(output.is_floating_point() || output.is_complex()) {
        return Err(OpError::raised(format!(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
            output.type_name()
        )));
    }
    if order < 0.0 || order == f64::INFINITY {
        has_identity(args, &x, order)?;
    }
    // Norms are real.
    let (element, output) = (output, real_of(output));
    let compute = compute_dtype(output);
    let combine = match order {
        f64::INFINITY => Combine::Max,
        f64::NEG_INFINITY => Combine::Min,
        _ => Combine::Add,
    };
    let accumulation = Accumulation {
        combine,
        accumulate: compute,
        output,
    };
    let finish = Formula::build(output, |f| {
        let sum = f.input(0, compute);
        match order {
            2.0 => sum.sqrt(),
            0.0 | 1.0 | f64::INFINITY | f64::NEG_INFINITY => sum,
            p => sum.pow(1.0 / p),
        }
    });
    let mut p = ProgramBuilder::new(args);
    let out = p.reduce_with(
        &[x.id],
        &dims,
        keepdim,
        accumulation,
        |_, x| {
            let x = if element.is_complex() {
                x[0].cast(element).abs().cast(compute)
            } else {
                x[0].cast(compute)
            };
            match order {
                2.0 => x * x,
                1.0 | f64::INFINITY | f64::NEG_INFINITY => x.abs(),
                0.0 => x.ne(0.0).cast(compute),
                p => x.abs().pow(p),
            }
        },
        Some(finish),
    )?;
    p.finish(&[out])
}
