//! Padding with constants, reflections, edges, or circularly.

use super::join::concatenated;
use super::movement::{copied, flipped, with};
use frazil_ir::DType;
use frazil_runtime::Scalar;
use frazil_runtime::args::Args;
use frazil_runtime::build::ProgramBuilder;
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::expr::Number;
use frazil_runtime::op::Form::LoopNests;
use frazil_runtime::op::OpError;
use frazil_runtime::structured::{Affine, OutOfBounds, Program, TensorId};

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::pad",
        Entry::program(LoopNests, pad).layout(ResultLayout::ChannelsLast(4)),
    ),
    (
        "aten::constant_pad_nd",
        Entry::program(LoopNests, |a| {
            let x = a.tensor("self")?;
            let (widths, value) = (a.ints("pad")?, a.scalar("value")?);
            with(a, |p| padded(p, x.id, &widths, Mode::Constant(value)))
        })
        .layout(ResultLayout::ChannelsLast(4)),
    ),
    (
        "aten::reflection_pad1d",
        Entry::program(LoopNests, |a| moded(a, Mode::Reflect)),
    ),
    (
        "aten::reflection_pad2d",
        Entry::program(LoopNests, |a| moded(a, Mode::Reflect)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::reflection_pad3d",
        Entry::program(LoopNests, |a| moded(a, Mode::Reflect)),
    ),
    (
        "aten::replication_pad1d",
        Entry::program(LoopNests, |a| moded(a, Mode::Replicate)),
    ),
    (
        "aten::replication_pad2d",
        Entry::program(LoopNests, |a| moded(a, Mode::Replicate)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::replication_pad3d",
        Entry::program(LoopNests, |a| moded(a, Mode::Replicate)),
    ),
];

/// The values of the elements around a padded tensor.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Constant(Scalar),
    Reflect,
    Replicate,
    Circular,
}

fn pad(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let mode = match args.opt_str("mode")?.as_deref() {
        Some("constant") | None => Mode::Constant(args.opt_scalar("value")?.unwrap_or(Scalar::Int(0))),
        Some("reflect") => Mode::Reflect,
        Some("replicate") => Mode::Replicate,
        Some("circular") => Mode::Circular,
        Some(other) => return Err(OpError::raised(format!("Unrecognised padding mode {other}"))),
    };
    let widths = args.ints("pad")?;
    if !widths.len().is_multiple_of(2) {
        return Err(OpError::raised("Padding length must be divisible by 2"));
    }
    if !matches!(mode, Mode::Constant(_)) {
        let (rank, pairs) = (x.rank(), widths.len() / 2);
        if args.has("value") && !matches!(args.opt_scalar("value")?, None | Some(Scalar::Float(0.0))) {
            let name = args.opt_str("mode")?.unwrap_or_default();
            return Err(OpError::raised(format!(
                "Padding mode \"{name}\" doesn't take in value argument"
            )));
        }
        if !(1..=3).contains(&pairs) || (rank != pairs + 1 && rank != pairs + 2) {
            return Err(OpError::raised(format!(
                "Padding size {} is not supported for {rank}D input tensor.\nSupported combinations for non-constant padding:\n  - 2D or 3D input: padding size = 2 (pads last dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)",
                widths.len()
            )));
        }
    }
    with(args, |p| padded(p, x.id, &widths, mode))
}

fn moded(args: &Args<'_>, mode: Mode) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let widths = args.ints("padding")?;
    with(args, |p| padded(p, x.id, &widths, mode))
}

