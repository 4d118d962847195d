//! Sorting, selection and scans along a dimension, and unique elements: kernels over rows.

use super::indexing::Axis;
use frazil_ir::DType;
use frazil_runtime::Tensor;
use frazil_runtime::args::wrap_dim;
use frazil_runtime::element::DoubleElement;
use frazil_runtime::op::{Call, KernelFn, OpError, Results, one};
use frazil_runtime::value::Value;
use std::cmp::Ordering;

/// Those whose results have the sizes that their arguments say.
pub(super) const FIXED_SIZES: &[&str] = &[
    "aten::sort",
    "aten::argsort",
    "aten::msort",
    "aten::topk",
    "aten::kthvalue",
    "aten::median",
    "aten::nanmedian",
    "aten::mode",
    "aten::cumsum",
    "aten::cumprod",
    "aten::logcumsumexp",
    "aten::cummax",
    "aten::cummin",
    "aten::searchsorted",
    "aten::bucketize",
    "aten::histc",
    "aten::isin",
];

pub(super) const KERNELS: &[(&str, KernelFn)] = &[
    ("aten::sort", |c| sort(c, 1, 2)),
    ("aten::sort.stable", |c| sort(c, 2, 3)),
    ("aten::argsort", |c| second(sort(c, 1, 2)?)),
    ("aten::argsort.stable", |c| second(sort(c, 2, 3)?)),
    ("aten::msort", |c| {
        sorted_rows(&c.tensor(0)?, 0, false).and_then(|(v, _)| one(v))
    }),
    ("aten::topk", topk),
    ("aten::kthvalue", |c| {
        let k = c.int(1)?;
        chosen(c, 2, move |row| {
            match usize::try_from(k - 1).ok().filter(|&k| k < row.len()) {
                Some(k) => Ok(order(row)[k]),
                None => Err(OpError::raised("selected number k out of range for dimension")),
            }
        })
    }),
    ("aten::median", |c| whole(c, false)),
    ("aten::median.dim", |c| chosen(c, 1, |row| median_of(row, false))),
    ("aten::nanmedian", |c| whole(c, true)),
    ("aten::nanmedian.dim", |c| chosen(c, 1, |row| median_of(row, true))),
    ("aten::mode", |c| chosen(c, 1, mode_of)),
    ("aten::cumsum", |c| scan(c, |row| accumulate(row, |a, b| a + b))),
    ("aten::cumprod", |c| scan(c, |row| accumulate(row, |a, b| a * b))),
    ("aten::logcumsumexp", |c| scan(c, |row| accumulate(row, log_add))),
    ("aten::cummax", |c| running(c, Ordering::Greater)),
    ("aten::cummin", |c| running(c, Ordering::Less)),
    ("aten::searchsorted", searchsorted),
    ("aten::bucketize", bucketize),
    ("aten::_unique2", |c| unique(c, None, c.flag(2)?, c.flag(3)?, true)),
    ("aten::unique_dim", |c| {
        unique(c, c.opt_int(1)?, c.flag(3)?, c.flag(4)?, true)
    }),
    ("aten::unique_consecutive", |c| {
        unique(c, c.opt_int(3)?, c.flag(1)?, c.flag(2)?, false)
    }),
    ("aten::bincount", bincount),
    ("aten::histc", histc),
    ("aten::isin", isin),
];

fn second(results: Results) -> Result<Results, OpError> {
    Ok(results.into_iter().skip(1).collect())
}

/// The order of numbers in sorting: NaN is greater than everything.
fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// The permutation that sorts `row`, stably.
fn order(row: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| compare(row[a], row[b]));
    order
}

/// The rows of `t` along `dim`, each with the row-major position of its first element; elements of a row are `inner` apart.
fn rows(t: &Tensor, dim: usize) -> (Axis, Vec<(i64, Vec<f64>)>) {
    let axis = Axis::of(t, dim);
    let values = t.to_f64_vec();
    let mut rows = Vec::new();
    for o in 0..axis.outer {
        for i in 0..axis.inner {
            let first = o * axis.size * axis.inner + i;
            let at = |k: i64| {
                values
                    .get((first + k * axis.inner) as usize)
                    .copied()
                    .unwrap_or_default()
            };
            rows.push((first, (0..axis.size).map(at).collect()));
        }
    }
    (axis, rows)
}

