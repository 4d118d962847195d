//! Normalisation over batches, layers, groups and instances.

use super::reduction::mean_of;
use frazil_ir::DType;
use frazil_runtime::Tensor;
use frazil_runtime::args::{Args, TensorArg};
use frazil_runtime::build::{Accumulation, ProgramBuilder};
use frazil_runtime::call::run_as_program;
use frazil_runtime::element::DoubleElement;
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::op::Form::{LoopNests, Pointwise};
use frazil_runtime::op::{Call, OpError, one};
use frazil_runtime::promote::{ResultType, compute_dtype};
use frazil_runtime::structured::{Combine, Dims, Program, TensorId, TensorShape};

/// Entries of the normalisations. Batch norms have an additional kernel, because programs cannot update running statistics.
pub(super) const ENTRIES: &[Row] = &[
    // Without semantics.
    ("aten::cudnn_batch_norm", Entry::new().updates_statistics()),
    ("aten::miopen_batch_norm", Entry::new().updates_statistics()),
    (
        "aten::batch_norm",
        Entry::program(Pointwise, |a| batch_norm(a, false))
            .eager(|c| {
                if c.flag(5)? {
                    keep_statistics(c, false, c.float(6)?)?;
                }
                run_as_program(c, |a| batch_norm(a, true))
            })
            .layout(ResultLayout::ChannelsLast(4))
            .updates_statistics()
            .preserves_rank(),
    ),
    (
        "aten::layer_norm",
        Entry::program(LoopNests, layer_norm).preserves_rank(),
    ),
    ("aten::native_layer_norm", Entry::program(LoopNests, native_layer_norm)),
    (
        "aten::group_norm",
        Entry::program(LoopNests, group_norm).layout(ResultLayout::ChannelsLast(4)),
    ),
    (
        "aten::instance_norm",
        Entry::program(LoopNests, |a| instance_norm(a, false))
            .eager(|c| {
                if c.flag(5)? {
                    keep_statistics(c, true, c.float(6)?)?;
                }
                let x = c.tensor(0)?;
                if x.numel() == 0 {
                    // An empty input may have any dtype, and sizes that do not fit the weights. The weights take part in promotion as tensors without dimensions.
                    let mut promoted = ResultType::new().tensor(x.dtype(), x.dim());
                    for i in [1, 2] {
                        if let Some(t) = c.opt_tensor(i)? {
                            promoted = promoted.tensor(t.dtype(), 0);
                        }
                    }
                    return one(Tensor::zeros(promoted.dtype().unwrap_or(x.dtype()), x.sizes())?);
                }
                run_as_program(c, |a| instance_norm(a, true))
            })
            .updates_statistics(),
    ),
    ("aten::rms_norm", Entry::program(LoopNests, rms_norm)),
];

/// Updates the running mean and the unbiased running variance (arguments 3 and 4) with the statistics of the input. Statistics of instances are averaged.
fn keep_statistics(call: &Call<'_>, instances: bool, momentum: f64) -> Result<(), OpError> {
    let x = call.tensor(0)?;
    let (mean, var) = (call.opt_tensor(3)?, call.opt_tensor(4)?);
    if (mean.is_none() && var.is_none()) || (x.numel() == 0 && !instances) {
        return Ok(());
    }
    let shape = TensorShape {
        dtype: x.dtype(),
        sizes: x.sizes().into(),
    };
    let first = if instances { 2 } else { 0 };
    let dims: Vec<usize> = (first..x.dim()).filter(|&d| d != 1).collect();
    let n: i64 = dims.iter().map(|&d| x.sizes()[d]).product();
    if n < 1 {
        return Err(OpError::raised(format!(
            "Expected more than 1 value per channel when training, got input size {:?}",
            x.sizes()
        )));
    }
    let compute = compute_dtype(x.dtype());
    let mut p = ProgramBuilder::over(vec![shape]);
    let (m, v) = statistics(&mut p, TensorId::new(0), &dims, compute)?;
    let unbiased = p.map(&[v], compute, |_, x| x[0] * (n as f64 / (n - 1) as f64))?;
    let (mut m, mut v) = (p.squeeze(m, &dims), p.squeeze(unbiased, &dims));
    if instances {
        let batch = x.sizes()[0];
        m = mean_of(&mut p, m, &[0], false, compute, batch)?;
        v = mean_of(&mut p, v, &[0], false, compute, batch)?;
    }
    let program = p.finish(&[m, v])?;
    let new = frazil_runtime::eval::eval_program(&program, &[x])?;
    for (running, new) in [mean, var].into_iter().zip(new) {
        let Some(running) = running else { continue };
        let (old, new) = (running.to_f64_vec(), new.to_f64_vec());
        if old.len() != new.len() {
            let (own, channels) = (old.len(), new.len());
            return Err(OpError::raised(format!(
                "running_mean should contain {channels} elements not {own}"
            )));
        }
        let moved: Vec<f64> = old
            .iter()
            .zip(&new)
            .map(|(o, n)| o * (1.0 - momentum) + n * momentum)
            .collect();
        running.copy_(&Tensor::from_elements::<DoubleElement>(&moved, running.sizes())?)?;
    }
    Ok(())
}

