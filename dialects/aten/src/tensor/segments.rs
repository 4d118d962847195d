//! Reductions over segments of a dimension, whose lengths or offsets another tensor contains.

use frazil_ir::DType;
use frazil_runtime::Tensor;
use frazil_runtime::args::wrap_dim;
use frazil_runtime::element::DoubleElement;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::value::Value;

pub(super) const ENTRIES: &[Row] = &[("aten::segment_reduce", Entry::kernel(segment_reduce))];

/// The combiner by which the elements of a segment are reduced.
#[derive(Clone, Copy, PartialEq)]
enum SegmentReduction {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
}

impl SegmentReduction {
    fn named(name: &str) -> Result<SegmentReduction, OpError> {
        Ok(match name {
            "sum" => SegmentReduction::Sum,
            "mean" => SegmentReduction::Mean,
            "max" => SegmentReduction::Max,
            "min" => SegmentReduction::Min,
            "prod" => SegmentReduction::Prod,
            _ => {
                return Err(OpError::raised(format!(
                    "reduce argument must be either sum, prod, mean, amax or amin, got {name}"
                )));
            }
        })
    }

    fn first(self) -> f64 {
        match self {
            SegmentReduction::Sum | SegmentReduction::Mean => 0.0,
            SegmentReduction::Max => f64::NEG_INFINITY,
            SegmentReduction::Min => f64::INFINITY,
            SegmentReduction::Prod => 1.0,
        }
    }

    fn join(self, sum: f64, x: f64) -> f64 {
        match self {
            SegmentReduction::Sum | SegmentReduction::Mean => sum + x,
            SegmentReduction::Prod => sum * x,
            SegmentReduction::Max if x.is_nan() || x > sum => x,
            SegmentReduction::Min if x.is_nan() || x < sum => x,
            SegmentReduction::Max | SegmentReduction::Min => sum,
        }
    }
}

/// Implements `segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial)`.
fn segment_reduce(call: &Call<'_>) -> Result<Results, OpError> {
    let data = call.tensor(0)?;
    let reduction = SegmentReduction::named(call.text(1)?)?;
    if !data.dtype().is_floating_point() {
        return Err(OpError::raised(format!(
            "\"_segment_reduce_cpu\" not implemented for '{}'",
            data.dtype().type_name()
        )));
    }
    let axis = wrap_dim(call.int(5)?, data.dim())?;
    let initial = match call.arg(7) {
        Value::None => None,
        _ => Some(call.float(7)?),
    };
    if !matches!(call.arg(3), Value::None) {
        return Err(OpError::raised(
            "segment_reduce(): indices based reduction is not supported yet.",
        ));
    }
    let by_offsets = call.arg(4).as_tensor();
    let Some(limits) = by_offsets.clone().or_else(|| call.arg(2).as_tensor()) else {
        return Err(OpError::raised(
            "segment_reduce(): Either lengths or offsets must be defined.",
        ));
    };
    if !matches!(limits.dtype(), DType::Int | DType::Long) {
        return Err(OpError::raised("segment_reduce(): lengths and offsets are integers"));
    }
    let rank = limits.dim();
    if rank == 0 || rank > data.dim() || axis + 1 != rank {
        return Err(OpError::raised(
            "segment_reduce(): Expected axis to be the last dimension of lengths or offsets",
        ));
    }
    let size = data.sizes()[axis];
    let segments = segments(&limits, by_offsets.is_some(), size, call.flag(6)?)?;
    let count = segments.first().map_or(0, Vec::len);
    let inner: usize = data.sizes()[axis + 1..].iter().product::<i64>() as usize;
    let mut sizes = data.sizes().to_vec();
    sizes[axis] = count as i64;
    let values = data.to_f64_vec();
    let mut out = Vec::new();
    for (row, segments) in segments.iter().enumerate() {
        let first = row * size as usize * inner;
        for &(start, end) in segments {
            for i in 0..inner {
                let own = (start..end).filter_map(|j| values.get(first + j * inner + i));
                let sum = own.fold(initial.unwrap_or(reduction.first()), |sum, &x| reduction.join(sum, x));
                out.push(match (reduction, end - start) {
                    (SegmentReduction::Mean, 0) if initial.is_none() => f64::NAN,
                    (SegmentReduction::Mean, length) if length > 0 => sum / length as f64,
                    _ => sum,
                });
            }
        }
    }
    one(Tensor::from_elements::<DoubleElement>(&out, &sizes)?.to_dtype(data.dtype())?)
}

/// Returns for each row of `limits` the segments of a dimension of `size` elements.
fn segments(limits: &Tensor, offsets: bool, size: i64, trusted: bool) -> Result<Vec<Vec<(usize, usize)>>, OpError> {
    let width = limits.sizes().last().copied().unwrap_or(0) as usize;
    let rows: i64 = limits.sizes().iter().rev().skip(1).product();
    let values = limits.to_i64_vec();
    let mut all = Vec::new();
    for row in 0..rows as usize {
        let row = values.get(row * width..(row + 1) * width).unwrap_or(&[]);
        let mut at = 0i64;
        let pairs: Vec<(i64, i64)> = if offsets {
            row.windows(2).map(|w| (w[0], w[1])).collect()
        } else {
            let next = |&length: &i64| {
                let start = at;
                // Lengths are checked below; until then they may be anything.
                at = at.saturating_add(length);
                (start, at)
            };
            row.iter().map(next).collect()
        };
        if !offsets && !trusted && (row.iter().any(|&n| n < 0) || at != size) {
            return Err(OpError::raised(
                "segment_reduce(): Expected all rows of lengths along axis to be positive and to sum to data.size(lengths.dim()-1) when !unsafe.",
            ));
        }
        if pairs.iter().any(|&(a, b)| a < 0 || b < a || b > size) {
            return Err(OpError::raised("segment_reduce(): a segment leaves the data"));
        }
        all.push(pairs.iter().map(|&(a, b)| (a as usize, b as usize)).collect());
    }
    Ok(all)
}