/// A tensor like `t` with `length` elements along `dim`, and the indices along `dim` that it was taken from. Values stay exact:
/// the numbers are only compared as f64.
fn picked(
    t: &Tensor,
    dim: usize,
    length: i64,
    pick: impl Fn(&[f64]) -> Result<Vec<usize>, OpError>,
) -> Result<(Tensor, Tensor), OpError> {
    let (axis, rows) = rows(t, dim);
    let mut sizes = t.sizes().to_vec();
    if let Some(s) = sizes.get_mut(dim) {
        *s = length;
    }
    let total = (axis.outer * length * axis.inner) as usize;
    let (mut positions, mut indices) = (vec![0i64; total], vec![0i64; total]);
    for (first, row) in &rows {
        let (o, i) = (first / (axis.size * axis.inner).max(1), first % axis.inner.max(1));
        for (k, index) in pick(row)?.into_iter().take(length as usize).enumerate() {
            let at = ((o * length + k as i64) * axis.inner + i) as usize;
            positions[at] = first + index as i64 * axis.inner;
            indices[at] = index as i64;
        }
    }
    Ok((t.take(&positions, &sizes)?, Tensor::from_i64(&indices, &sizes)?))
}

fn sorted_rows(t: &Tensor, dim: usize, descending: bool) -> Result<(Tensor, Tensor), OpError> {
    let length = Axis::of(t, dim).size;
    picked(t, dim, length, |row| {
        let mut o = order(row);
        if descending {
            // Stable among equals, so not merely the reverse.
            o.sort_by(|&a, &b| compare(row[b], row[a]).then(a.cmp(&b)));
        }
        Ok(o)
    })
}

fn sort(call: &Call<'_>, dim: usize, descending: usize) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let dim = wrap_dim(call.int(dim)?, t.dim())?;
    let (values, indices) = sorted_rows(&t, dim, call.flag(descending)?)?;
    Ok(smallvec::smallvec![values.into(), indices.into()])
}

fn topk(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let (k, dim, largest) = (call.int(1)?, wrap_dim(call.int(2)?, t.dim())?, call.flag(3)?);
    if !(0..=Axis::of(&t, dim).size).contains(&k) {
        return Err(OpError::raised("selected index k out of range"));
    }
    let (values, indices) = picked(&t, dim, k, |row| {
        let mut o = order(row);
        if largest {
            o.sort_by(|&a, &b| compare(row[b], row[a]).then(a.cmp(&b)));
        }
        Ok(o)
    })?;
    Ok(smallvec::smallvec![values.into(), indices.into()])
}

/// One element of each row along the dimension of argument `at`; `keepdim` follows it.
fn chosen(call: &Call<'_>, at: usize, choose: impl Fn(&[f64]) -> Result<usize, OpError>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let (dim, keepdim) = (wrap_dim(call.int(at)?, t.dim())?, call.flag(at + 1)?);
    let (values, indices) = picked(&t, dim, 1, |row| {
        if row.is_empty() {
            return Err(OpError::raised("Expected reduction dim to have non-zero size."));
        }
        Ok(vec![choose(row)?])
    })?;
    let mut sizes = values.sizes().to_vec();
    if !keepdim && !sizes.is_empty() {
        sizes.remove(dim);
    }
    Ok(smallvec::smallvec![
        values.reshape(&sizes)?.into(),
        indices.reshape(&sizes)?.into()
    ])
}

/// The lower median; a NaN is the median of what it is in, unless NaN are ignored.
fn median_of(row: &[f64], ignore_nan: bool) -> Result<usize, OpError> {
    let order = order(row);
    let nan = row.iter().filter(|x| x.is_nan()).count();
    let at = match (nan, ignore_nan) {
        (0, _) => (row.len() - 1) / 2,
        (n, true) if n < row.len() => (row.len() - n - 1) / 2,
        _ => return Ok(row.iter().position(|x| x.is_nan()).unwrap_or(0)),
    };
    Ok(order[at])
}

