//! Scans along a dimension: cumulative sums, products and extrema.

use super::indexing::Axis;
use super::sorting::{Key, by_key, picked};
use frazil_ir::DType;
use frazil_ir::schema::AliasUse;
use frazil_runtime::Tensor;
use frazil_runtime::args::wrap_dim;
use frazil_runtime::element::{ComplexDoubleElement, DoubleElement, LongElement};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, OpError, Results, one};
use num_complex::Complex64;
use std::cmp::Ordering;

pub(super) const ENTRIES: &[Row] = &[
    ("aten::cumsum", Entry::kernel(|c| scan(c, Scan::Sum)).fixed_sizes()),
    ("aten::cumprod", Entry::kernel(|c| scan(c, Scan::Product)).fixed_sizes()),
    (
        "aten::logcumsumexp",
        Entry::kernel(|c| scan(c, Scan::LogSum))
            .fixed_sizes()
            .aliases(&[("aten::_logcumsumexp", AliasUse::Semantics)]),
    ),
    (
        "aten::cummax",
        Entry::kernel(|c| running(c, Ordering::Greater)).fixed_sizes(),
    ),
    (
        "aten::cummin",
        Entry::kernel(|c| running(c, Ordering::Less)).fixed_sizes(),
    ),
];

/// The combiner by which a scan accumulates elements.
#[derive(Clone, Copy, PartialEq)]
enum Scan {
    Sum,
    Product,
    LogSum,
}

/// Returns log(e^a + e^b).
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

fn complex_log_add(a: Complex64, b: Complex64) -> Complex64 {
    let (high, low) = if a.re > b.re { (a, b) } else { (b, a) };
    high + (Complex64::ONE + (low - high).exp()).ln()
}

/// Replaces each element by the combination of all elements up to it along `axis`.
fn accumulate<T: Copy>(values: &mut [T], axis: &Axis, join: impl Fn(T, T) -> T) {
    let (size, inner) = (axis.size as usize, axis.inner as usize);
    for slab in values.chunks_exact_mut((size * inner).max(1)) {
        for at in inner..slab.len() {
            slab[at] = join(slab[at - inner], slab[at]);
        }
    }
}

/// Executes a scan. Integers become Long unless a dtype is requested or the scan is in place. Floats are accumulated in
/// double.
fn scan(call: &Call<'_>, how: Scan) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let dim = wrap_dim(call.int(1)?, t.dim())?;
    let floating = |d: DType| d.is_floating_point() || d.is_complex();
    let in_place = call.schema.arguments[0].alias.as_ref().is_some_and(|a| a.is_write);
    let default = if floating(t.dtype()) || in_place {
        t.dtype()
    } else {
        DType::Long
    };
    let dtype = match how {
        Scan::LogSum => default,
        Scan::Sum | Scan::Product => call.result_dtype()?.unwrap_or(default),
    };
    if in_place && dtype != t.dtype() {
        return Err(OpError::raised(format!(
            "Bad in-place call: input tensor dtype {} and output tensor dtype {} should match",
            t.dtype().type_name(),
            dtype.type_name()
        )));
    }
    // A scan of one element or none changes nothing.
    if dtype == DType::Bool && t.dim() > 0 && t.numel() > 0 {
        return Err(OpError::raised("\"cumsum_out_cpu\" not implemented for 'Bool'"));
    }
    if how == Scan::LogSum && !floating(dtype) {
        return Err(OpError::raised(format!(
            "\"logcumsumexp_out_cpu\" not implemented for '{}'",
            t.dtype().type_name()
        )));
    }
    let source = t.to_dtype(dtype)?;
    let axis = Axis::of(&source, dim);
    let sizes = t.sizes();
    // Sums begin with zero, beside which a negative zero is one that is positive; products with one, by which a complex infinity becomes NaN.
    let from_zero = how == Scan::Sum && t.dim() > 0;
    let from_one = how == Scan::Product && t.dim() > 0;
    let out = if dtype.is_complex() {
        let mut values: Vec<Complex64> = source.to_dtype(DType::ComplexDouble)?.to_vec();
        if from_zero {
            values.iter_mut().for_each(|x| *x += Complex64::ZERO);
        }
        if from_one {
            values.iter_mut().for_each(|x| *x *= Complex64::ONE);
        }
        accumulate(&mut values, &axis, |a, b| match how {
            Scan::Sum => a + b,
            Scan::Product => a * b,
            Scan::LogSum => complex_log_add(a, b),
        });
        Tensor::from_elements::<ComplexDoubleElement>(&values, sizes)?
    } else if dtype.is_floating_point() {
        let mut values = source.to_f64_vec();
        if from_zero {
            values.iter_mut().for_each(|x| *x += 0.0);
        }
        accumulate(&mut values, &axis, |a, b| match how {
            Scan::Sum => a + b,
            Scan::Product => a * b,
            Scan::LogSum => log_add(a, b),
        });
        Tensor::from_elements::<DoubleElement>(&values, sizes)?
    } else {
        let mut values = source.to_i64_vec();
        accumulate(&mut values, &axis, |a, b| match how {
            Scan::Product => a.wrapping_mul(b),
            _ => a.wrapping_add(b),
        });
        Tensor::from_elements::<LongElement>(&values, sizes)?
    };
    one(out.to_dtype(dtype)?)
}

/// Returns the extremum so far and its index, the last of equal values. After a NaN, the extremum is NaN.
fn running(call: &Call<'_>, wanted: Ordering) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let dim = wrap_dim(call.int(1)?, t.dim())?;
    let length = Axis::of(&t, dim).size;
    let (values, indices) = by_key!(t, K => picked::<K>(&t, dim, length, |row| Ok(extremes(row, wanted))))?;
    Ok(smallvec::smallvec![values.into(), indices.into()])
}

fn extremes<K: Key>(row: &[K], wanted: Ordering) -> Vec<usize> {
    let mut best = 0;
    (0..row.len())
        .map(|i| {
            let order = row[i].compare(row[best]);
            let better = order == wanted || order == Ordering::Equal;
            if row[i].missing() || (better && !row[best].missing()) {
                best = i;
            }
            best
        })
        .collect()
}
