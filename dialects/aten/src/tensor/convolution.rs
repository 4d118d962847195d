//! Convolutions in one to three dimensions: with groups, strides, dilation and padding, and transposed.

use frazil_runtime::args::{Args, TensorArg};
use frazil_runtime::build::{ProgramBuilder, step_of};
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::expr::Number;
use frazil_runtime::op::Form::Contraction;
use frazil_runtime::op::OpError;
use frazil_runtime::promote::compute_dtype;
use frazil_runtime::structured::{
    Access, Affine, Dims, Iteration, OutOfBounds, Program, Structured, TensorId, TensorShape,
};
use frazil_runtime::sym::Formula;

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::conv1d",
        Entry::program(Contraction, |a| forward(a, 1))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::conv2d",
        Entry::program(Contraction, |a| forward(a, 2))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::conv3d",
        Entry::program(Contraction, |a| forward(a, 3))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::conv_transpose1d",
        Entry::program(Contraction, |a| backward(a, 1))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::conv_transpose2d",
        Entry::program(Contraction, |a| backward(a, 2))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::conv_transpose3d",
        Entry::program(Contraction, |a| backward(a, 3))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::_convolution_mode",
        Entry::program(Contraction, |a| {
            let n = a.tensor("weight")?.rank().saturating_sub(2);
            if !(1..=3).contains(&n) {
                return Err(OpError::raised("weight should have at least three dimensions"));
            }
            forward(a, n)
        }),
    ),
    (
        "aten::_convolution",
        Entry::program(Contraction, general)
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::convolution",
        Entry::program(Contraction, general)
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
];

/// Parameters of a convolution, with one entry per spatial dimension. Padding may differ between the two ends of a dimension (`same`).
struct Parameters {
    stride: Dims,
    before: Dims,
    after: Dims,
    dilation: Dims,
    groups: i64,
}

fn parameters(args: &Args<'_>, w: &TensorArg, n: usize) -> Result<Parameters, OpError> {
    let (stride, dilation) = (args.int_array("stride", n)?, args.int_array("dilation", n)?);
    let groups = args.int("groups")?;
    if groups <= 0 || stride.iter().chain(&dilation).any(|&x| x <= 0) {
        return Err(OpError::raised(
            "non-positive stride, dilation or groups is not supported",
        ));
    }
    let kernel = w.sizes().get(2..).unwrap_or(&[]);
    let (before, after) = match args.get("padding") {
        frazil_runtime::args::Arg::Str(mode) => match &*mode {
            "valid" => (smallvec::smallvec![0; n], smallvec::smallvec![0; n]),
            "same" if stride.iter().all(|&s| s == 1) && kernel.len() == n => {
                let total: Dims = (0..n).map(|i| dilation[i].saturating_mul(kernel[i] - 1)).collect();
                (
                    total.iter().map(|t| t / 2).collect(),
                    total.iter().map(|t| t - t / 2).collect(),
                )
            }
            "same" => {
                return Err(OpError::raised(
                    "padding='same' is not supported for strided convolutions",
                ));
            }
            other => return Err(OpError::raised(format!("Invalid padding string: '{other}'"))),
        },
        _ => {
            let p = args.int_array("padding", n)?;
            if p.iter().any(|&p| p < 0) {
                return Err(OpError::raised("negative padding is not supported"));
            }
            (p.clone(), p)
        }
    };
    Ok(Parameters {
        stride,
        before,
        after,
        dilation,
        groups,
    })
}

/// Input, weight and bias of a convolution, and whether the input has no batch dimension.
struct Operands {
    x: TensorId,
    w: TensorArg,
    bias: Option<TensorArg>,
    unbatched: bool,
}

