//! Rearrangement of elements: repetition, reflection, rotation, windows, shuffles.

use super::join::concatenated;
use frazil_ir::DType;
use frazil_ir::schema::AliasUse;
use frazil_runtime::args::Args;
use frazil_runtime::build::{ProgramBuilder, step_of};
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::expr::{Expr, Number};
use frazil_runtime::op::Form::{LoopNests, Pointwise, View};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::structured::{
    Access, Affine, Dims, Iteration, OutOfBounds, Program, Structured, TensorId, TensorShape,
};
use frazil_runtime::sym::Formula;
use frazil_runtime::{Tensor, TensorError, layout, memory};

pub(super) const ENTRIES: &[Row] = &[
    ("aten::repeat", Entry::program(Pointwise, |a| repeated(a, "repeats"))),
    ("aten::tile", Entry::program(Pointwise, |a| repeated(a, "dims"))),
    (
        "aten::flip",
        Entry::program(Pointwise, |a| {
            let x = a.tensor("self")?;
            let given = a.ints("dims")?;
            let dims = if given.is_empty() {
                Vec::new()
            } else {
                a.dims("dims", x.rank())?
            };
            with(a, |p| Ok(flipped(p, x.id, &dims)))
        })
        .layout(ResultLayout::Elementwise),
    ),
    (
        "aten::fliplr",
        Entry::program(Pointwise, |a| flipped_along(a, 1)).layout(ResultLayout::Elementwise),
    ),
    (
        "aten::flipud",
        Entry::program(Pointwise, |a| flipped_along(a, 0)).layout(ResultLayout::Elementwise),
    ),
    // PyTorch joins two parts.
    (
        "aten::roll",
        Entry::program(LoopNests, roll).layout(ResultLayout::Joined),
    ),
    ("aten::rot90", Entry::program(LoopNests, rot90)),
    ("aten::im2col", Entry::program(LoopNests, im2col)),
    (
        "aten::pixel_shuffle",
        Entry::program(LoopNests, pixel_shuffle).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::pixel_unshuffle",
        Entry::program(LoopNests, pixel_unshuffle).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::channel_shuffle",
        Entry::program(LoopNests, channel_shuffle)
            .layout(ResultLayout::ChannelsLast(3))
            .aliases(&[("aten::native_channel_shuffle", AliasUse::Semantics)]),
    ),
    ("aten::meshgrid", Entry::program(View, meshgrid)),
    (
        "aten::broadcast_tensors",
        Entry::program(View, broadcast_tensors).returns_self(),
    ),
    (
        "aten::hstack",
        Entry::program(LoopNests, |a| stacked(a, 1, |rank| i64::from(rank > 1))).layout(ResultLayout::Joined),
    ),
    (
        "aten::vstack",
        Entry::program(LoopNests, |a| stacked(a, 2, |_| 0))
            .layout(ResultLayout::Joined)
            .aliases(&[("aten::row_stack", AliasUse::Everywhere)]),
    ),
    (
        "aten::dstack",
        Entry::program(LoopNests, |a| stacked(a, 3, |_| 2)).layout(ResultLayout::Joined),
    ),
    ("aten::column_stack", Entry::program(LoopNests, column_stack)),
    (
        "aten::repeat_interleave.self_int",
        Entry::program(Pointwise, repeat_each),
    ),
    ("aten::diag_embed", Entry::program(Pointwise, diag_embed)),
    (
        "aten::trace",
        Entry::program(LoopNests, |a| {
            let x = a.tensor("self")?;
            let [n, m] = x.sizes() else {
                return Err(OpError::raised("trace: expected a matrix"));
            };
            let output = if x.dtype().is_floating_point() || x.dtype().is_complex() {
                x.dtype()
            } else {
                DType::Long
            };
            let accumulate = frazil_runtime::promote::compute_dtype(output);
            let accumulation = frazil_runtime::build::Accumulation {
                combine: frazil_runtime::structured::Combine::Add,
                accumulate,
                output,
            };
            with(a, |p| {
                let d = p.view(x.id, &[(*n).min(*m)], vec![Affine::index(1, 0), Affine::index(1, 0)]);
                p.reduce(&[d], &[0], false, accumulation, |_, x| x[0].cast(accumulate), None)
            })
        }),
    ),
    ("aten::repeat_interleave", Entry::kernel(repeat_interleave)),
];

