//! Reductions into the elements that indices select: `scatter_reduce`, `index_reduce`.

use frazil_ir::DType;
use frazil_runtime::element::{ComplexDoubleElement, DoubleElement};
use frazil_runtime::elements::Join;
use frazil_runtime::op::OpError;
use frazil_runtime::{Scalar, Tensor};
use num_complex::Complex64;

/// Reduces the elements of `src` into the elements of `t` at `positions`, by the reduction `how` (`sum`, `mean`, `prod`, `amax`, `amin`). Without `include_self`,
/// the previous elements of `t` at these positions do not take part.
pub(super) fn reduced(
    t: &Tensor,
    positions: &[i64],
    src: &Tensor,
    how: &str,
    include_self: bool,
) -> Result<(), OpError> {
    let join = match how {
        "sum" | "mean" => Join::Add,
        "prod" => Join::Mul,
        "amax" => Join::Max,
        "amin" => Join::Min,
        other => {
            return Err(OpError::raised(format!(
                "reduce argument must be either sum, prod, mean, amax or amin, got {other}"
            )));
        }
    };
    if !include_self {
        let neutral = neutral(t.dtype(), join);
        let fill = Tensor::full(t.dtype(), &[positions.len() as i64], neutral)?;
        t.put_(positions, &fill, Join::Replace)?;
    }
    t.put_(positions, src, join)?;
    if how == "mean" {
        let start = Scalar::Int(i64::from(include_self));
        let counts = Tensor::full(DType::Long, t.sizes(), start)?;
        let ones = Tensor::full(DType::Long, &[positions.len() as i64], Scalar::Int(1))?;
        counts.put_(positions, &ones, Join::Add)?;
        let counts = counts.to_i64_vec();
        let mean = if t.dtype().is_floating_point() {
            let each = t.to_f64_vec().into_iter().zip(counts).map(|(x, n)| x / n.max(1) as f64);
            Tensor::from_elements::<DoubleElement>(&each.collect::<Vec<_>>(), t.sizes())?
        } else if t.dtype().is_complex() {
            let each = t
                .to_dtype(DType::ComplexDouble)?
                .to_vec::<Complex64>()
                .into_iter()
                .zip(counts);
            let each: Vec<Complex64> = each.map(|(x, n)| x / n.max(1) as f64).collect();
            Tensor::from_elements::<ComplexDoubleElement>(&each, t.sizes())?
        } else {
            let each = t.to_i64_vec().into_iter().zip(counts);
            let each: Vec<i64> = each.map(|(x, n)| floored(x, n.max(1))).collect();
            Tensor::from_i64(&each, t.sizes())?
        };
        t.copy_(&mean)?;
    }
    Ok(())
}

/// Returns the quotient `x / n` rounded towards minus infinity.
fn floored(x: i64, n: i64) -> i64 {
    x.div_euclid(n)
}

/// Returns the neutral element of the combiner `join`.
fn neutral(dtype: DType, join: Join) -> Scalar {
    let bound = |least: bool| match dtype {
        d if d.is_floating_point() => Scalar::Float(if least { f64::NEG_INFINITY } else { f64::INFINITY }),
        DType::Bool => Scalar::Bool(!least),
        DType::Byte => Scalar::Int(if least { 0 } else { 255 }),
        d => {
            let lowest = i64::MIN >> (64 - 8 * d.size());
            Scalar::Int(if least { lowest } else { !lowest })
        }
    };
    match join {
        Join::Mul => Scalar::Int(1),
        Join::Max => bound(true),
        Join::Min => bound(false),
        Join::Add | Join::Replace => Scalar::Int(0),
    }
}