/// Returns the extent of dimension 1, the channels.
fn channels(x: &TensorArg) -> Result<i64, OpError> {
    match x.sizes() {
        [_, c, ..] => Ok(*c),
        sizes => Err(OpError::raised(format!(
            "expected an input of at least 2 dimensions, got sizes {sizes:?}"
        ))),
    }
}

/// Returns a tensor with one element per channel as an operand that broadcasts to an input of `rank` dimensions.
fn per_channel(p: &mut ProgramBuilder, t: TensorId, channels: i64, rank: usize) -> Result<TensorId, OpError> {
    if p.shape(t).numel() != channels {
        let n = p.shape(t).numel();
        return Err(OpError::raised(format!(
            "expected a tensor of {channels} elements, one a channel, got {n}"
        )));
    }
    let mut sizes: Dims = smallvec::smallvec![1; rank.saturating_sub(1)];
    if let Some(first) = sizes.first_mut() {
        *first = channels;
    }
    p.reshape(t, &sizes)
}

/// Returns the parameter `name`, which has one element per channel, as a vector.
fn in_a_row(p: &mut ProgramBuilder, args: &Args<'_>, name: &str, channels: i64) -> Result<Option<TensorId>, OpError> {
    let Some(t) = args.opt_tensor(name)? else {
        return Ok(None);
    };
    let n = t.shape.numel();
    if n != channels {
        return Err(OpError::raised(format!(
            "{name} should contain {channels} elements not {n}"
        )));
    }
    p.reshape(t.id, &[channels]).map(Some)
}

const PARAMETERS: [&str; 4] = ["weight", "bias", "running_mean", "running_var"];

/// The scale statistic of each channel.
#[derive(Clone, Copy)]
enum Spread {
    /// The variance, and the `eps` to be added to it.
    Variance(TensorId, f64),
    /// 1 / √(variance + eps).
    Inverse(TensorId),
}

/// Computes scale = weight / √(var + eps) and shift = bias - mean * scale, each with one element per channel.
fn scale_and_shift(
    p: &mut ProgramBuilder,
    mean: TensorId,
    spread: Spread,
    weight: Option<TensorId>,
    bias: Option<TensorId>,
    compute: DType,
) -> Result<(TensorId, TensorId), OpError> {
    let scale = match (spread, weight) {
        (Spread::Variance(var, eps), Some(w)) => p.map(&[var, w], compute, |_, x| {
            x[1].cast(compute) / (x[0].cast(compute) + eps).sqrt()
        })?,
        (Spread::Variance(var, eps), None) => p.map(&[var], compute, |_, x| {
            x[0].cast(compute).constant(1.0) / (x[0].cast(compute) + eps).sqrt()
        })?,
        (Spread::Inverse(i), Some(w)) => p.map(&[i, w], compute, |_, x| x[0].cast(compute) * x[1].cast(compute))?,
        (Spread::Inverse(i), None) => p.cast(i, compute)?,
    };
    let shift = match bias {
        Some(b) => p.map(&[mean, scale, b], compute, |_, x| {
            x[2].cast(compute) - x[0].cast(compute) * x[1]
        })?,
        None => p.map(&[mean, scale], compute, |_, x| -(x[0].cast(compute) * x[1]))?,
    };
    Ok((scale, shift))
}