fn whole(call: &Call<'_>, ignore_nan: bool) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let flat = t.to_f64_vec();
    if flat.is_empty() {
        return one(Tensor::full(t.dtype(), &[], f64::NAN.into())?);
    }
    one(t.take(&[median_of(&flat, ignore_nan)? as i64], &[])?)
}

/// The most frequent value, the least of several; the index is its last one.
fn mode_of(row: &[f64]) -> Result<usize, OpError> {
    let order = order(row);
    let (mut best, mut best_count, mut start) = (0, 0, 0);
    for i in 1..=order.len() {
        let ended = order
            .get(i)
            .is_none_or(|&o| compare(row[o], row[order[start]]) != Ordering::Equal);
        if ended {
            if i - start > best_count {
                (best, best_count) = (order[i - 1], i - start);
            }
            start = i;
        }
    }
    Ok(best)
}

fn accumulate(row: &[f64], join: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let mut out: Vec<f64> = Vec::with_capacity(row.len());
    for &x in row {
        out.push(out.last().map_or(x, |&last| join(last, x)));
    }
    out
}

fn log_add(a: f64, b: f64) -> f64 {
    if a == b && a.is_infinite() {
        return a;
    }
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        high + (low - high).exp().ln_1p()
    }
}

/// Each row replaced; integers become Long unless a dtype is asked for.
fn scan(call: &Call<'_>, f: impl Fn(&[f64]) -> Vec<f64>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let dim = wrap_dim(call.int(1)?, t.dim())?;
    let default = if t.dtype().is_floating_point() {
        t.dtype()
    } else {
        DType::Long
    };
    let asked = if call.args.len() > 2 { call.opt_dtype(2)? } else { None };
    let dtype = asked.unwrap_or(default);
    if dtype.is_complex() || t.dtype().is_complex() {
        return Err(OpError::Unsupported("scans of complex numbers".into()));
    }
    let source = t.to_dtype(dtype)?;
    let (axis, rows) = rows(&source, dim);
    let mut out = vec![0.0; source.numel() as usize];
    for (first, row) in &rows {
        for (k, x) in f(row).into_iter().enumerate() {
            out[(first + k as i64 * axis.inner) as usize] = x;
        }
    }
    one(Tensor::from_elements::<DoubleElement>(&out, t.sizes())?.to_dtype(dtype)?)
}

/// The extreme so far and where it stands, the last of equals; NaN stays.
fn running(call: &Call<'_>, wanted: Ordering) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let dim = wrap_dim(call.int(1)?, t.dim())?;
    let (values, indices) = picked(&t, dim, Axis::of(&t, dim).size, |row| {
        let mut best = 0;
        Ok((0..row.len())
            .map(|i| {
                let better = row[i].is_nan()
                    || (!row[best].is_nan()
                        && matches!(row[i].partial_cmp(&row[best]), Some(o) if o == wanted || o == Ordering::Equal));
                if better {
                    best = i;
                }
                best
            })
            .collect())
    })?;
    Ok(smallvec::smallvec![values.into(), indices.into()])
}

/// Where `x` would be put in sorted `row`: before equals, or behind them.
fn insertion(row: &[f64], x: f64, right: bool) -> i64 {
    row.partition_point(|&r| {
        if right {
            compare(r, x) != Ordering::Greater
        } else {
            compare(r, x) == Ordering::Less
        }
    }) as i64
}

