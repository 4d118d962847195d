//! Sorted sequences and sets: `searchsorted`, `bucketize`, unique elements, histograms.

use super::indexing::Axis;
use super::sorting::{Key, by_key};
use frazil_ir::DType;
use frazil_runtime::args::wrap_dim;
use frazil_runtime::element::{BoolElement, DoubleElement};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::promote::{ResultType, promote_types};
use frazil_runtime::value::Value;
use frazil_runtime::{Scalar, Tensor, memory};
use std::cmp::Ordering;

pub(super) const ENTRIES: &[Row] = &[
    ("aten::searchsorted", Entry::kernel(searchsorted).fixed_sizes()),
    ("aten::bucketize", Entry::kernel(bucketize).fixed_sizes()),
    (
        "aten::_unique2",
        Entry::kernel(|c| unique(c, None, c.flag(2)?, c.flag(3)?, true)),
    ),
    (
        "aten::unique_dim",
        Entry::kernel(|c| unique(c, c.opt_int(1)?, c.flag(3)?, c.flag(4)?, true)),
    ),
    (
        "aten::unique_consecutive",
        Entry::kernel(|c| unique(c, c.opt_int(3)?, c.flag(1)?, c.flag(2)?, false)),
    ),
    ("aten::bincount", Entry::kernel(bincount)),
    ("aten::histc", Entry::kernel(histc).fixed_sizes()),
    ("aten::isin", Entry::kernel(isin).fixed_sizes()),
];