/// Builds a batch norm: with running statistics in evaluation, with the batch's own statistics in training. `kept` says that the interpreter has already
/// updated the running statistics.
fn batch_norm(args: &Args<'_>, kept: bool) -> Result<Program, OpError> {
    let x = args.tensor("input")?;
    if x.shape.numel() == 0 {
        return normalised_nothing(args, &x);
    }
    check_parameters(args, &x, &PARAMETERS)?;
    let (rank, c) = (x.rank(), channels(&x)?);
    let (mean, var) = (args.opt_tensor("running_mean")?, args.opt_tensor("running_var")?);
    if let Some(other) = [&mean, &var]
        .into_iter()
        .flatten()
        .map(|t| t.rank())
        .find(|&rank| rank != 1)
    {
        return Err(OpError::raised(format!(
            "TensorAccessor expected 1 dims but tensor has {other}"
        )));
    }
    let eps = args.float("eps")?;
    let (compute, stored) = (compute_dtype(x.dtype()), statistics_dtype(args, &x)?);
    let mut p = ProgramBuilder::new(args);
    let (weight, bias) = (in_a_row(&mut p, args, "weight", c)?, in_a_row(&mut p, args, "bias", c)?);
    let (mean, spread) = match (args.flag("training")?, mean, var) {
        (false, Some(m), Some(v)) => (m.id, Spread::Variance(v.id, eps)),
        (false, mean, _) => {
            let missing = if mean.is_none() { "running_mean" } else { "running_var" };
            return Err(OpError::raised(format!("{missing} must be defined in evaluation mode")));
        }
        (true, ..) => {
            updates_nothing(args, kept)?;
            let dims: Vec<usize> = (0..rank).filter(|&d| d != 1).collect();
            let (mean, invstd) = kept_statistics(&mut p, &x, &dims, eps, stored)?;
            (p.squeeze(mean, &dims), Spread::Inverse(p.squeeze(invstd, &dims)))
        }
    };
    let (scale, shift) = scale_and_shift(&mut p, mean, spread, weight, bias, compute)?;
    let scale = per_channel(&mut p, scale, c, rank)?;
    let shift = per_channel(&mut p, shift, c, rank)?;
    let out = p.map(&[x.id, scale, shift], x.dtype(), |_, x| x[0] * x[1] + x[2])?;
    p.finish(&[out])
}

/// Refuses parameters whose dtype differs from the input's dtype. Parameters of f16 and bf16 inputs may be f32.
fn check_parameters(args: &Args<'_>, x: &TensorArg, names: &[&str]) -> Result<(), OpError> {
    let mut first = None;
    for name in names {
        let Some(parameter) = args.opt_tensor(name)? else {
            continue;
        };
        let dtype = parameter.dtype();
        let expected = *first.get_or_insert(dtype);
        let half = matches!(x.dtype(), DType::Half | DType::BFloat16);
        if dtype == expected && (dtype == x.dtype() || half && dtype == DType::Float) {
            continue;
        }
        return Err(OpError::raised(match (expected == x.dtype(), dtype) {
            (true, other) => format!(
                "expected scalar type {} but found {}",
                x.dtype().type_name(),
                other.type_name()
            ),
            (false, DType::Float) => "mixed dtype (CPU): all inputs must share same datatype.".to_owned(),
            _ => "mixed dtype (CPU): expect parameter to have scalar type of Float".to_owned(),
        }));
    }
    Ok(())
}

/// Returns the result for a batch without elements: dtype and sizes of a product with the first weight and a sum with the first bias.
fn normalised_nothing(args: &Args<'_>, x: &TensorArg) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let mut out = p.map(&[x.id], x.dtype(), |_, x| x[0])?;
    for name in ["weight", "bias"] {
        let Some(parameter) = args.opt_tensor(name)? else {
            continue;
        };
        if parameter.sizes().first().is_none_or(|&n| n == 0) {
            return Err(OpError::raised(format!("the {name} has no first element to select")));
        }
        let first = p.select(parameter.id, 0, 0);
        let types = ResultType::new().tensor(p.dtype(out), p.rank(out));
        let dtype = types.tensor(parameter.dtype(), parameter.rank() - 1).dtype();
        let dtype = dtype.unwrap_or(x.dtype());
        out = p.map(&[out, first], dtype, |_, x| x[0].cast(dtype) + x[1].cast(dtype))?;
    }
    p.finish(&[out])
}

/// Returns the dtype of a batch's saved statistics: the dtype of the parameters, or of the input.
fn statistics_dtype(args: &Args<'_>, x: &TensorArg) -> Result<DType, OpError> {
    let parameters = ["weight", "bias", "running_mean"].map(|name| args.opt_tensor(name));
    for parameter in parameters {
        if let Some(t) = parameter? {
            return Ok(t.dtype());
        }
    }
    Ok(x.dtype())
}

