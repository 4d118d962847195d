//! Interpolation: nearest, linear and cubic, in one to three dimensions, one dimension after the other.
//!
//! Each output coordinate reads a few input coordinates, with weights that depend only on the sizes. Both are computed
//! when the program is built, so an interpolation is a sum of products of gathered elements and constant tables.

use super::resample;
use frazil_ir::DType;
use frazil_runtime::args::{Args, TensorArg};
use frazil_runtime::build::ProgramBuilder;
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::gather::{Coordinate, Gather};
use frazil_runtime::op::Form::LoopNests;
use frazil_runtime::op::OpError;
use frazil_runtime::promote::compute_dtype;
use frazil_runtime::structured::{Affine, Program, TensorId};
use frazil_runtime::sym::{Formula, Sym};

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::upsample_nearest1d",
        Entry::program(LoopNests, |a| resized(a, 1, Kind::Nearest)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::upsample_nearest2d",
        Entry::program(LoopNests, |a| resized(a, 2, Kind::Nearest)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::upsample_nearest3d",
        Entry::program(LoopNests, |a| resized(a, 3, Kind::Nearest)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::_upsample_nearest_exact1d",
        Entry::program(LoopNests, |a| resized(a, 1, Kind::NearestExact)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::_upsample_nearest_exact2d",
        Entry::program(LoopNests, |a| resized(a, 2, Kind::NearestExact)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::_upsample_nearest_exact3d",
        Entry::program(LoopNests, |a| resized(a, 3, Kind::NearestExact)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::upsample_linear1d",
        Entry::program(LoopNests, |a| resized(a, 1, Kind::Linear)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::upsample_bilinear2d",
        Entry::program(LoopNests, bilinear)
            .eager(resample::linear)
            .layout(ResultLayout::ChannelsLast(3)),
    ),
    ("aten::upsample_bilinear2d.vec", Entry::new().eager(resample::linear)),
    (
        "aten::upsample_trilinear3d",
        Entry::program(LoopNests, |a| resized(a, 3, Kind::Linear)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::upsample_bicubic2d",
        Entry::program(LoopNests, bicubic)
            .eager(resample::cubic)
            .layout(ResultLayout::ChannelsLast(3)),
    ),
    ("aten::upsample_bicubic2d.vec", Entry::new().eager(resample::cubic)),
];

/// The input elements from which an output element at coordinate o is interpolated.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// The nearest element, computed as ⌊o · scale⌋.
    Nearest,
    /// The nearest element, computed as ⌊(o + ½) · scale⌋.
    NearestExact,
    /// The two nearest elements.
    Linear,
    /// The four nearest elements, weighted by Keys' kernel with a = -¾.
    Cubic,
}

impl Kind {
    /// Returns the number of input elements, along one dimension, per output element.
    fn taps(self) -> u8 {
        match self {
            Kind::Nearest | Kind::NearestExact => 1,
            Kind::Linear => 2,
            Kind::Cubic => 4,
        }
    }
}

/// The sizes of one spatial dimension before and after interpolation, and the input step per output step.
pub(super) struct Axis {
    pub input: i64,
    pub output: i64,
    pub scale: f64,
    pub align_corners: bool,
}

fn bilinear(args: &Args<'_>) -> Result<Program, OpError> {
    resized(args, 2, Kind::Linear)
}

fn bicubic(args: &Args<'_>) -> Result<Program, OpError> {
    resized(args, 2, Kind::Cubic)
}

/// Returns the last `n` dimensions of a call's first argument, as axes of the interpolation.
pub(super) fn axes_of(args: &Args<'_>, n: usize) -> Result<Vec<Axis>, OpError> {
    let x = args.tensor("input")?;
    check_rank(&x, n)?;
    axes(args, &x, n)
}

fn check_rank(x: &TensorArg, n: usize) -> Result<(), OpError> {
    if x.rank() == n + 2 {
        return Ok(());
    }
    Err(OpError::raised(format!(
        "Expected a tensor of {} dimensions to resize, got sizes {:?}",
        n + 2,
        x.sizes()
    )))
}

pub(super) fn resized(args: &Args<'_>, n: usize, kind: Kind) -> Result<Program, OpError> {
    let x = args.tensor("input")?;
    check_rank(&x, n)?;
    let nearest = matches!(kind, Kind::Nearest | Kind::NearestExact);
    if x.dtype() == DType::Byte && n == 2 && !nearest {
        return Err(OpError::Unsupported(
            "a program that interpolates bytes as PyTorch rounds them".into(),
        ));
    }
    if !(x.dtype().is_floating_point() || x.dtype() == DType::Byte && nearest) {
        let (name, dtype) = (args.ctx().name(args.schema().name), x.dtype().type_name());
        return Err(OpError::raised(format!("\"{name}\" not implemented for '{dtype}'")));
    }
    let mut axes = axes(args, &x, n)?;
    // PyTorch has shortcuts for some sizes, which ignore a given scale.
    let is_nearest_of_images = kind == Kind::Nearest && n == 2;
    if is_nearest_of_images {
        axes.iter_mut()
            .filter(|axis| axis.output == 2 * axis.input)
            .for_each(|axis| axis.scale = 0.5);
    }
    let mut p = ProgramBuilder::new(args);
    let mut t = x.id;
    for (i, axis) in axes.iter().enumerate() {
        let ignores_scale = axis.align_corners || kind == Kind::Linear || is_nearest_of_images;
        let same = axis.input == axis.output && (axis.scale == 1.0 || ignores_scale);
        if !same {
            t = along(&mut p, t, 2 + i, axis, kind, x.dtype())?;
        }
    }
    let out = if t == x.id {
        p.map(&[t], x.dtype(), |_, x| x[0])?
    } else {
        p.cast(t, x.dtype())?
    };
    p.finish(&[out])
}

/// Returns the output sizes and scales: from `output_size`, or from `scale_factors` otherwise. A given scale is used unchanged instead of the ratio of the
/// sizes.
fn axes(args: &Args<'_>, x: &TensorArg, n: usize) -> Result<Vec<Axis>, OpError> {
    let align_corners = args.flag("align_corners")?;
    let factors = match args.get("scale_factors") {
        frazil_runtime::args::Arg::List(items) => Some(
            items
                .iter()
                .filter_map(|a| a.as_scalar())
                .map(|s| s.as_f64())
                .collect::<Vec<_>>(),
        ),
        _ => None,
    };
    let names: &[&str] = match n {
        1 => &["scales"],
        2 => &["scales_h", "scales_w"],
        _ => &["scales_d", "scales_h", "scales_w"],
    };
    let sizes = match args.opt_ints("output_size")? {
        Some(sizes) if sizes.len() == n => sizes,
        Some(sizes) => {
            return Err(OpError::raised(format!(
                "It is expected output_size equals to {n}, but got size {}",
                sizes.len()
            )));
        }
        None => match &factors {
            Some(f) if f.len() == n => (0..n)
                .map(|i| (x.sizes()[2 + i] as f64 * f[i]).floor() as i64)
                .collect(),
            _ => {
                return Err(OpError::raised(
                    "Must specify exactly one of output_size and scale_factors",
                ));
            }
        },
    };
    let mut axes = Vec::new();
    for i in 0..n {
        let (input, output) = (x.sizes()[2 + i], sizes[i]);
        if input <= 0 || output <= 0 {
            let shown = |sizes: &[i64]| -> String {
                let named = ["D", "H", "W"][3 - n..].iter().zip(sizes);
                let named: Vec<String> = named.map(|(name, size)| format!("{name}: {size}")).collect();
                named.join(", ")
            };
            return Err(OpError::raised(format!(
                "Input and output sizes should be greater than 0, but got input ({}){} output ({})",
                shown(&x.sizes()[2..]),
                if n == 1 { " and" } else { "" },
                shown(&sizes)
            )));
        }
        let given = match &factors {
            Some(f) => f.get(i).copied(),
            None => args.opt_float(names[i])?,
        };
        let scale = if align_corners {
            if output > 1 {
                (input - 1) as f64 / (output - 1) as f64
            } else {
                0.0
            }
        } else {
            given
                .filter(|&s| s > 0.0)
                .map_or(input as f64 / output as f64, |s| 1.0 / s)
        };
        axes.push(Axis {
            input,
            output,
            scale,
            align_corners,
        });
    }
    Ok(axes)
}

/// Interpolates along dimension `dim`: sums the input elements that an output element reads, times their weights. Indices and weights depend on the sizes
/// alone, so both are constant tables. Elements that an output does not read (NaN, for example) do not affect it.
fn along(
    p: &mut ProgramBuilder,
    t: TensorId,
    dim: usize,
    axis: &Axis,
    kind: Kind,
    dtype: DType,
) -> Result<TensorId, OpError> {
    let mut output = p.shape(t);
    output.sizes[dim] = axis.output;
    let rank = output.sizes.len();
    let compute = compute_dtype(output.dtype);
    // PyTorch works out positions in the precision that it computes in, and those of the nearest element in single precision.
    let position = if compute == DType::Double && !matches!(kind, Kind::Nearest | Kind::NearestExact) {
        DType::Double
    } else {
        DType::Float
    };
    // Cubic weights are kept in the tensor's dtype, sums and linear weights are not.
    let kept = if kind == Kind::Cubic { dtype } else { compute };
    let mut operands = Vec::new();
    for n in 0..kind.taps() {
        let source = Formula::build(DType::Long, |f| tap(f.index(0), axis, kind, position, n).0);
        let source = p.pointwise_to(&[], &[axis.output], source)?;
        let coordinate = |d: usize| {
            if d == dim {
                p.index_coordinate(source, dim, rank)
            } else {
                Coordinate::Affine(Affine::index(rank, d))
            }
        };
        let coordinates = (0..rank).map(coordinate).collect();
        operands.push(p.gather(Gather {
            tensor: t,
            coordinates,
            from_end: false,
            message: "a place outside of an image".into(),
            output: output.clone(),
        }));
        if kind.taps() > 1 {
            let mut sizes = vec![1; rank];
            sizes[dim] = axis.output;
            let weight = Formula::build(compute, |f| tap(f.index(dim), axis, kind, position, n).1.cast(kept));
            operands.push(p.pointwise_to(&[], &sizes, weight)?);
        }
    }
    match operands.as_slice() {
        &[only] => Ok(only),
        all => p.map(all, compute, |_, x| {
            let products = x.chunks_exact(2).map(|pair| pair[0] * pair[1]);
            products.reduce(|a, b| a + b).unwrap_or(x[0])
        }),
    }
}

/// Returns coordinate number `n` in the input that output coordinate `o` reads, with its weight.
fn tap<'f>(o: Sym<'f>, axis: &Axis, kind: Kind, dtype: DType, n: u8) -> (Sym<'f>, Sym<'f>) {
    let o = o.cast(dtype);
    let int = |v: i64| o.constant(0.0).cast(DType::Long) + v as f64;
    let last = int(axis.input - 1);
    let aligned = o * axis.scale;
    let centred = (o + 0.5) * axis.scale;
    match kind {
        Kind::Nearest | Kind::NearestExact => {
            let place = if kind == Kind::Nearest { aligned } else { centred };
            (place.floor().cast(DType::Long).minimum(last), o.constant(1.0))
        }
        Kind::Linear => {
            let place = if axis.align_corners {
                aligned
            } else {
                (centred - 0.5).maximum(0.0)
            };
            let low = place.floor().cast(DType::Long).minimum(last);
            let lambda = (place - low.cast(dtype)).maximum(0.0).minimum(1.0);
            if n == 0 {
                (low, lambda.constant(1.0) - lambda)
            } else {
                ((low + 1.0).minimum(last), lambda)
            }
        }
        Kind::Cubic => {
            let place = if axis.align_corners { aligned } else { centred - 0.5 };
            let first = place.floor();
            let from = f64::from(n) - 1.0;
            let source = (first.cast(DType::Long) + from).maximum(int(0)).minimum(last);
            let distance = (place - first - from).abs();
            (source, keys(distance, n == 1 || n == 2))
        }
    }
}

/// Keys' cubic kernel with a = -¾ at a distance below 1 (`near`) or between 1 and 2.
fn keys(d: Sym<'_>, near: bool) -> Sym<'_> {
    const A: f64 = -0.75;
    if near {
        (d * (A + 2.0) - (A + 3.0)) * d * d + 1.0
    } else {
        ((d * A - 5.0 * A) * d + 8.0 * A) * d - 4.0 * A
    }
}