/// Returns the product of `sizes`, the number of elements of a tensor.
fn numel(sizes: &[i64]) -> Result<i64, OpError> {
    Ok(layout::checked_numel(sizes).ok_or(TensorError::TooManyElements)?)
}

pub(super) fn with(
    args: &Args<'_>,
    build: impl FnOnce(&mut ProgramBuilder) -> Result<TensorId, OpError>,
) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let out = build(&mut p)?;
    p.finish(&[out])
}

/// Returns a new tensor of sizes `sizes` with the elements of `t` at the mapped coordinates.
pub(super) fn copied(
    p: &mut ProgramBuilder,
    t: TensorId,
    sizes: &[i64],
    map: Vec<Affine>,
    outside: OutOfBounds,
) -> TensorId {
    let dtype = p.dtype(t);
    p.compute(Structured {
        domain: sizes.into(),
        iterations: smallvec::smallvec![Iteration::Parallel; sizes.len()],
        inputs: smallvec::smallvec![Access {
            tensor: t,
            map: map.into(),
            out_of_bounds: outside
        }],
        body: Expr::identity(dtype),
        combine: None,
        accumulate: dtype,
        finish: None,
        finish_inputs: Default::default(),
        output: TensorShape {
            dtype,
            sizes: sizes.into(),
        },
    })
}

/// Implements `repeat` and `tile`: copies of the tensor side by side. Missing leading dimensions count as 1.
fn repeated(args: &Args<'_>, name: &str) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let mut times = args.ints(name)?;
    if name == "dims" {
        while times.len() < x.rank() {
            times.insert(0, 1);
        }
    }
    let Some(lead) = times.len().checked_sub(x.rank()) else {
        return Err(OpError::raised(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        ));
    };
    if times.iter().any(|&t| t < 0) {
        return Err(OpError::raised(format!(
            "Trying to create tensor with negative dimension: {:?}",
            times.as_slice()
        )));
    }
    // (repetition, own) pairs, merged at the end.
    let mut pairs = Dims::new();
    let mut merged = Dims::new();
    for (d, &t) in times.iter().enumerate() {
        let own = d.checked_sub(lead).map_or(1, |o| x.sizes()[o]);
        pairs.extend([t, own]);
        merged.push(t.saturating_mul(own));
    }
    Tensor::byte_size(x.dtype(), &merged)?;
    let rank = pairs.len();
    let map = (0..x.rank()).map(|d| Affine::index(rank, 2 * (d + lead) + 1)).collect();
    with(args, |p| {
        let wide = copied(p, x.id, &pairs, map, OutOfBounds::Never);
        p.reshape(wide, &merged)
    })
}

pub(super) fn flipped(p: &mut ProgramBuilder, t: TensorId, dims: &[usize]) -> TensorId {
    let sizes = p.sizes(t);
    let rank = sizes.len();
    let map = (0..rank)
        .map(|d| {
            let mut a = Affine::index(rank, d);
            if dims.contains(&d) {
                a.coefficients[d] = -1;
                a.offset = sizes[d] - 1;
            }
            a
        })
        .collect();
    copied(p, t, &sizes, map, OutOfBounds::Never)
}

fn flipped_along(args: &Args<'_>, dim: usize) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    if x.rank() <= dim {
        return Err(OpError::raised(format!("Input must be >= {}-d.", dim + 1)));
    }
    with(args, |p| Ok(flipped(p, x.id, &[dim])))
}

fn roll(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let (shifts, dims) = (args.ints("shifts")?, args.ints("dims")?);
    with(args, |p| {
        if dims.is_empty() {
            let [shift] = shifts.as_slice() else {
                return Err(OpError::raised("shifts and dimensions must align"));
            };
            let flat = p.reshape(x.id, &[x.shape.numel()])?;
            let out = rolled(p, flat, 0, *shift)?;
            if out == flat {
                return p.map(&[x.id], x.dtype(), |_, x| x[0]);
            }
            return p.reshape(out, x.sizes());
        }
        if shifts.len() != dims.len() {
            return Err(OpError::raised("shifts and dimensions must align"));
        }
        if x.rank() == 0 {
            let dim = dims[0];
            return Err(OpError::raised(format!(
                "Dimension specified as {dim} but tensor has no dimensions"
            )));
        }
        let mut t = x.id;
        for (&shift, &dim) in shifts.iter().zip(&dims) {
            let dim = frazil_runtime::args::wrap_dim(dim, x.rank())?;
            t = rolled(p, t, dim, shift)?;
        }
        if t == x.id {
            p.map(&[t], x.dtype(), |_, x| x[0])
        } else {
            Ok(t)
        }
    })
}