/// Checks that the program does not have to update running statistics. If `kept`, the interpreter has already updated
/// them.
fn updates_nothing(args: &Args<'_>, kept: bool) -> Result<(), OpError> {
    let running = args.opt_tensor("running_mean")?.is_some() || args.opt_tensor("running_var")?.is_some();
    if running && !kept {
        return Err(OpError::Unsupported(
            "normalisation that updates running statistics".into(),
        ));
    }
    Ok(())
}

/// Computes mean and 1 / √(variance + eps) over `dims`, which keep extent 1. Values are rounded like PyTorch's saved statistics: sum, mean, and 1 /
/// √(variance + eps) are each rounded to `kept` before they are used.
fn kept_statistics(
    p: &mut ProgramBuilder,
    x: &TensorArg,
    dims: &[usize],
    eps: f64,
    kept: DType,
) -> Result<(TensorId, TensorId), OpError> {
    let compute = compute_dtype(x.dtype());
    let n = dims.iter().map(|&d| x.sizes()[d]).product::<i64>() as f64;
    let accumulation = |output| Accumulation {
        combine: Combine::Add,
        accumulate: compute,
        output,
    };
    let sum = p.reduce(&[x.id], dims, true, accumulation(kept), |_, x| x[0].cast(compute), None)?;
    let mean = p.map(&[sum], kept, |_, x| x[0] / n)?;
    let spread = p.reduce(
        &[x.id, mean],
        dims,
        true,
        accumulation(compute),
        |_, x| {
            let d = x[0].cast(compute) - x[1].cast(compute);
            d * d
        },
        None,
    )?;
    let invstd = p.map(&[spread], kept, |_, x| {
        let inverse = x[0].constant(1.0) / (x[0] / n + eps).sqrt();
        // As in PyTorch, the inverse of a zero variance is zero, and not infinity, if `eps` is zero.
        if eps == 0.0 {
            x[0].eq(0.0).select(x[0].constant(0.0), inverse)
        } else {
            inverse
        }
    })?;
    Ok((mean, invstd))
}

/// Computes mean and biased variance over the dimensions `dims`, which are kept with extent 1.
fn statistics(
    p: &mut ProgramBuilder,
    x: TensorId,
    dims: &[usize],
    compute: DType,
) -> Result<(TensorId, TensorId), OpError> {
    let sizes = p.sizes(x);
    let n: i64 = dims.iter().map(|&d| sizes[d]).product();
    let mean = mean_of(p, x, dims, true, compute, n)?;
    let accumulation = Accumulation {
        combine: Combine::Add,
        accumulate: compute,
        output: compute,
    };
    let sum = p.reduce(
        &[x, mean],
        dims,
        true,
        accumulation,
        |_, x| {
            let d = x[0].cast(compute) - x[1];
            d * d
        },
        None,
    )?;
    let var = p.map(&[sum], compute, |_, x| x[0] / n as f64)?;
    Ok((mean, var))
}

/// Computes (x - mean) / √(var + eps) over `dims`, times `weight`, plus `bias`, which broadcast. The result has the first dtype; mean and 1 / √(var + eps) are
/// rounded to the second.
#[allow(clippy::too_many_arguments, reason = "a normalisation has as many parameters")]
fn normalized(
    p: &mut ProgramBuilder,
    x: TensorId,
    dims: &[usize],
    weight: Option<TensorId>,
    bias: Option<TensorId>,
    eps: f64,
    (dtype, kept): (DType, DType),
) -> Result<(TensorId, TensorId, TensorId), OpError> {
    let compute = compute_dtype(dtype);
    let (mean, var) = statistics(p, x, dims, compute)?;
    let mean = p.cast(mean, kept)?;
    let rstd = p.map(&[var], kept, |_, x| (x[0] + eps).rsqrt())?;
    let out = match (weight, bias) {
        (Some(w), Some(b)) => p.map(&[x, mean, rstd, w, b], dtype, |_, x| {
            (x[0] - x[1]) * x[2] * x[3].cast(compute) + x[4].cast(compute)
        })?,
        (Some(w), None) => p.map(&[x, mean, rstd, w], dtype, |_, x| {
            (x[0] - x[1]) * x[2] * x[3].cast(compute)
        })?,
        (None, Some(b)) => p.map(&[x, mean, rstd, b], dtype, |_, x| {
            (x[0] - x[1]) * x[2] + x[3].cast(compute)
        })?,
        (None, None) => p.map(&[x, mean, rstd], dtype, |_, x| (x[0] - x[1]) * x[2])?,
    };
    Ok((out, mean, rstd))
}