fn operands(p: &mut ProgramBuilder, args: &Args<'_>, n: usize) -> Result<Operands, OpError> {
    let (x, w) = (args.tensor("input")?, args.tensor("weight")?);
    let bias = args.opt_tensor("bias")?;
    if w.rank() != n + 2 {
        return Err(OpError::raised(format!(
            "Expected a weight of {} dimensions, got sizes {:?}",
            n + 2,
            w.sizes()
        )));
    }
    if x.dtype() != w.dtype() {
        return Err(OpError::raised(format!(
            "Input type ({}) and weight type ({}) should be the same",
            x.dtype().type_name(),
            w.dtype().type_name()
        )));
    }
    if let Some(b) = &bias
        && b.dtype() != x.dtype()
    {
        return Err(OpError::raised(format!(
            "Input type ({}) and bias type ({}) should be the same",
            x.dtype().type_name(),
            b.dtype().type_name()
        )));
    }
    let unbatched = x.rank() == n + 1;
    if !unbatched && x.rank() != n + 2 {
        return Err(OpError::raised(format!(
            "Expected {}D (unbatched) or {}D (batched) input to conv{n}d, but got input of size: {:?}",
            n + 1,
            n + 2,
            x.sizes()
        )));
    }
    let id = if unbatched { p.unsqueeze(x.id, 0) } else { x.id };
    Ok(Operands {
        x: id,
        w,
        bias,
        unbatched,
    })
}

fn finish(mut p: ProgramBuilder, out: TensorId, unbatched: bool) -> Result<Program, OpError> {
    let out = if unbatched { p.squeeze(out, &[0]) } else { out };
    p.finish(&[out])
}

fn forward(args: &Args<'_>, n: usize) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let o = operands(&mut p, args, n)?;
    let parameters = parameters(args, &o.w, n)?;
    let out = convolve(&mut p, o.x, &o.w, o.bias.as_ref(), &parameters)?;
    finish(p, out, o.unbatched)
}

fn backward(args: &Args<'_>, n: usize) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let o = operands(&mut p, args, n)?;
    let parameters = parameters(args, &o.w, n)?;
    let output_padding = args.int_array("output_padding", n)?;
    let out = convolve_transposed(&mut p, o.x, &o.w, o.bias.as_ref(), &parameters, &output_padding)?;
    finish(p, out, o.unbatched)
}

fn general(args: &Args<'_>) -> Result<Program, OpError> {
    let n = args.tensor("weight")?.rank().saturating_sub(2);
    if n == 0 {
        return Err(OpError::raised("a convolution's weight needs spatial dimensions"));
    }
    if args.flag("transposed")? {
        backward(args, n)
    } else {
        forward(args, n)
    }
}

/// Computes `out[b, g, c, o] = Σ x[b, g, i, o·stride + k·dilation - padding] · w[g, c, i, k] + bias[g, c]`. Without
/// groups, the dimension `g` is left out.
fn convolve(
    p: &mut ProgramBuilder,
    x: TensorId,
    w: &TensorArg,
    bias: Option<&TensorArg>,
    q: &Parameters,
) -> Result<TensorId, OpError> {
    let (xs, ws) = (p.sizes(x), w.shape.sizes.clone());
    let n = ws.len() - 2;
    let (batch, channels, out_channels, per_group) = (xs[0], xs[1], ws[0], ws[1]);
    if Some(channels) != per_group.checked_mul(q.groups) || out_channels % q.groups != 0 {
        return Err(OpError::raised(format!(
            "Given groups={}, weight of size {:?}, expected input{:?} to have {} channels, but got {channels} channels instead",
            q.groups,
            ws.as_slice(),
            xs.as_slice(),
            per_group.saturating_mul(q.groups)
        )));
    }
    let mut spatial = Dims::new();
    for i in 0..n {
        let reach = q.dilation[i].saturating_mul(ws[2 + i] - 1).saturating_add(1);
        // PyTorch's sum wraps around where it is too large.
        let padded = xs[2 + i].wrapping_add(q.before[i]).wrapping_add(q.after[i]);
        if padded < reach || ws[2 + i] == 0 {
            return Err(OpError::raised(format!(
                "Calculated padded input size per channel: ({padded}). Kernel size: ({reach}). Kernel size can't be greater than actual input size"
            )));
        }
        spatial.push((padded - reach) / q.stride[i] + 1);
    }
    let map = |i: usize, loops: usize, o: usize, k: usize| {
        let mut a = Affine::constant(loops, -q.before[i]);
        a.coefficients[o] = step_of(q.stride[i], spatial[i]);
        a.coefficients[k] = step_of(q.dilation[i], ws[2 + i]);
        a
    };
    let grouped = Grouped {
        batch,
        groups: q.groups,
        out_channels: out_channels / q.groups,
        per_group,
    };
    let flipped = false;
    sum_of_products(p, x, w, bias, &grouped, &spatial, flipped, &map)
}

/// The extents of the non-spatial dimensions in a grouped convolution.
struct Grouped {
    batch: i64,
    groups: i64,
    out_channels: i64,
    per_group: i64,
}

