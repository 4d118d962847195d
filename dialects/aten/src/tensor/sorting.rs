//! Sorting and selection along a dimension: kernels over rows.

use super::indexing::Axis;
use frazil_runtime::Tensor;
use frazil_runtime::args::wrap_dim;
use frazil_runtime::call::laid_out_as;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, OpError, Results, one};
use std::cmp::Ordering;

pub(super) const ENTRIES: &[Row] = &[
    ("aten::sort", Entry::kernel(|c| sort(c, 1, 2)).fixed_sizes()),
    ("aten::sort.stable", Entry::kernel(|c| sort(c, 2, 3))),
    ("aten::argsort", Entry::kernel(|c| second(sort(c, 1, 2)?)).fixed_sizes()),
    ("aten::argsort.stable", Entry::kernel(|c| second(sort(c, 2, 3)?))),
    (
        "aten::msort",
        Entry::kernel(|c| sorted_rows(&c.tensor(0)?, 0, false).and_then(|(v, _)| one(v))).fixed_sizes(),
    ),
    ("aten::topk", Entry::kernel(topk).fixed_sizes()),
    (
        "aten::kthvalue",
        Entry::kernel(|c| {
            let k = c.int(1)?;
            by_key!(c.tensor(0)?, K => chosen::<K>(c, 2, |row| kth(row, k)))
        })
        .fixed_sizes(),
    ),
    ("aten::median", Entry::kernel(|c| whole(c, false)).fixed_sizes()),
    (
        "aten::median.dim",
        Entry::kernel(|c| by_key!(c.tensor(0)?, K => chosen::<K>(c, 1, |row| median_of(row, false)))),
    ),
    ("aten::nanmedian", Entry::kernel(|c| whole(c, true)).fixed_sizes()),
    (
        "aten::nanmedian.dim",
        Entry::kernel(|c| by_key!(c.tensor(0)?, K => chosen::<K>(c, 1, |row| median_of(row, true)))),
    ),
    (
        "aten::mode",
        Entry::kernel(|c| by_key!(c.tensor(0)?, K => chosen::<K>(c, 1, mode_of))).fixed_sizes(),
    ),
];

fn second(results: Results) -> Result<Results, OpError> {
    Ok(results.into_iter().skip(1).collect())
}

/// A type in which elements are compared: integers or floats, both without loss.
pub(super) trait Key: Copy + PartialOrd {
    /// Returns the order of two keys, in which NaN is greater than every number.
    fn compare(self, other: Self) -> Ordering;
    /// Returns true if the key is NaN.
    fn missing(self) -> bool;
    /// Returns the elements of `t` as keys, in row-major order.
    fn values(t: &Tensor) -> Vec<Self>;
}

impl Key for f64 {
    fn compare(self, other: f64) -> Ordering {
        let nan = || self.is_nan().cmp(&other.is_nan());
        self.partial_cmp(&other).unwrap_or_else(nan)
    }

    fn missing(self) -> bool {
        self.is_nan()
    }

    fn values(t: &Tensor) -> Vec<f64> {
        t.to_f64_vec()
    }
}

impl Key for i64 {
    fn compare(self, other: i64) -> Ordering {
        self.cmp(&other)
    }

    fn missing(self) -> bool {
        false
    }

    fn values(t: &Tensor) -> Vec<i64> {
        t.to_i64_vec()
    }
}

/// Evaluates `$body` with `$key` as the [`Key`] type of the tensor's elements.
macro_rules! by_key {
    ($t:expr, $key:ident => $body:expr) => {
        if $t.dtype().is_floating_point() {
            type $key = f64;
            $body
        } else {
            type $key = i64;
            $body
        }
    };
}
pub(super) use by_key;

/// Returns an error for tensors whose elements have no order (complex numbers).
fn ordered(t: &Tensor, operator: &str) -> Result<(), OpError> {
    if t.dtype().is_complex() {
        let dtype = t.dtype().type_name();
        return Err(OpError::raised(format!("\"{operator}\" not implemented for '{dtype}'")));
    }
    Ok(())
}

/// Returns the permutation that sorts `row` in ascending order; the sort is stable.
fn order<K: Key>(row: &[K]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[a].compare(row[b]));
    order
}

/// Returns the permutation that sorts `row` in descending order. Equal elements keep their order, so it is not the
/// reverse of [`order`].
fn descending_order<K: Key>(row: &[K]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].compare(row[a]));
    order
}

