//! Pooling over windows, in one, two and three dimensions.

use frazil_ir::DType;
use frazil_ir::schema::AliasUse;
use frazil_runtime::Scalar;
use frazil_runtime::args::{Args, TensorArg};
use frazil_runtime::build::{ProgramBuilder, step_of};
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::expr::{BinaryOp, Expr, Number};
use frazil_runtime::op::Form::Reduction;
use frazil_runtime::op::OpError;
use frazil_runtime::promote::compute_dtype;
use frazil_runtime::structured::{
    Access, Affine, Combine, Dims, Iteration, OutOfBounds, Program, Structured, TensorId, TensorShape,
};
use frazil_runtime::sym::{Formula, Sym};

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::max_pool1d",
        Entry::program(Reduction, |a| max_pool(a, 1))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::max_pool2d",
        Entry::program(Reduction, |a| max_pool(a, 2))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::max_pool3d",
        Entry::program(Reduction, |a| max_pool(a, 3))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::max_pool1d_with_indices",
        Entry::program(Reduction, |a| max_pool_with_indices(a, 1)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::max_pool2d_with_indices",
        Entry::program(Reduction, |a| max_pool_with_indices(a, 2)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::max_pool3d_with_indices",
        Entry::program(Reduction, |a| max_pool_with_indices(a, 3)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::avg_pool1d",
        Entry::program(Reduction, |a| avg_pool(a, 1))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::avg_pool2d",
        Entry::program(Reduction, |a| avg_pool(a, 2))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::avg_pool3d",
        Entry::program(Reduction, |a| avg_pool(a, 3))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::adaptive_avg_pool1d",
        Entry::program(Reduction, |a| adaptive_avg_pool(a, 1))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank(),
    ),
    (
        "aten::adaptive_avg_pool2d",
        Entry::program(Reduction, |a| adaptive_avg_pool(a, 2))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank()
            .aliases(&[("aten::_adaptive_avg_pool2d", AliasUse::Semantics)]),
    ),
    (
        "aten::adaptive_avg_pool3d",
        Entry::program(Reduction, |a| adaptive_avg_pool(a, 3))
            .layout(ResultLayout::ChannelsLast(3))
            .preserves_rank()
            .aliases(&[("aten::_adaptive_avg_pool3d", AliasUse::Semantics)]),
    ),
];

/// The windows of a pooling: sizes, strides, padding and dilation, with one entry per spatial dimension.
struct Windows {
    kernel: Dims,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    output: Dims,
    /// The positions in windows that are read. At all other positions, no window overlaps the image.
    taps: Taps,
}

/// A range of positions in a window, for each spatial dimension.
struct Taps {
    first: Dims,
    count: Dims,
}

impl Windows {
    /// Returns the windows for the arguments of a pooling operator. An empty stride means the kernel's size.
    fn of(args: &Args<'_>, x: &TensorArg, n: usize) -> Result<Windows, OpError> {
        let kernel = args.int_array("kernel_size", n)?;
        let stride = match args.opt_ints("stride")? {
            Some(s) if !s.is_empty() => args.int_array("stride", n)?,
            _ => kernel.clone(),
        };
        let padding = args.int_array("padding", n)?;
        let dilation = if args.has("dilation") {
            args.int_array("dilation", n)?
        } else {
            smallvec::smallvec![1; n]
        };
        let ceil = args.flag("ceil_mode")?;
        let rank = x.rank();
        if rank != n + 1 && rank != n + 2 {
            return Err(OpError::raised(format!(
                "Expected {}D or {}D input, but got sizes {:?}",
                n + 1,
                n + 2,
                x.sizes()
            )));
        }
        let (mut output, mut first, mut count) = (Dims::new(), Dims::new(), Dims::new());
        for i in 0..n {
            let (k, s, p, d) = (kernel[i], stride[i], padding[i], dilation[i]);
            if k <= 0 || s <= 0 || d <= 0 || p < 0 {
                return Err(OpError::raised(
                    "kernel size, stride and dilation should be greater than zero, padding non-negative",
                ));
            }
            // Numbers that overflow leave no room for a window either.
            let reach = (k - 1).checked_mul(d).filter(|&r| r < i64::MAX / 4 && s < i64::MAX / 4);
            let Some(reach) = reach else {
                return Err(OpError::raised(format!(
                    "Given input size {:?}: calculated output size is too small",
                    x.sizes()
                )));
            };
            if p > (reach + 1) / 2 {
                return Err(OpError::raised(format!(
                    "pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
                )));
            }
            let size = x.sizes()[rank - n + i];
            let [k, s, p, d, reach, end] = [k, s, p, d, reach, size].map(i128::from);
            let span = end + 2 * p - reach - 1 + if ceil { s - 1 } else { 0 };
            let mut out = span.div_euclid(s) + 1;
            // The last window has to start inside of the input or its left padding.
            if ceil && (out - 1) * s >= end + p {
                out -= 1;
            }
            let Some(out) = i64::try_from(out).ok().filter(|&n| n >= 1) else {
                return Err(OpError::raised(format!(
                    "Given input size {:?}: calculated output size is too small",
                    x.sizes()
                )));
            };
            // From the first place that is not before the image in the last window to the last one that is not behind it in the first;
            // of a window that has nothing in common with the image the first place behind its start counts too.
            let last_start = i128::from(out - 1) * s - p;
            let low = ((-last_start).max(0) + d - 1).div_euclid(d).min(k - 1);
            let high = (end - 1 + p).div_euclid(d).max((p + d - 1).div_euclid(d)).min(k - 1);
            first.push(low as i64);
            count.push((high - low + 1).max(1) as i64);
            output.push(out);
        }
        Ok(Windows {
            taps: Taps { first, count },
            kernel,
            stride,
            padding,
            dilation,
            output,
        })
    }

    /// Returns true if every window is completely inside of the input.
    fn inside(&self, x: &TensorArg) -> bool {
        let n = self.kernel.len();
        (0..n).all(|i| {
            let size = x.sizes()[x.rank() - n + i];
            let [out, s, d, k] = [self.output[i], self.stride[i], self.dilation[i], self.kernel[i]].map(i128::from);
            self.padding[i] == 0 && (out - 1) * s + d * (k - 1) < i128::from(size)
        })
    }

    /// Returns the coordinate, along spatial dimension `i`, of the first position that is read in the first window.
    fn start(&self, i: usize) -> i64 {
        self.dilation[i] * self.taps.first[i] - self.padding[i]
    }

    /// Returns the loops over outputs, then windows; the outputs' sizes; and the access to `x`.
    fn domain(&self, x: &TensorArg, outside: Number) -> (Dims, Dims, Access) {
        let n = self.kernel.len();
        let lead = x.rank() - n;
        let loops = x.rank() + n;
        let mut domain: Dims = x.sizes()[..lead].into();
        domain.extend_from_slice(&self.output);
        let sizes = domain.clone();
        domain.extend_from_slice(&self.taps.count);
        let map = (0..x.rank()).map(|d| match d.checked_sub(lead) {
            None => Affine::index(loops, d),
            Some(i) => {
                let mut a = Affine::constant(loops, self.start(i));
                a.coefficients[d] = step_of(self.stride[i], self.output[i]);
                a.coefficients[x.rank() + i] = step_of(self.dilation[i], self.taps.count[i]);
                a
            }
        });
        let out_of_bounds = if self.inside(x) {
            OutOfBounds::Never
        } else {
            OutOfBounds::Value(outside)
        };
        let access = Access {
            tensor: x.id,
            map: map.collect(),
            out_of_bounds,
        };
        (domain, sizes, access)
    }

    /// Returns the reduction of each window of `x` to one element.
    fn fold(
        &self,
        p: &mut ProgramBuilder,
        x: &TensorArg,
        combine: Combine,
        outside: Number,
        finish: Option<Expr>,
    ) -> TensorId {
        let (domain, sizes, access) = self.domain(x, outside);
        let accumulate = compute_dtype(x.dtype());
        let mut iterations = smallvec::smallvec![Iteration::Parallel; x.rank()];
        iterations.resize(domain.len(), Iteration::Reduction);
        p.compute(Structured {
            domain,
            iterations,
            inputs: smallvec::smallvec![access],
            body: Formula::build(accumulate, |f| f.input(0, x.dtype())),
            combine: Some(combine),
            accumulate,
            finish,
            finish_inputs: Default::default(),
            output: TensorShape {
                dtype: x.dtype(),
                sizes,
            },
        })
    }
}

/// Returns the smallest value of the dtype, the neutral element of a maximum.
fn least(dtype: DType) -> Number {
    match dtype {
        d if d.is_floating_point() => Number::Float(f64::NEG_INFINITY),
        DType::Byte | DType::Bool => Number::Int(0),
        d => Number::Int(i64::MIN >> (64 - 8 * d.size())),
    }
}

/// Offset added to indices of elements outside of the image. It exceeds all indices inside.
const BEYOND: i64 = 1 << 48;

/// Returns the maxima and their row-major indices in the image: the first of equal values, the last of several NaN. A window outside the image has the index of
/// its first position that is not before the image, as in PyTorch.
fn max_pool_with_indices(args: &Args<'_>, n: usize) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let windows = Windows::of(args, &x, n)?;
    let mut p = ProgramBuilder::new(args);
    let best = windows.fold(&mut p, &x, Combine::Max, least(x.dtype()), None);
    let (domain, sizes, access) = windows.domain(&x, least(x.dtype()));
    let (rank, loops) = (x.rank(), domain.len());
    let own = p.broadcast_access(best, rank, loops);
    let body = Formula::build(DType::Long, |f| {
        let int = |v: i64| f.int(v, DType::Long);
        let (mut place, mut inside) = (int(0), int(0).eq(int(0)));
        let mut after = inside;
        for i in 0..n {
            let size = int(x.sizes()[rank - n + i]);
            let at = f.index(rank - n + i) * int(windows.stride[i])
                + int(windows.start(i))
                + f.index(rank + i) * int(windows.dilation[i]);
            after = after.and(at.ge(int(0)));
            inside = inside.and(at.lt(size));
            place = place * size + at;
        }
        let (value, best) = (f.input(0, x.dtype()), f.input(1, x.dtype()));
        let first = value.eq(best).select(place, int(i64::MAX));
        // The least negative place is the last one.
        let last = value.is_nan().select(-place, int(i64::MAX));
        let beyond = after.select(place + int(BEYOND), int(i64::MAX));
        after.and(inside).select(best.is_nan().select(last, first), beyond)
    });
    let finish = Formula::build(DType::Long, |f| {
        let found = f.input(0, DType::Long).abs();
        let beyond = f.int(BEYOND, DType::Long);
        found.ge(beyond).select(found - beyond, found)
    });
    let mut iterations = smallvec::smallvec![Iteration::Parallel; rank];
    iterations.resize(loops, Iteration::Reduction);
    let indices = p.compute(Structured {
        domain,
        iterations,
        inputs: smallvec::smallvec![access, own],
        body,
        combine: Some(Combine::Min),
        accumulate: DType::Long,
        finish: Some(finish),
        finish_inputs: Default::default(),
        output: TensorShape {
            dtype: DType::Long,
            sizes,
        },
    });
    p.finish(&[best, indices])
}

fn max_pool(args: &Args<'_>, n: usize) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let windows = Windows::of(args, &x, n)?;
    let least = least(x.dtype());
    let mut p = ProgramBuilder::new(args);
    let out = windows.fold(&mut p, &x, Combine::Max, least, None);
    p.finish(&[out])
}

fn avg_pool(args: &Args<'_>, n: usize) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let windows = Windows::of(args, &x, n)?;
    let accumulate = compute_dtype(x.dtype());
    let whole: i64 = windows.kernel.iter().fold(1, |n: i64, &k| n.saturating_mul(k));
    let divisor = if args.has("divisor_override") {
        args.opt_int("divisor_override")?
    } else {
        None
    };
    if divisor == Some(0) {
        return Err(OpError::raised("divisor must be not zero"));
    }
    let finish = match divisor {
        Some(d) => Formula::build(x.dtype(), |f| quotient(f.input(0, accumulate), f.int(d, accumulate))),
        None if windows.inside(&x) => Formula::build(x.dtype(), |f| {
            quotient(f.input(0, accumulate), f.int(whole, accumulate))
        }),
        None => {
            let include_pad = args.flag("count_include_pad")?;
            Formula::build(x.dtype(), |f| {
                let count = elements(f, &windows, &x, include_pad).cast(accumulate);
                quotient(f.input(0, accumulate), count)
            })
        }
    };
    let mut p = ProgramBuilder::new(args);
    let out = windows.fold(&mut p, &x, Combine::Add, Number::Float(0.0), Some(finish));
    p.finish(&[out])
}

/// Returns `sum / count`; integers are truncated.
fn quotient<'f>(sum: Sym<'f>, count: Sym<'f>) -> Sym<'f> {
    if sum.dtype().is_floating_point() {
        sum / count
    } else {
        sum.binary(BinaryOp::DivTrunc, count)
    }
}

/// Returns the number of elements of the window at an output position, with padding (up to the end of the padded input) or without.
fn elements<'f>(f: &'f Formula, w: &Windows, x: &TensorArg, include_pad: bool) -> Sym<'f> {
    let n = w.kernel.len();
    let lead = x.rank() - n;
    let int = |v: i64| f.int(v, DType::Long);
    let mut count = int(1);
    for i in 0..n {
        let size = x.sizes()[lead + i];
        let start = f.index(lead + i) * int(w.stride[i]) - int(w.padding[i]);
        let end = (start + int(w.kernel[i])).minimum(int(size + w.padding[i]));
        let length = if include_pad {
            end - start
        } else {
            end.minimum(int(size)) - start.maximum(int(0))
        };
        count = count * length;
    }
    count
}