fn rolled(p: &mut ProgramBuilder, t: TensorId, dim: usize, shift: i64) -> Result<TensorId, OpError> {
    let size = p.sizes(t).get(dim).copied().unwrap_or(0);
    let shift = if size == 0 { 0 } else { shift.rem_euclid(size) };
    if shift == 0 {
        return Ok(t);
    }
    let (end, start) = (
        p.slice(t, dim, size - shift, shift, 1),
        p.slice(t, dim, 0, size - shift, 1),
    );
    concatenated(p, &[end, start], dim as i64)
}

fn rot90(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let dims = args.dims("dims", x.rank())?;
    let [a, b] = dims.as_slice() else {
        return Err(OpError::raised("expected total rotation dims == 2"));
    };
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(*a, *b);
    with(args, |p| {
        Ok(match args.int("k")?.rem_euclid(4) {
            0 => p.map(&[x.id], x.dtype(), |_, x| x[0])?,
            2 => flipped(p, x.id, &[*a, *b]),
            1 => {
                let f = flipped(p, x.id, &[*b]);
                let t = p.permute(f, &order);
                p.map(&[t], x.dtype(), |_, x| x[0])?
            }
            _ => {
                let t = p.permute(x.id, &order);
                flipped(p, t, &[*b])
            }
        })
    })
}

/// Returns the windows of images as columns: `[n, c, h, w]` to `[n, c · window, windows]`.
fn im2col(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let (kernel, dilation) = (args.int_array("kernel_size", 2)?, args.int_array("dilation", 2)?);
    let (padding, stride) = (args.int_array("padding", 2)?, args.int_array("stride", 2)?);
    let batched = x.rank() == 4;
    if !(batched || x.rank() == 3) || x.sizes()[1..].contains(&0) {
        return Err(OpError::raised(format!(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {:?}",
            x.sizes()
        )));
    }
    let valid = (0..2).all(|i| kernel[i] > 0 && dilation[i] > 0 && stride[i] > 0 && padding[i] >= 0);
    if !valid {
        return Err(OpError::raised(
            "kernel_size, dilation and stride should be greater than zero, padding non-negative",
        ));
    }
    let lead = x.rank() - 3;
    let spatial = &x.sizes()[lead + 1..];
    let windows = |i: usize| {
        let [size, pad, kernel, dilation, stride] =
            [spatial[i], padding[i], kernel[i], dilation[i], stride[i]].map(i128::from);
        // PyTorch's numbers wrap around where they are too large, and are negative then.
        let room = i64::try_from(size + 2 * pad - dilation * (kernel - 1) - 1).unwrap_or(i64::MIN);
        room.div_euclid(stride.max(1) as i64) + 1
    };
    let blocks: Dims = (0..2).map(windows).collect();
    if blocks.iter().any(|&b| b < 1) {
        return Err(OpError::raised(format!(
            "Given input with spatial size {spatial:?}, calculated shape of the array of sliding blocks as {:?}, but its components must be at least one.",
            blocks.as_slice()
        )));
    }
    let channels = x.sizes()[lead];
    let mut sizes: Dims = x.sizes()[..lead].into();
    let mut merged = sizes.clone();
    sizes.extend([channels, kernel[0], kernel[1], blocks[0], blocks[1]]);
    let window = kernel[0].saturating_mul(kernel[1]);
    merged.extend([channels.saturating_mul(window), blocks[0].saturating_mul(blocks[1])]);
    let rank = sizes.len();
    let mut map: Vec<Affine> = (0..=lead).map(|d| Affine::index(rank, d)).collect();
    for i in 0..2 {
        let mut place = Affine::constant(rank, -padding[i]);
        place.coefficients[lead + 1 + i] = step_of(dilation[i], kernel[i]);
        place.coefficients[lead + 3 + i] = step_of(stride[i], blocks[i]);
        map.push(place);
    }
    with(args, |p| {
        let columns = copied(p, x.id, &sizes, map, OutOfBounds::Value(Number::Int(0)));
        p.reshape(columns, &merged)
    })
}