/// Pads a tensor. `widths` are (before, after) pairs of elements, starting with the last dimension; negative widths crop.
fn padded(p: &mut ProgramBuilder, x: TensorId, widths: &[i64], mode: Mode) -> Result<TensorId, OpError> {
    let rank = p.rank(x);
    if !widths.len().is_multiple_of(2) || widths.len() / 2 > rank {
        return Err(OpError::raised(format!(
            "Length of pad should be even and no more than twice the number of dimensions of the input. Pad length is {} while the input has {rank} dimensions.",
            widths.len()
        )));
    }
    if let Mode::Constant(value) = mode {
        let old = p.sizes(x);
        let mut sizes = old.clone();
        let mut map: Vec<Affine> = (0..rank).map(|d| Affine::index(rank, d)).collect();
        for (i, pair) in widths.chunks_exact(2).enumerate() {
            let d = rank - 1 - i;
            let padded = i128::from(old[d]) + i128::from(pair[0]) + i128::from(pair[1]);
            // PyTorch's sum wraps around where it is too large, and is negative too.
            sizes[d] = i64::try_from(padded).ok().filter(|&n| n >= 0).ok_or_else(|| {
                OpError::raised(format!(
                    "The input size {}, plus negative padding {} and {} resulted in a negative output size, which is invalid. Check dimension {d} of your input.",
                    old[d], pair[0], pair[1]
                ))
            })?;
            // Negative padding must not remove more elements than there are.
            let left = i128::from(old[d]) + i128::from(pair[0].min(0));
            if left < 0 || left + i128::from(pair[1].min(0)) < 0 {
                return Err(OpError::raised("narrow(): length must be non-negative."));
            }
            map[d].offset = pair[0].saturating_neg();
        }
        if widths.iter().any(|&w| w > 0) {
            value.checked_to(p.dtype(x))?;
        }
        let number = match p.dtype(x) {
            DType::Bool => Number::Int(i64::from(value.as_bool())),
            dtype if dtype.is_floating_point() || dtype.is_complex() => Number::Float(value.as_f64()),
            _ => Number::Int(value.as_i64()),
        };
        return Ok(copied(p, x, &sizes, map, OutOfBounds::Value(number)));
    }
    let mut t = x;
    for (i, pair) in widths.chunks_exact(2).enumerate() {
        let d = rank - 1 - i;
        let size = p.sizes(t)[d];
        let too_far = match mode {
            Mode::Reflect => pair.iter().any(|&w| w >= size),
            Mode::Circular => pair.iter().any(|&w| w > size),
            _ => size == 0,
        };
        let padded = i128::from(size) + i128::from(pair[0]) + i128::from(pair[1]);
        if padded <= 0 && padded < i128::from(size) {
            return Err(OpError::raised(match mode {
                Mode::Circular => "Negative padding value is resulting in an empty dimension".to_owned(),
                _ => format!("input (W: {size}) is too small. Calculated output W: {padded}"),
            }));
        }
        if too_far && mode == Mode::Circular {
            return Err(OpError::raised("Padding value causes wrapping around more than once."));
        }
        if too_far || i64::try_from(padded).is_err() || pair.contains(&i64::MIN) {
            return Err(OpError::raised(format!(
                "Argument #{}: Padding size should be less than the corresponding input dimension, but got: padding ({}, {}) at dimension {d} of input {:?}",
                2 * i + 4,
                pair[0],
                pair[1],
                p.sizes(t).as_slice()
            )));
        }
        // Cutting off first. Where nothing is left, the edge on the other side reaches into what was cut.
        let cut = (pair[0].min(0).abs(), pair[1].min(0).abs());
        let mut pair = [pair[0], pair[1]];
        let left = size - cut.0 - cut.1;
        if left < 0 && matches!(mode, Mode::Replicate) && size + pair[0] + pair[1] > 0 {
            pair = [
                (pair[0] + size + pair[1].min(0)).max(0),
                (pair[1] + size + pair[0].min(0)).max(0),
            ];
        }
        let uncut = t;
        if cut != (0, 0) {
            t = p.slice(t, d, cut.0.min(size), left.max(0), 1);
        }
        let (full, size) = (size, p.sizes(t)[d]);
        let side = |p: &mut ProgramBuilder, width: i64, before: bool| -> TensorId {
            match (mode, before) {
                (Mode::Reflect, true) => {
                    let s = p.slice(t, d, 1, width, 1);
                    flipped(p, s, &[d])
                }
                (Mode::Reflect, false) => {
                    let s = p.slice(t, d, size - 1 - width, width, 1);
                    flipped(p, s, &[d])
                }
                (Mode::Circular, true) => p.slice(t, d, size - width, width, 1),
                (Mode::Circular, false) => p.slice(t, d, 0, width, 1),
                (_, before) => {
                    // The edge, repeated.
                    let mut sizes = p.sizes(t);
                    sizes[d] = width;
                    let mut map: Vec<Affine> = (0..rank).map(|d| Affine::index(rank, d)).collect();
                    map[d] = Affine::constant(rank, if before { 0 } else { full - 1 });
                    copied(p, uncut, &sizes, map, OutOfBounds::Never)
                }
            }
        };
        let mut parts = Vec::new();
        if pair[0] > 0 {
            parts.push(side(p, pair[0], true));
        }
        parts.push(t);
        if pair[1] > 0 {
            parts.push(side(p, pair[1], false));
        }
        t = if parts.len() == 1 {
            t
        } else {
            concatenated(p, &parts, d as i64)?
        };
    }
    if t == x {
        p.map(&[x], p.dtype(x), |_, x| x[0])
    } else {
        Ok(t)
    }
}