/// Implements adaptive average pooling: means over the windows from ⌊o·size/out⌋ to ⌈(o+1)·size/out⌉.
fn adaptive_avg_pool(args: &Args<'_>, n: usize) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let output = args.int_array("output_size", n)?;
    // The mean of everything is of any rank in PyTorch.
    let whole = n > 1 && x.rank() >= n && output.iter().all(|&o| o == 1);
    if !whole && x.rank() != n + 1 && x.rank() != n + 2 {
        return Err(OpError::raised(format!(
            "Expected {}D or {}D tensor, but got sizes {:?}",
            n + 1,
            n + 2,
            x.sizes()
        )));
    }
    let lead = x.rank() - n;
    let input: Dims = x.sizes()[lead..].into();
    let accumulate = compute_dtype(x.dtype());
    let mut p = ProgramBuilder::new(args);
    let one = output.iter().all(|&o| o == 1);
    let has_mean = x.dtype().is_floating_point() || (one && x.dtype().is_complex());
    if !has_mean {
        let sizes: Vec<i64> = x.sizes()[..lead].iter().chain(&output).copied().collect();
        if one || !sizes.contains(&0) || output.iter().any(|&o| o < 0) {
            let name = x.dtype().type_name();
            return Err(OpError::raised(format!(
                "\"adaptive_avg_pool\" not implemented for '{name}'"
            )));
        }
        let out = p.fill(x.dtype(), &sizes, Scalar::Int(0))?;
        return p.finish(&[out]);
    }
    let empty = output.contains(&0) || input.contains(&0);
    if !empty && (0..n).all(|i| output[i] > 0 && input[i] % output[i] == 0) {
        let kernel: Dims = (0..n).map(|i| input[i] / output[i]).collect();
        let whole: i64 = kernel.iter().product();
        let taps = Taps {
            first: smallvec::smallvec![0; n],
            count: kernel.clone(),
        };
        let windows = Windows {
            stride: kernel.clone(),
            kernel,
            padding: smallvec::smallvec![0; n],
            dilation: smallvec::smallvec![1; n],
            output,
            taps,
        };
        let finish = Formula::build(x.dtype(), |f| f.input(0, accumulate) / whole as f64);
        let out = windows.fold(&mut p, &x, Combine::Add, Number::Float(0.0), Some(finish));
        return p.finish(&[out]);
    }
    if output.iter().any(|&o| o < 0) {
        return Err(OpError::raised(
            "elements of output_size must be greater than or equal to 0",
        ));
    }
    // Windows of unequal sizes: dimension by dimension, a choice among the whole row by its coordinate.
    let mut current = x.id;
    for i in 0..n {
        current = uneven_means(&mut p, current, lead + i, output[i], accumulate)?;
    }
    let out = p.cast(current, x.dtype())?;
    p.finish(&[out])
}