/// Returns the position at which `x` would be inserted into the sorted `row`: before or after equal elements.
fn insertion<K: Key>(row: &[K], x: K, right: bool) -> i64 {
    // Bisection as PyTorch does it, which shows with NaN and where the row is not sorted.
    let (mut low, mut high) = (0, row.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let stops = if right { row[middle] > x } else { row[middle] >= x };
        if stops {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low as i64
}

/// Returns a zero-dimensional tensor that represents the number exactly.
fn number(s: Scalar) -> Tensor {
    match s {
        Scalar::Float(_) | Scalar::Complex(_) => Tensor::scalar(DType::Double, s),
        Scalar::Int(_) | Scalar::Bool(_) => Tensor::scalar(DType::Long, s),
    }
}

/// Returns a number as a tensor of the dtype that it is converted to for comparison with a sequence: -1 becomes 255 for
/// bytes.
fn number_beside(s: Scalar, sequence: &Tensor) -> Tensor {
    let promoted = ResultType::new().tensor(sequence.dtype(), 1).scalar(s).dtype();
    Tensor::scalar(promoted.unwrap_or(sequence.dtype()), s)
}

fn searchsorted(call: &Call<'_>) -> Result<Results, OpError> {
    let sequence = call.tensor(0)?;
    let values = match call.arg(1) {
        Value::Tensor(t) => t.get(),
        _ => number_beside(call.scalar(1)?, &sequence),
    };
    let right = call.flag(3)? || call.arg(4).as_str() == Some("right");
    let sequence = match call.opt_tensor(5)? {
        Some(sorter) => {
            let length = sequence.sizes().last().copied().unwrap_or(1);
            let positions: Vec<i64> = (0..)
                .zip(sorter.to_i64_vec())
                .map(|(i, s): (i64, i64)| i / length.max(1) * length + s)
                .collect();
            sequence.take(&positions, sequence.sizes())?
        }
        None => sequence,
    };
    let one_row = sequence.dim() <= 1;
    if !one_row && sequence.sizes()[..sequence.dim() - 1] != values.sizes()[..values.dim().max(1) - 1] {
        return Err(OpError::raised(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match",
        ));
    }
    let found = inserted(&sequence, &values, right, one_row);
    let dtype = if call.flag(2)? { DType::Int } else { DType::Long };
    one(Tensor::from_i64(&found, values.sizes())?.to_dtype(dtype)?)
}

/// Returns for each value the position at which it would be inserted into its row of the sorted `sequence`. If there is only one row, all values use it.
fn inserted(sequence: &Tensor, values: &Tensor, right: bool, one_row: bool) -> Vec<i64> {
    fn places<K: Key>(sequence: &Tensor, values: &Tensor, right: bool, one_row: bool) -> Vec<i64> {
        let last = |t: &Tensor| t.sizes().last().copied().unwrap_or(1).max(0) as usize;
        let (length, per_row) = (last(sequence), last(values).max(1));
        let rows = K::values(sequence);
        let place = |(i, &x): (usize, &K)| {
            let first = if one_row { 0 } else { i / per_row * length };
            insertion(rows.get(first..first + length).unwrap_or(&[]), x, right)
        };
        K::values(values).iter().enumerate().map(place).collect()
    }
    if promote_types(sequence.dtype(), values.dtype()).is_floating_point() {
        places::<f64>(sequence, values, right, one_row)
    } else {
        places::<i64>(sequence, values, right, one_row)
    }
}

fn bucketize(call: &Call<'_>) -> Result<Results, OpError> {
    let boundaries = call.tensor(1)?;
    let values = match call.arg(0) {
        Value::Tensor(t) => t.get(),
        _ => number_beside(call.scalar(0)?, &boundaries),
    };
    if boundaries.dim() != 1 {
        let rank = boundaries.dim();
        return Err(OpError::raised(format!(
            "boundaries tensor must be 1 dimension, but got dim({rank})"
        )));
    }
    let found = inserted(&boundaries, &values, call.flag(3)?, true);
    let dtype = if call.flag(2)? { DType::Int } else { DType::Long };
    one(Tensor::from_i64(&found, values.sizes())?.to_dtype(dtype)?)
}

/// The distinct slices of a tensor along a dimension.
struct Slices {
    /// For each distinct slice, the index of its first occurrence, in order.
    kept: Vec<i64>,
    /// For each distinct slice, the number of its occurrences.
    number: Vec<i64>,
    /// For each slice of the tensor, the index of its distinct slice.
    places: Vec<i64>,
}

impl Slices {
    fn of<K: Key>(flat: &Tensor, axis: &Axis, sorted: bool) -> Slices {
        let values = K::values(flat);
        let positions = |k: i64| {
            (0..axis.outer)
                .flat_map(move |o| (0..axis.inner).map(move |i| (o, i)))
                .map(move |(o, i)| ((o * axis.size + k) * axis.inner + i) as usize)
        };
        let slices: Vec<Vec<K>> = (0..axis.size)
            .map(|k| positions(k).filter_map(|p| values.get(p).copied()).collect())
            .collect();
        let by = |a: &[K], b: &[K]| {
            let pairs = a.iter().zip(b).map(|(x, y)| x.compare(*y));
            pairs
                .into_iter()
                .find(|o| *o != Ordering::Equal)
                .unwrap_or(Ordering::Equal)
        };
        let mut order: Vec<usize> = (0..slices.len()).collect();
        if sorted {
            order.sort_by(|&a, &b| by(&slices[a], &slices[b]));
        }
        let (mut kept, mut number): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
        let mut places = vec![0i64; slices.len()];
        for (n, &i) in order.iter().enumerate() {
            // NaN differs from itself: each is a kind of its own.
            if n == 0 || slices[order[n - 1]] != slices[i] {
                kept.push(i as i64);
                number.push(0);
            }
            if let Some(last) = number.last_mut() {
                *last += 1;
            }
            places[i] = kept.len() as i64 - 1;
        }
        Slices { kept, number, places }
    }
}

/// Implements `unique`: the distinct slices along `dim` (or elements), with inverse indices and counts.
fn unique(call: &Call<'_>, dim: Option<i64>, inverse: bool, counts: bool, sorted: bool) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let (flat, dim) = match dim {
        Some(d) => (t.clone(), wrap_dim(d, t.dim())?),
        None => (t.reshape(&[t.numel()])?, 0),
    };
    let axis = Axis::of(&flat, dim);
    let slices = by_key!(flat, K => Slices::of::<K>(&flat, &axis, sorted));
    let Slices { kept, number, places } = slices;
    let mut sizes = flat.sizes().to_vec();
    if let Some(s) = sizes.get_mut(dim) {
        *s = kept.len() as i64;
    }
    let mut taken = Vec::new();
    for o in 0..axis.outer {
        for &k in &kept {
            let first = (o * axis.size + k) * axis.inner;
            taken.extend(first..first + axis.inner);
        }
    }
    let out = flat.take(&taken, &sizes)?;
    let empty = || Tensor::from_i64(&[], &[0]);
    let inverse_sizes = if call.schema.arguments.iter().any(|a| call.ctx.name(a.name) == "dim") && dim_given(call) {
        vec![places.len() as i64]
    } else {
        t.sizes().to_vec()
    };
    let inverse = if inverse {
        Tensor::from_i64(&places, &inverse_sizes)?
    } else {
        empty()?
    };
    let counts = if counts {
        Tensor::from_i64(&number, &[number.len() as i64])?
    } else {
        empty()?
    };
    Ok(smallvec::smallvec![out.into(), inverse.into(), counts.into()])
}

/// Returns true if the argument `dim` is not None.
fn dim_given(call: &Call<'_>) -> bool {
    let at = call
        .schema
        .arguments
        .iter()
        .position(|a| call.ctx.name(a.name) == "dim");
    at.is_some_and(|i| !matches!(call.arg(i), Value::None))
}

fn bincount(call: &Call<'_>) -> Result<Results, OpError> {
    let (t, min) = (call.tensor(0)?, call.int(2)?);
    if min < 0 {
        return Err(OpError::raised("minlength should be >= 0"));
    }
    let values = t.to_i64_vec();
    if t.dim() != 1 || values.iter().any(|&v| v < 0) {
        return Err(OpError::raised(
            "bincount only supports 1-d non-negative integral inputs.",
        ));
    }
    let largest = values.iter().max().copied().unwrap_or(-1);
    let bins = largest.checked_add(1).map(|n| n.max(min)).ok_or_else(|| {
        OpError::raised(format!(
            "maximum value of input overflowed, it should be < {} but got {largest}",
            i64::MAX
        ))
    })?;
    let weights = call.opt_tensor(1)?;
    if weights.as_ref().is_some_and(|w| w.dim() != 1 || w.numel() != t.numel()) && t.numel() > 0 {
        return Err(OpError::raised(
            "weights should be 1-d and have the same length as input",
        ));
    }
    Tensor::byte_size(DType::Double, &[bins])?;
    let mut out = memory::zeros::<f64>(bins as usize)?;
    let scale = weights.as_ref().map(Tensor::to_f64_vec);
    for (i, &v) in values.iter().enumerate() {
        out[v as usize] += scale.as_ref().map_or(1.0, |w| w.get(i).copied().unwrap_or_default());
    }
    let dtype = weights.map_or(DType::Long, |w| {
        if w.dtype() == DType::Float {
            DType::Float
        } else {
            DType::Double
        }
    });
    one(Tensor::from_elements::<DoubleElement>(&out, &[bins])?.to_dtype(dtype)?)
}

fn histc(call: &Call<'_>) -> Result<Results, OpError> {
    let (t, bins) = (call.tensor(0)?, call.int(1)?);
    let (mut low, mut high) = (call.float(2)?, call.float(3)?);
    if !t.dtype().is_floating_point() {
        return Err(OpError::raised(format!(
            "\"histogram_cpu\" not implemented for '{}'",
            t.dtype().type_name()
        )));
    }
    let values = t.to_f64_vec();
    if bins < 1 {
        return Err(OpError::raised("torch.histc(): bins must be > 0"));
    }
    if low == high && !values.is_empty() {
        low = values.iter().copied().fold(f64::INFINITY, f64::min);
        high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    }
    if low == high {
        (low, high) = (low - 1.0, high + 1.0);
    }
    if low > high || !low.is_finite() || !high.is_finite() {
        return Err(OpError::raised("torch.histc: max must be larger than min"));
    }
    for bound in [call.scalar(2)?, call.scalar(3)?] {
        bound.checked_to(t.dtype())?;
    }
    Tensor::byte_size(DType::Double, &[bins])?;
    let mut out = memory::zeros::<f64>(bins as usize)?;
    // In the tensor's own dtype, each operation rounded: which bin a number on a border falls into depends on it.
    let rounded = |x: f64| Scalar::Float(x).rounded_to(t.dtype()).as_f64();
    let single = |x: f64| match t.dtype() {
        DType::Float => f64::from(x as f32),
        _ => rounded(x),
    };
    let (low, high) = (single(low), single(high));
    let width = single(high - low);
    for x in values.into_iter().filter(|x| (low..=high).contains(x)) {
        let bin = single(single(single(x - low) * bins as f64) / width) as i64;
        out[bin.min(bins - 1) as usize] += 1.0;
    }
    one(Tensor::from_elements::<DoubleElement>(&out, &[bins])?.to_dtype(t.dtype())?)
}

fn isin(call: &Call<'_>) -> Result<Results, OpError> {
    let as_tensor = |i: usize| match call.arg(i) {
        Value::Tensor(t) => Ok(t.get()),
        _ => Ok::<_, OpError>(number(call.scalar(i)?)),
    };
    let (mut elements, mut set, invert) = (as_tensor(0)?, as_tensor(1)?, call.flag(3)?);
    // A scalar integer is converted to the integer dtype of the other operand, and wraps around if it does not fit.
    let whole = |t: &Tensor| !(t.dtype().is_floating_point() || t.dtype().is_complex());
    if whole(&elements) && whole(&set) {
        match (call.arg(0), call.arg(1)) {
            (Value::Tensor(_), Value::Tensor(_)) => {}
            (Value::Tensor(_), _) => set = set.to_dtype(elements.dtype())?,
            _ => elements = elements.to_dtype(set.dtype())?,
        }
    }
    fn found<K: Key>(elements: &Tensor, set: &Tensor, invert: bool) -> Vec<u8> {
        let mut set = K::values(set);
        set.sort_by(|a, b| a.compare(*b));
        let is_in = |x: &K| !x.missing() && set.binary_search_by(|s| s.compare(*x)).is_ok();
        K::values(elements)
            .iter()
            .map(|x| u8::from(is_in(x) != invert))
            .collect()
    }
    let out = if promote_types(elements.dtype(), set.dtype()).is_floating_point() {
        found::<f64>(&elements, &set, invert)
    } else {
        found::<i64>(&elements, &set, invert)
    };
    one(Tensor::from_elements::<BoolElement>(&out, elements.sizes())?)
}