/// Implements `pixel_shuffle`: rearranges `[.., c·r², h, w]` to `[.., c, h·r, w·r]`.
fn pixel_shuffle(args: &Args<'_>) -> Result<Program, OpError> {
    let (x, r) = (args.tensor("self")?, args.int("upscale_factor")?);
    let rank = x.rank();
    if rank < 3 {
        return Err(OpError::raised(format!(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with {rank} dimension(s)"
        )));
    }
    if r <= 0 || i128::from(x.sizes()[rank - 3]) % (i128::from(r) * i128::from(r)) != 0 {
        return Err(OpError::raised(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor",
        ));
    }
    let lead = rank - 3;
    let square = r.checked_mul(r).ok_or_else(|| {
        OpError::raised(format!(
            "upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor={r}"
        ))
    })?;
    let (c, h, w) = (x.sizes()[lead] / square, x.sizes()[lead + 1], x.sizes()[lead + 2]);
    let (Some(height), Some(width)) = (h.checked_mul(r), w.checked_mul(r)) else {
        return Err(TensorError::TooManyElements.into());
    };
    shuffled(
        args,
        x.id,
        &x.sizes()[..lead],
        &[c, r, r, h, w],
        &[0, 3, 1, 4, 2],
        &[c, height, width],
    )
}

fn pixel_unshuffle(args: &Args<'_>) -> Result<Program, OpError> {
    let (x, r) = (args.tensor("self")?, args.int("downscale_factor")?);
    let rank = x.rank();
    if rank < 3 {
        return Err(OpError::raised(format!(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with {rank} dimension(s)"
        )));
    }
    if r <= 0 || x.sizes()[rank - 1] % r != 0 || x.sizes()[rank - 2] % r != 0 {
        return Err(OpError::raised(
            "pixel_unshuffle expects height and width to be divisible by downscale_factor",
        ));
    }
    if x.sizes().contains(&0) {
        // PyTorch gives what has no elements as it is.
        let order: Vec<usize> = (0..rank).collect();
        return shuffled(args, x.id, &[], x.sizes(), &order, x.sizes());
    }
    let lead = rank - 3;
    let (c, h, w) = (x.sizes()[lead], x.sizes()[lead + 1] / r, x.sizes()[lead + 2] / r);
    shuffled(
        args,
        x.id,
        &x.sizes()[..lead],
        &[c, h, r, w, r],
        &[0, 2, 4, 1, 3],
        &[c * r * r, h, w],
    )
}