/// Returns the rows of `t` along `dim`, each with the row-major position of its first element. Consecutive elements of a row are `inner` positions apart.
pub(super) fn rows<K: Key>(t: &Tensor, dim: usize) -> (Axis, Vec<(i64, Vec<K>)>) {
    let axis = Axis::of(t, dim);
    let values = K::values(t);
    let mut rows = Vec::new();
    for o in 0..axis.outer {
        for i in 0..axis.inner {
            let first = o * axis.size * axis.inner + i;
            let at = |k: i64| values.get((first + k * axis.inner) as usize).copied();
            rows.push((first, (0..axis.size).filter_map(at).collect()));
        }
    }
    (axis, rows)
}

/// Returns a tensor like `t` with `length` elements along `dim`, and the indices of these elements along `dim`.
pub(super) fn picked<K: Key>(
    t: &Tensor,
    dim: usize,
    length: i64,
    pick: impl Fn(&[K]) -> Result<Vec<usize>, OpError>,
) -> Result<(Tensor, Tensor), OpError> {
    let (axis, rows) = rows::<K>(t, dim);
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
    ordered(t, "sort")?;
    let length = Axis::of(t, dim).size;
    by_key!(t, K => picked::<K>(t, dim, length, |row| {
        Ok(if descending { descending_order(row) } else { order(row) })
    }))
}

fn sort(call: &Call<'_>, dim: usize, descending: usize) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let dim = wrap_dim(call.int(dim)?, t.dim())?;
    let (values, indices) = sorted_rows(&t, dim, call.flag(descending)?)?;
    Ok(smallvec::smallvec![
        laid_out_as(&values, std::slice::from_ref(&t))?.into(),
        laid_out_as(&indices, &[t])?.into()
    ])
}

fn topk(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    ordered(&t, "topk")?;
    let (k, dim, largest) = (call.int(1)?, wrap_dim(call.int(2)?, t.dim())?, call.flag(3)?);
    if !(0..=Axis::of(&t, dim).size).contains(&k) {
        return Err(OpError::raised("selected index k out of range"));
    }
    // The result for a tensor without dimensions is its element, even if `k` is 0.
    let k = if t.dim() == 0 { 1 } else { k };
    let (values, indices) = by_key!(t, K => picked::<K>(&t, dim, k, |row| {
        Ok(if largest { descending_order(row) } else { order(row) })
    }))?;
    Ok(smallvec::smallvec![values.into(), indices.into()])
}

/// Returns one element of each row along the dimension in argument `at`. The argument after it is `keepdim`.
fn chosen<K: Key>(
    call: &Call<'_>,
    at: usize,
    choose: impl Fn(&[K]) -> Result<usize, OpError>,
) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let (dim, keepdim) = (wrap_dim(call.int(at)?, t.dim())?, call.flag(at + 1)?);
    let (values, indices) = picked::<K>(&t, dim, 1, |row| {
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

fn kth<K: Key>(row: &[K], k: i64) -> Result<usize, OpError> {
    match usize::try_from(k - 1).ok().filter(|&k| k < row.len()) {
        Some(k) => Ok(order(row)[k]),
        None => Err(OpError::raised("selected number k out of range for dimension")),
    }
}

/// Returns the index of the lower median. If there is a NaN, it is the median, unless NaN are ignored.
fn median_of<K: Key>(row: &[K], ignore_nan: bool) -> Result<usize, OpError> {
    let order = order(row);
    let nan = row.iter().filter(|x| x.missing()).count();
    let at = match (nan, ignore_nan) {
        (0, _) => (row.len() - 1) / 2,
        (n, true) if n < row.len() => (row.len() - n - 1) / 2,
        _ => return Ok(row.iter().position(|x| x.missing()).unwrap_or(0)),
    };
    Ok(order[at])
}

fn whole(call: &Call<'_>, ignore_nan: bool) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    ordered(&t, "median")?;
    if t.numel() == 0 {
        return one(Tensor::full(t.dtype(), &[], f64::NAN.into())?);
    }
    let at = by_key!(t, K => median_of(&K::values(&t), ignore_nan))?;
    one(t.take(&[at as i64], &[])?)
}

/// Returns the last index of the most frequent value in `row`. Of several such values, the smallest counts.
fn mode_of<K: Key>(row: &[K]) -> Result<usize, OpError> {
    let order = order(row);
    let (mut best, mut best_count, mut start) = (0, 0, 0);
    for i in 1..=order.len() {
        let ended = order
            .get(i)
            .is_none_or(|&o| row[o].compare(row[order[start]]) != Ordering::Equal);
        if ended {
            if i - start > best_count {
                (best, best_count) = (order[i - 1], i - start);
            }
            start = i;
        }
    }
    Ok(best)
}