/// Returns the last dimensions of `x`, whose sizes must be the argument `normalized_shape`.
fn layer_dims(args: &Args<'_>, x: &TensorArg) -> Result<Vec<usize>, OpError> {
    let shape = args.ints("normalized_shape")?;
    match x.rank().checked_sub(shape.len()) {
        Some(first) if !shape.is_empty() && x.sizes()[first..] == shape[..] => Ok((first..x.rank()).collect()),
        _ => Err(OpError::raised(format!(
            "Given normalized_shape={:?}, expected input with shape [*{}{}], but got input of size{:?}",
            shape.as_slice(),
            // Without the comma where PyTorch forgets it.
            if args.has("bias") { ", " } else { "" },
            shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
            x.sizes()
        ))),
    }
}

fn layer_norm(args: &Args<'_>) -> Result<Program, OpError> {
    layer(args, false)
}

fn native_layer_norm(args: &Args<'_>) -> Result<Program, OpError> {
    layer(args, true)
}

fn layer(args: &Args<'_>, with_statistics: bool) -> Result<Program, OpError> {
    let x = args.tensor("input")?;
    let dims = layer_dims(args, &x)?;
    for name in ["weight", "bias"] {
        let shape = args.ints("normalized_shape")?;
        if let Some(parameter) = args.opt_tensor(name)?
            && parameter.sizes() != &shape[..]
        {
            return Err(OpError::raised(format!(
                "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {:?} and normalized_shape = {:?}",
                parameter.sizes(),
                shape.as_slice()
            )));
        }
    }
    check_parameters(args, &x, &["weight", "bias"])?;
    let weight = args.opt_tensor("weight")?.map(|t| t.id);
    let bias = args.opt_tensor("bias")?.map(|t| t.id);
    let mut p = ProgramBuilder::new(args);
    let (out, mean, rstd) = normalized(
        &mut p,
        x.id,
        &dims,
        weight,
        bias,
        args.float("eps")?,
        (x.dtype(), compute_dtype(x.dtype())),
    )?;
    if with_statistics {
        // In the input's dtype, unless the weights are wider.
        let dtype = args.opt_tensor("weight")?.map_or(x.dtype(), |w| w.dtype());
        let (mean, rstd) = (p.cast(mean, dtype)?, p.cast(rstd, dtype)?);
        p.finish(&[out, mean, rstd])
    } else {
        p.finish(&[out])
    }
}

fn group_norm(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("input")?;
    let (groups, c) = (args.int("num_groups")?, channels(&x)?);
    if groups <= 0 || c % groups != 0 {
        return Err(OpError::raised(format!(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape {:?} and num_groups={groups}",
            x.sizes()
        )));
    }
    if c == 0 || x.sizes()[2..].contains(&0) {
        return Err(OpError::raised(format!(
            "Expected the number of channels and the elements of each to be greater than 0, but got input of shape {:?}",
            x.sizes()
        )));
    }
    check_parameters(args, &x, &["weight", "bias"])?;
    let weight = args.opt_tensor("weight")?;
    let bias = args.opt_tensor("bias")?;
    grouped(args, &x, groups, weight, bias)
}

/// Builds a group norm: statistics over the channels of a group and all following dimensions, weights per channel.
fn grouped(
    args: &Args<'_>,
    x: &TensorArg,
    groups: i64,
    weight: Option<TensorArg>,
    bias: Option<TensorArg>,
) -> Result<Program, OpError> {
    let c = channels(x)?;
    let mut sizes: Dims = smallvec::smallvec![x.sizes()[0], groups, c / groups];
    sizes.extend_from_slice(&x.sizes()[2..]);
    let rank = sizes.len();
    let mut p = ProgramBuilder::new(args);
    let split = p.reshape(x.id, &sizes)?;
    let mut wide: Dims = smallvec::smallvec![1; rank - 1];
    (wide[0], wide[1]) = (groups, c / groups);
    let mut parameter = |t: Option<TensorArg>| t.map(|t| p.reshape(t.id, &wide)).transpose();
    let (weight, bias) = (parameter(weight)?, parameter(bias)?);
    let dims: Vec<usize> = (2..rank).collect();
    let (out, ..) = normalized(
        &mut p,
        split,
        &dims,
        weight,
        bias,
        args.float("eps")?,
        (x.dtype(), compute_dtype(x.dtype())),
    )?;
    let out = p.reshape(out, x.sizes())?;
    p.finish(&[out])
}

