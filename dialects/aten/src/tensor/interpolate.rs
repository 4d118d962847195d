//! Interpolation: nearest, linear and cubic, in one to three dimensions, one dimension after the other.
//!
//! Each output coordinate reads a few input coordinates with weights that only depend on the sizes. These are worked out
//! when the call site is known, so an interpolation is a contraction with a constant table.

use super::ProgramRow;
use frazil_ir::DType;
use frazil_runtime::args::{Args, TensorArg};
use frazil_runtime::build::ProgramBuilder;
use frazil_runtime::op::Form::Composite;
use frazil_runtime::op::OpError;
use frazil_runtime::promote::compute_dtype;
use frazil_runtime::structured::{Access, Affine, Dims, OutOfBounds, Program, TensorId};
use frazil_runtime::sym::{Formula, Sym};

pub(super) const PROGRAMS: &[ProgramRow] = &[
    (Composite, "aten::upsample_nearest1d", |a| resized(a, 1, Kind::Nearest)),
    (Composite, "aten::upsample_nearest2d", |a| resized(a, 2, Kind::Nearest)),
    (Composite, "aten::upsample_nearest3d", |a| resized(a, 3, Kind::Nearest)),
    (Composite, "aten::_upsample_nearest_exact1d", |a| {
        resized(a, 1, Kind::NearestExact)
    }),
    (Composite, "aten::_upsample_nearest_exact2d", |a| {
        resized(a, 2, Kind::NearestExact)
    }),
    (Composite, "aten::_upsample_nearest_exact3d", |a| {
        resized(a, 3, Kind::NearestExact)
    }),
    (Composite, "aten::upsample_linear1d", |a| resized(a, 1, Kind::Linear)),
    (Composite, "aten::upsample_bilinear2d", bilinear),
    (Composite, "aten::upsample_trilinear3d", |a| resized(a, 3, Kind::Linear)),
    (Composite, "aten::upsample_bicubic2d", bicubic),
];

/// Which input elements an output element reads.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// The one at ⌊o · scale⌋.
    Nearest,
    /// The one at ⌊(o + ½) · scale⌋.
    NearestExact,
    /// The two around.
    Linear,
    /// The four around, by Keys' kernel with a = -¾.
    Cubic,
}

/// One dimension's sizes and the input step of an output step.
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

/// The `n` axes of the images that a call's first argument is.
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
    let axes = axes(args, &x, n)?;
    let mut p = ProgramBuilder::new(args);
    let mut t = x.id;
    for (i, axis) in axes.iter().enumerate() {
        let same = axis.input == axis.output && (axis.scale == 1.0 || axis.align_corners);
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

/// The output sizes and scales: from `output_size`, or from `scale_factors` where there is none. A given scale counts as it
/// stands, not as the ratio of the sizes.
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
            return Err(OpError::raised(format!(
                "Input and output sizes should be greater than 0, but got input {:?} output {:?}",
                x.sizes(),
                sizes.as_slice()
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

/// Interpolates dimension `dim`: a product with the table of weights, output by input coordinates.
fn along(
    p: &mut ProgramBuilder,
    t: TensorId,
    dim: usize,
    axis: &Axis,
    kind: Kind,
    dtype: DType,
) -> Result<TensorId, OpError> {
    let shape = p.shape(t);
    let rank = shape.sizes.len();
    let compute = compute_dtype(shape.dtype);
    // PyTorch works out positions in the precision that it computes in.
    let position = if compute == DType::Double {
        DType::Double
    } else {
        DType::Float
    };
    // Cubic weights are kept in the tensor's dtype, sums and linear weights are not.
    let kept = if kind == Kind::Cubic { dtype } else { compute };
    let table = Formula::build(compute, |f| weight(f, axis, kind, position).cast(kept));
    let table = p.pointwise_to(&[], &[axis.output, axis.input], table)?;
    let mut domain: Dims = shape.sizes.clone();
    domain[dim] = axis.output;
    domain.push(axis.input);
    let map = (0..rank)
        .map(|d| Affine::index(rank + 1, if d == dim { rank } else { d }))
        .collect();
    let operands = [
        Access {
            tensor: t,
            map,
            out_of_bounds: OutOfBounds::Never,
        },
        Access {
            tensor: table,
            map: smallvec::smallvec![Affine::index(rank + 1, dim), Affine::index(rank + 1, rank)],
            out_of_bounds: OutOfBounds::Never,
        },
    ];
    Ok(p.contract(&domain, rank, operands, (compute, compute), None))
}

/// The weight of an input coordinate, loop 1, for an output coordinate, loop 0.
fn weight<'f>(f: &'f Formula, axis: &Axis, kind: Kind, dtype: DType) -> Sym<'f> {
    let at = f.index(1);
    let o = f.index(0).cast(dtype);
    let scale = f.float(axis.scale, dtype);
    let int = |v: i64| f.int(v, DType::Long);
    let last = int(axis.input - 1);
    match kind {
        Kind::Nearest | Kind::NearestExact => {
            let place = if kind == Kind::Nearest {
                o * scale
            } else {
                (o + 0.5) * scale
            };
            let source = place.floor().cast(DType::Long).minimum(last);
            at.eq(source).cast(dtype)
        }
        Kind::Linear => {
            let place = if axis.align_corners {
                o * scale
            } else {
                ((o + 0.5) * scale - 0.5).maximum(0.0)
            };
            let low = place.floor().cast(DType::Long).minimum(last);
            let high = (low + int(1)).minimum(last);
            let lambda = (place - low.cast(dtype)).maximum(0.0).minimum(1.0);
            at.eq(low).cast(dtype) * (lambda.constant(1.0) - lambda) + at.eq(high).cast(dtype) * lambda
        }
        Kind::Cubic => {
            let place = if axis.align_corners {
                o * scale
            } else {
                (o + 0.5) * scale - 0.5
            };
            let first = place.floor();
            let x = place - first;
            let first = first.cast(DType::Long);
            let mut sum = f.float(0.0, dtype);
            for k in -1..3i64 {
                let source = (first + int(k)).maximum(int(0)).minimum(last);
                let distance = (x - k as f64).abs();
                sum = sum + at.eq(source).cast(dtype) * keys(distance, k == 0 || k == 1);
            }
            sum
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