/// Computes means over windows along one dimension, whose lengths may differ.
fn uneven_means(
    p: &mut ProgramBuilder,
    x: TensorId,
    dim: usize,
    out: i64,
    accumulate: DType,
) -> Result<TensorId, OpError> {
    let shape = p.shape(x);
    let rank = shape.sizes.len();
    let size = shape.sizes[dim];
    let mut sizes = shape.sizes.clone();
    sizes[dim] = out;
    let mut domain = sizes.clone();
    domain.push(size);
    let map = (0..rank)
        .map(|d| Affine::index(rank + 1, if d == dim { rank } else { d }))
        .collect();
    let body = Formula::build(accumulate, |f| {
        let (start, end) = window(f, dim, size, out);
        let at = f.index(rank);
        let value = f.input(0, shape.dtype).cast(accumulate);
        at.ge(start).and(at.lt(end)).select(value, 0.0)
    });
    let finish = Formula::build(accumulate, |f| {
        let (start, end) = window(f, dim, size, out);
        f.input(0, accumulate) / (end - start).cast(accumulate)
    });
    let mut iterations = smallvec::smallvec![Iteration::Parallel; rank];
    iterations.push(Iteration::Reduction);
    Ok(p.compute(Structured {
        domain,
        iterations,
        inputs: smallvec::smallvec![Access {
            tensor: x,
            map,
            out_of_bounds: OutOfBounds::Never
        }],
        body,
        combine: Some(Combine::Add),
        accumulate,
        finish: Some(finish),
        finish_inputs: Default::default(),
        output: TensorShape {
            dtype: accumulate,
            sizes,
        },
    }))
}

/// Returns start and end of the window for the output coordinate along loop `dim`.
fn window<'f>(f: &'f Formula, dim: usize, size: i64, out: i64) -> (Sym<'f>, Sym<'f>) {
    let int = |v: i64| f.int(v, DType::Long);
    let o = f.index(dim);
    let start = (o * int(size)).binary(BinaryOp::DivFloor, int(out));
    let end = ((o + int(1)) * int(size) + int(out - 1)).binary(BinaryOp::DivFloor, int(out));
    (start, end)
}