/// Builds an instance norm with the input's own statistics, or like a batch norm if they are not to be used.
fn instance_norm(args: &Args<'_>, kept: bool) -> Result<Program, OpError> {
    let x = args.tensor("input")?;
    let c = channels(&x)?;
    // Parameters are repeated for each instance.
    for name in PARAMETERS {
        if args.opt_tensor(name)?.is_some_and(|t| t.rank() > 1) {
            return Err(OpError::raised(
                "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
            ));
        }
    }
    check_parameters(args, &x, &PARAMETERS)?;
    if args.flag("use_input_stats")? {
        updates_nothing(args, kept)?;
        return by_instances(args, &x, c);
    }
    let (Some(mean), Some(var)) = (args.opt_tensor("running_mean")?, args.opt_tensor("running_var")?) else {
        return Err(OpError::raised(
            "Expected running_mean and running_var to be defined when use_input_stats is false",
        ));
    };
    let compute = compute_dtype(x.dtype());
    let mut p = ProgramBuilder::new(args);
    let (weight, bias) = (in_a_row(&mut p, args, "weight", c)?, in_a_row(&mut p, args, "bias", c)?);
    let (scale, shift) = scale_and_shift(
        &mut p,
        mean.id,
        Spread::Variance(var.id, args.float("eps")?),
        weight,
        bias,
        compute,
    )?;
    let scale = per_channel(&mut p, scale, c, x.rank())?;
    let shift = per_channel(&mut p, shift, c, x.rank())?;
    let out = p.map(&[x.id, scale, shift], x.dtype(), |_, x| x[0] * x[1] + x[2])?;
    p.finish(&[out])
}

/// Normalises each channel of each instance with its own mean and variance.
fn by_instances(args: &Args<'_>, x: &TensorArg, c: i64) -> Result<Program, OpError> {
    let (compute, stored) = (compute_dtype(x.dtype()), statistics_dtype(args, x)?);
    let rank = x.rank();
    let dims: Vec<usize> = (2..rank).collect();
    let mut p = ProgramBuilder::new(args);
    let (mean, invstd) = kept_statistics(&mut p, x, &dims, args.float("eps")?, stored)?;
    let mut parameter = |name| match args.opt_tensor(name)? {
        Some(t) => per_channel(&mut p, t.id, c, rank).map(Some),
        None => Ok(None),
    };
    let (weight, bias) = (parameter("weight")?, parameter("bias")?);
    let (scale, shift) = scale_and_shift(&mut p, mean, Spread::Inverse(invstd), weight, bias, compute)?;
    let out = p.map(&[x.id, scale, shift], x.dtype(), |_, x| x[0] * x[1] + x[2])?;
    p.finish(&[out])
}

/// Implements `rms_norm`: x / √(mean(x²) + eps), times the weight.
fn rms_norm(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("input")?;
    let dims = layer_dims(args, &x)?;
    let compute = compute_dtype(x.dtype());
    let n: i64 = dims.iter().map(|&d| x.sizes()[d]).product();
    let eps = args.opt_float("eps")?.unwrap_or(match x.dtype() {
        DType::Double => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    });
    let mut p = ProgramBuilder::new(args);
    let accumulation = Accumulation {
        combine: Combine::Add,
        accumulate: compute,
        output: compute,
    };
    let sum = p.reduce(&[x.id], &dims, true, accumulation, |_, x| x[0] * x[0], None)?;
    let scale = p.map(&[sum], compute, |_, x| (x[0] / n as f64 + eps).rsqrt())?;
    let out = match args.opt_tensor("weight")? {
        Some(w) => p.map(&[x.id, scale, w.id], x.dtype(), |_, x| x[0] * x[1] * x[2].cast(compute))?,
        None => p.map(&[x.id, scale], x.dtype(), |_, x| x[0] * x[1])?,
    };
    p.finish(&[out])
}