fn channel_shuffle(args: &Args<'_>) -> Result<Program, OpError> {
    let (x, groups) = (args.tensor("self")?, args.int("groups")?);
    if x.rank() < 3 {
        return Err(OpError::raised(format!(
            "channel_shuffle expects input with > 2 dims, but got input with sizes {:?}",
            x.sizes()
        )));
    }
    if groups <= 0 {
        return Err(OpError::raised(format!(
            "Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )));
    }
    if x.sizes()[1] % groups != 0 {
        return Err(OpError::raised(format!(
            "Number of channels must be divisible by groups. Got {} channels and {groups} groups.",
            x.sizes()[1]
        )));
    }
    let (c, rest) = (x.sizes()[1], numel(&x.sizes()[2..])?);
    shuffled(
        args,
        x.id,
        &x.sizes()[..1],
        &[groups, c / groups, rest],
        &[1, 0, 2],
        &x.sizes()[1..],
    )
}

/// Rearranges the dimensions after the `lead` sizes: splits them into `parts`, permutes these by `order`, and merges
/// them into `merged`.
fn shuffled(
    args: &Args<'_>,
    x: TensorId,
    lead: &[i64],
    parts: &[i64],
    order: &[usize],
    merged: &[i64],
) -> Result<Program, OpError> {
    with(args, |p| {
        let split = p.reshape(x, &[lead, parts].concat())?;
        let order: Vec<usize> = (0..lead.len()).chain(order.iter().map(|o| o + lead.len())).collect();
        let moved = p.permute(split, &order);
        let dense = p.map(&[moved], p.dtype(x), |_, x| x[0])?;
        p.reshape(dense, &[lead, merged].concat())
    })
}

fn meshgrid(args: &Args<'_>) -> Result<Program, OpError> {
    let tensors = args.tensors("tensors")?;
    let swap = match args.opt_str("indexing")?.as_deref() {
        Some("xy") if tensors.len() >= 2 => true,
        Some("xy" | "ij") | None => false,
        Some(other) => {
            return Err(OpError::raised(format!(
                "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {other}"
            )));
        }
    };
    if tensors.iter().any(|t| t.dtype() != tensors[0].dtype()) {
        return Err(OpError::raised("meshgrid expects all tensors to have the same dtype"));
    }
    if tensors.iter().any(|t| t.rank() > 1) {
        return Err(OpError::raised(
            "torch.meshgrid: Expected 0D or 1D tensor in the tensor list",
        ));
    }
    let rank = tensors.len();
    let place = |i: usize| if swap && i < 2 { 1 - i } else { i };
    let mut sizes: Dims = smallvec::smallvec![1; rank];
    for (i, t) in tensors.iter().enumerate() {
        sizes[place(i)] = t.shape.numel();
    }
    let mut p = ProgramBuilder::new(args);
    let outputs: Vec<TensorId> = tensors
        .iter()
        .enumerate()
        .map(|(i, t)| {
            p.view(
                t.id,
                &sizes,
                (0..t.rank()).map(|_| Affine::index(rank, place(i))).collect(),
            )
        })
        .collect();
    p.finish(&outputs)
}

fn broadcast_tensors(args: &Args<'_>) -> Result<Program, OpError> {
    let tensors = args.tensors("tensors")?;
    let mut sizes = Dims::new();
    for t in &tensors {
        sizes = layout::broadcast(&sizes, t.sizes())
            .ok_or_else(|| frazil_runtime::build::broadcast_error(&sizes, t.sizes()))?;
    }
    let mut p = ProgramBuilder::new(args);
    let outputs = tensors
        .iter()
        // A tensor of these sizes is returned itself.
        .map(|t| {
            if t.sizes() == sizes.as_slice() {
                Ok(t.id)
            } else {
                p.expand(t.id, &sizes)
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    p.finish(&outputs)
}

/// Concatenates tensors after extending them to `rank` dimensions as `atleast_nd` does.
fn stacked(args: &Args<'_>, rank: usize, dim: fn(usize) -> i64) -> Result<Program, OpError> {
    let tensors = args.tensors("tensors")?;
    with(args, |p| {
        let mut raised = Vec::new();
        for t in &tensors {
            let sizes = super::views::raised_sizes(t.sizes(), rank);
            raised.push(p.reshape(t.id, &sizes)?);
        }
        let first = raised.first().map_or(0, |&t| p.rank(t));
        concatenated(p, &raised, dim(first))
    })
}

fn column_stack(args: &Args<'_>) -> Result<Program, OpError> {
    let tensors = args.tensors("tensors")?;
    with(args, |p| {
        let mut columns = Vec::new();
        for t in &tensors {
            columns.push(if t.rank() < 2 {
                p.reshape(t.id, &[t.shape.numel(), 1])?
            } else {
                t.id
            });
        }
        concatenated(p, &columns, 1)
    })
}

/// Implements `diag_embed`: matrices with the last dimension on a diagonal, and zeros elsewhere.
fn diag_embed(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let rank = x.rank() + 1;
    let (d1, d2) = (args.dim("dim1", rank)?, args.dim("dim2", rank)?);
    if d1 == d2 || x.rank() == 0 {
        return Err(OpError::raised("diagonal dimensions cannot be identical"));
    }
    let offset = args.int("offset")?;
    let n = x.sizes()[x.rank() - 1].saturating_add(offset.saturating_abs());
    let mut kept = x.sizes()[..x.rank() - 1].iter();
    let sizes: Dims = (0..rank)
        .map(|d| {
            if d == d1 || d == d2 {
                n
            } else {
                kept.next().copied().unwrap_or(1)
            }
        })
        .collect();
    let mut others = (0..rank).filter(|&d| d != d1 && d != d2);
    let mut map: Vec<Affine> = (0..x.rank() - 1)
        .map(|_| Affine::index(rank, others.next().unwrap_or(0)))
        .collect();
    let mut along = Affine::index(rank, d1);
    along.offset = offset.min(0);
    map.push(along);
    let dtype = x.dtype();
    with(args, |p| {
        let body = Formula::build(dtype, |f| {
            let on = (f.index(d1) + f.int(offset, DType::Long)).eq(f.index(d2));
            on.select(f.input(0, dtype), 0.0)
        });
        Ok(p.compute(Structured {
            domain: sizes.clone(),
            iterations: smallvec::smallvec![Iteration::Parallel; rank],
            inputs: smallvec::smallvec![Access {
                tensor: x.id,
                map: map.into(),
                out_of_bounds: OutOfBounds::Value(Number::Int(0))
            }],
            body,
            combine: None,
            accumulate: dtype,
            finish: None,
            finish_inputs: Default::default(),
            output: TensorShape { dtype, sizes },
        }))
    })
}

/// Implements `repeat_interleave` with an integer: every element is repeated along `dim`; without `dim`, in the
/// flattened tensor.
fn repeat_each(args: &Args<'_>) -> Result<Program, OpError> {
    let (x, repeats) = (args.tensor("self")?, args.int("repeats")?);
    if repeats < 0 {
        return Err(OpError::raised("Repeats must be non-negative"));
    }
    let stated = args.opt_int("output_size")?;
    let (mut sizes, dim): (Dims, usize) = match args.opt_int("dim")? {
        // PyTorch looks for the dimension behind it.
        Some(_) if x.rank() == 0 => return Err(OpError::raised("Dimension out of range")),
        Some(dim) => (x.sizes().into(), frazil_runtime::args::wrap_dim(dim, x.rank())?),
        None => (smallvec::smallvec![x.shape.numel()], 0),
    };
    with(args, |p| {
        let from = p.reshape(x.id, &sizes)?;
        // One loop over the elements, another over the times that each is there.
        let mut apart = sizes.clone();
        apart.insert(dim + 1, repeats);
        let map = (0..sizes.len()).map(|d| Affine::index(apart.len(), if d <= dim { d } else { d + 1 }));
        let copy = copied(p, from, &apart, map.collect(), OutOfBounds::Never);
        sizes[dim] = sizes[dim]
            .checked_mul(repeats)
            .ok_or_else(|| OpError::raised("the result is too large"))?;
        if let Some(stated) = stated.filter(|&n| n != sizes[dim]) {
            return Err(OpError::raised(format!(
                "repeat_interleave: Invalid output_size, expected {} but got {stated}",
                sizes[dim]
            )));
        }
        p.reshape(copy, &sizes)
    })
}

/// Implements `repeat_interleave`: each element repeated as often as the corresponding element of a tensor says.
fn repeat_interleave(call: &Call<'_>) -> Result<Results, OpError> {
    let name = call.ctx.name(call.schema.overload);
    if name == "Tensor" {
        let counts = call.tensor(0)?.to_i64_vec();
        let out = interleaved(&counts, call.opt_int(1)?)?;
        let out = Tensor::from_i64(&out, &[out.len() as i64])?;
        return one(out.to_dtype(call.tensor(0)?.dtype())?);
    }
    let mut t = call.tensor(0)?;
    let dim = match call.opt_int(2)? {
        Some(d) => frazil_runtime::args::wrap_dim(d, t.dim())?,
        None => {
            t = t.reshape(&[t.numel()])?;
            0
        }
    };
    let axis = super::indexing::Axis::of(&t, dim);
    let counts = match call.arg(1) {
        frazil_runtime::Value::Tensor(r) if r.get().numel() == 1 => {
            memory::filled(axis.size as usize, r.get().item()?.as_i64())?
        }
        _ => call.tensor(1)?.to_i64_vec(),
    };
    if counts.len() as i64 != axis.size {
        return Err(OpError::raised("repeats must have the same size as input along dim"));
    }
    let chosen = interleaved(&counts, call.opt_int(3)?)?;
    let mut sizes = t.sizes().to_vec();
    match sizes.get_mut(dim) {
        Some(s) => *s = chosen.len() as i64,
        None => sizes.push(chosen.len() as i64),
    }
    let mut positions = memory::with_capacity(numel(&sizes)? as usize)?;
    for o in 0..axis.outer {
        for &k in &chosen {
            let first = (o * axis.size + k) * axis.inner;
            positions.extend(first..first + axis.inner);
        }
    }
    one(t.take(&positions, &sizes)?)
}

/// Returns each index repeated as often as its element of `counts`. The total must be `stated`, if given.
fn interleaved(counts: &[i64], stated: Option<i64>) -> Result<Vec<i64>, OpError> {
    if counts.iter().any(|&c| c < 0) {
        return Err(OpError::raised("repeats can not be negative"));
    }
    let total = counts.iter().try_fold(0i64, |sum, &c| sum.checked_add(c));
    let total = total.ok_or(TensorError::TooManyElements)?;
    if stated.is_some_and(|n| n != total) {
        return Err(OpError::raised("allocated size does not match required size"));
    }
    Tensor::byte_size(DType::Long, &[total])?;
    let mut places = memory::with_capacity(total as usize)?;
    for (i, &count) in (0..).zip(counts) {
        places.extend(std::iter::repeat_n(i, count as usize));
    }
    Ok(places)
}