fn searchsorted(call: &Call<'_>) -> Result<Results, OpError> {
    let sequence = call.tensor(0)?;
    let values = match call.arg(1) {
        Value::Tensor(t) => t.get(),
        _ => Tensor::scalar(DType::Double, call.scalar(1)?),
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
    let length = sequence.sizes().last().copied().unwrap_or(0).max(0) as usize;
    let (rows, per_row) = (
        sequence.to_f64_vec(),
        values.sizes().last().copied().unwrap_or(1).max(1) as usize,
    );
    let one_row = sequence.dim() <= 1;
    if !one_row && sequence.sizes()[..sequence.dim() - 1] != values.sizes()[..values.dim().max(1) - 1] {
        return Err(OpError::raised(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match",
        ));
    }
    let found: Vec<i64> = values
        .to_f64_vec()
        .iter()
        .enumerate()
        .map(|(i, &x)| {
            let first = if one_row { 0 } else { i / per_row * length };
            insertion(rows.get(first..first + length).unwrap_or(&[]), x, right)
        })
        .collect();
    let dtype = if call.flag(2)? { DType::Int } else { DType::Long };
    one(Tensor::from_i64(&found, values.sizes())?.to_dtype(dtype)?)
}

fn bucketize(call: &Call<'_>) -> Result<Results, OpError> {
    let values = match call.arg(0) {
        Value::Tensor(t) => t.get(),
        _ => Tensor::scalar(DType::Double, call.scalar(0)?),
    };
    let (boundaries, right) = (call.tensor(1)?.to_f64_vec(), call.flag(3)?);
    let found: Vec<i64> = values
        .to_f64_vec()
        .iter()
        .map(|&x| insertion(&boundaries, x, right))
        .collect();
    let dtype = if call.flag(2)? { DType::Int } else { DType::Long };
    one(Tensor::from_i64(&found, values.sizes())?.to_dtype(dtype)?)
}

/// Unique slices along `dim` (elements without one), where each came from, and how many there are.
fn unique(call: &Call<'_>, dim: Option<i64>, inverse: bool, counts: bool, sorted: bool) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let (flat, dim) = match dim {
        Some(d) => (t.clone(), wrap_dim(d, t.dim())?),
        None => (t.reshape(&[t.numel()])?, 0),
    };
    let axis = Axis::of(&flat, dim);
    let values = flat.to_f64_vec();
    let positions = |k: i64| {
        (0..axis.outer)
            .flat_map(move |o| (0..axis.inner).map(move |i| (o, i)))
            .map(move |(o, i)| ((o * axis.size + k) * axis.inner + i) as usize)
    };
    let slices: Vec<Vec<f64>> = (0..axis.size)
        .map(|k| positions(k).map(|p| values[p]).collect())
        .collect();
    let by = |a: &[f64], b: &[f64]| {
        a.iter()
            .zip(b)
            .map(|(x, y)| compare(*x, *y))
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
        let new = n == 0 || slices[order[n - 1]] != slices[i];
        if new {
            kept.push(i as i64);
            number.push(0);
        }
        if let Some(last) = number.last_mut() {
            *last += 1;
        }
        places[i] = kept.len() as i64 - 1;
    }
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

/// True when the call's `dim` is not None.
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
    let values = t.to_i64_vec();
    if t.dim() != 1 || values.iter().any(|&v| !(0..1 << 28).contains(&v)) || min < 0 {
        return Err(OpError::raised(
            "bincount only supports 1-d non-negative integral inputs.",
        ));
    }
    let bins = values.iter().max().map_or(0, |m| m + 1).max(min);
    let weights = call.opt_tensor(1)?;
    let mut out = vec![0.0; bins as usize];
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
    let values = t.to_f64_vec();
    if !(1..1 << 28).contains(&bins) {
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
    let mut out = vec![0.0; bins as usize];
    for x in values.into_iter().filter(|x| (low..=high).contains(x)) {
        let bin = ((x - low) / (high - low) * bins as f64) as i64;
        out[bin.min(bins - 1) as usize] += 1.0;
    }
    one(Tensor::from_elements::<DoubleElement>(&out, &[bins])?.to_dtype(t.dtype())?)
}

fn isin(call: &Call<'_>) -> Result<Results, OpError> {
    let as_tensor = |i: usize| match call.arg(i) {
        Value::Tensor(t) => Ok(t.get()),
        _ => Ok::<_, OpError>(Tensor::scalar(DType::Double, call.scalar(i)?)),
    };
    let (elements, mut set, invert) = (as_tensor(0)?, as_tensor(1)?.to_f64_vec(), call.flag(3)?);
    set.sort_by(|a, b| compare(*a, *b));
    let found = |x: &f64| u8::from((!x.is_nan() && set.binary_search_by(|s| compare(*s, *x)).is_ok()) != invert);
    let out: Vec<u8> = elements.to_f64_vec().iter().map(found).collect();
    one(Tensor::from_elements::<frazil_runtime::element::BoolElement>(
        &out,
        elements.sizes(),
    )?)
}