/// Returns the contraction. The weight is `[groups * out][in][k...]`. If `transposed`, it is `[groups * in][out][k...]` and read backwards along its spatial
/// dimensions.
#[allow(clippy::too_many_arguments, reason = "a convolution has as many parts")]
fn sum_of_products(
    p: &mut ProgramBuilder,
    x: TensorId,
    w: &TensorArg,
    bias: Option<&TensorArg>,
    c: &Grouped,
    spatial: &[i64],
    transposed: bool,
    map: &dyn Fn(usize, usize, usize, usize) -> Affine,
) -> Result<TensorId, OpError> {
    let xs = p.sizes(x);
    let kernel: Dims = w.sizes()[2..].into();
    let n = kernel.len();
    let dtype = p.dtype(x);
    let g = usize::from(c.groups > 1);
    // batch, (group,) out channel, spatial | in channel, kernel
    let mut domain: Dims = smallvec::smallvec![c.batch];
    domain.extend((g == 1).then_some(c.groups));
    domain.push(c.out_channels);
    domain.extend_from_slice(spatial);
    let parallel = domain.len();
    domain.push(c.per_group);
    domain.extend_from_slice(&kernel);
    let loops = domain.len();
    let (out_loop, in_loop) = (1 + g, parallel);
    let mut source = x;
    let mut weight = w.id;
    let mut bias_id = bias.map(|b| b.id);
    if let Some(b) = bias
        && b.sizes() != [c.groups * c.out_channels]
    {
        return Err(OpError::raised(format!(
            "expected bias to be 1-dimensional with {} elements, but got bias of size {:?} instead",
            c.groups * c.out_channels,
            b.sizes()
        )));
    }
    if g == 1 {
        let mut sizes: Dims = smallvec::smallvec![c.batch, c.groups, c.per_group];
        sizes.extend_from_slice(&xs[2..]);
        source = p.reshape(x, &sizes)?;
        let (outer, inner) = if transposed {
            (c.per_group, c.out_channels)
        } else {
            (c.out_channels, c.per_group)
        };
        let mut sizes: Dims = smallvec::smallvec![c.groups, outer, inner];
        sizes.extend_from_slice(&kernel);
        weight = p.reshape(weight, &sizes)?;
        bias_id = bias_id.map(|b| p.reshape(b, &[c.groups, c.out_channels])).transpose()?;
    }
    let group_index = (g == 1).then(|| Affine::index(loops, 1));
    let mut x_map: smallvec::SmallVec<[Affine; 6]> = smallvec::smallvec![Affine::index(loops, 0)];
    x_map.extend(group_index.clone());
    x_map.push(Affine::index(loops, in_loop));
    x_map.extend((0..n).map(|i| map(i, loops, 2 + g + i, in_loop + 1 + i)));
    let channel_loops = if transposed {
        [in_loop, out_loop]
    } else {
        [out_loop, in_loop]
    };
    let mut w_map: smallvec::SmallVec<[Affine; 6]> = group_index.clone().into_iter().collect();
    w_map.extend(channel_loops.iter().map(|&l| Affine::index(loops, l)));
    w_map.extend((0..n).map(|i| {
        let mut a = Affine::index(loops, in_loop + 1 + i);
        if transposed {
            a.coefficients[in_loop + 1 + i] = -1;
            a.offset = kernel[i] - 1;
        }
        a
    }));
    let accumulate = compute_dtype(dtype);
    let finish = bias_id.map(|b| {
        let bias_dtype = p.dtype(b);
        let add = Formula::build(dtype, |f| {
            f.input(0, accumulate) + f.input(1, bias_dtype).cast(accumulate)
        });
        let mut b_map: smallvec::SmallVec<[Affine; 6]> = group_index.into_iter().collect();
        b_map.push(Affine::index(loops, out_loop));
        (
            add,
            vec![Access {
                tensor: b,
                map: b_map,
                out_of_bounds: OutOfBounds::Never,
            }],
        )
    });
    let outside = OutOfBounds::Value(Number::Float(0.0));
    let operands = [
        Access {
            tensor: source,
            map: x_map,
            out_of_bounds: outside,
        },
        Access {
            tensor: weight,
            map: w_map,
            out_of_bounds: OutOfBounds::Never,
        },
    ];
    let out = p.contract(&domain, parallel, operands, (accumulate, dtype), finish);
    if g == 0 {
        return Ok(out);
    }
    let mut sizes: Dims = smallvec::smallvec![c.batch, c.groups * c.out_channels];
    sizes.extend_from_slice(spatial);
    p.reshape(out, &sizes)
}

/// Computes a transposed convolution as a convolution of the input with `stride - 1` zeros between its elements, with
/// the weight read backwards.
fn convolve_transposed(
    p: &mut ProgramBuilder,
    x: TensorId,
    w: &TensorArg,
    bias: Option<&TensorArg>,
    q: &Parameters,
    output_padding: &[i64],
) -> Result<TensorId, OpError> {
    let (xs, ws) = (p.sizes(x), w.shape.sizes.clone());
    let n = ws.len() - 2;
    if xs[1] != ws[0] || ws[0] % q.groups != 0 {
        return Err(OpError::raised(format!(
            "Given transposed=1, weight of size {:?}, expected input{:?} to have {} channels, but got {} channels instead",
            ws.as_slice(),
            xs.as_slice(),
            ws[0],
            xs[1]
        )));
    }
    // A single element has no next one to be moved away from it.
    let steps: Dims = (0..n).map(|i| if xs[2 + i] <= 1 { 1 } else { q.stride[i] }).collect();
    let spread = spread(p, x, &steps)?;
    // Only what has images and channels has to give some.
    let least = i64::from(!xs[..2].contains(&0));
    let (mut spatial, mut starts) = (Dims::new(), Dims::new());
    for i in 0..n {
        let [x, stride, before, dilation, k, more] = [
            xs[2 + i],
            q.stride[i],
            q.before[i],
            q.dilation[i],
            ws[2 + i],
            output_padding[i],
        ]
        .map(i128::from);
        let reach = dilation * (k - 1);
        let size = i64::try_from((x - 1) * stride - 2 * before + reach + more + 1);
        let start = i64::try_from(before - reach);
        let (Ok(size), Ok(start)) = (size, start) else {
            return Err(OpError::raised("Calculated output size per channel is too large"));
        };
        if size < least {
            return Err(OpError::raised("Calculated output size per channel is too small"));
        }
        spatial.push(size);
        starts.push(start);
    }
    let map = |i: usize, loops: usize, o: usize, k: usize| {
        let mut a = Affine::constant(loops, starts[i]);
        a.coefficients[o] = 1;
        a.coefficients[k] = step_of(q.dilation[i], ws[2 + i]);
        a
    };
    let grouped = Grouped {
        batch: xs[0],
        groups: q.groups,
        out_channels: ws[1],
        per_group: ws[0] / q.groups,
    };
    sum_of_products(p, spread, w, bias, &grouped, &spatial, true, &map)
}

/// Returns `x` with `step - 1` zeros after every element of each spatial dimension (input dilation).
fn spread(p: &mut ProgramBuilder, x: TensorId, step: &[i64]) -> Result<TensorId, OpError> {
    if step.iter().all(|&s| s == 1) {
        return Ok(x);
    }
    let shape = p.shape(x);
    let n = step.len();
    // Each spatial dimension becomes a pair (element, place behind it); only place 0 holds the element.
    let mut paired: Dims = shape.sizes[..2].into();
    let mut with_ones = paired.clone();
    for (&size, &step) in shape.sizes[2..].iter().zip(step) {
        paired.extend([size, step]);
        with_ones.extend([size, 1]);
    }
    let source = p.reshape(x, &with_ones)?;
    let rank = paired.len();
    let access = Access {
        tensor: source,
        map: (0..rank).map(|d| Affine::index(rank, d)).collect(),
        out_of_bounds: OutOfBounds::Value(Number::Float(0.0)),
    };
    let wide = p.compute(Structured {
        domain: paired.clone(),
        iterations: smallvec::smallvec![Iteration::Parallel; rank],
        inputs: smallvec::smallvec![access],
        body: frazil_runtime::expr::Expr::identity(shape.dtype),
        combine: None,
        accumulate: shape.dtype,
        finish: None,
        finish_inputs: Default::default(),
        output: TensorShape {
            dtype: shape.dtype,
            sizes: paired,
        },
    });
    let mut merged: Dims = shape.sizes[..2].into();
    merged.extend((0..n).map(|i| shape.sizes[2 + i].saturating_mul(step[i])));
    p.reshape(wide, &merged)
}
