//! `abs`, `min` and `max` of numbers and lists of numbers, and numbers as tensors.

use frazil_runtime::op::{Call, KernelFn, OpError, Results, one};
use frazil_runtime::value::Value;
use frazil_runtime::{Scalar, Tensor};
use std::cmp::Ordering;

pub(crate) const HOST: &[(&str, KernelFn)] = &[
    ("prim::abs", abs),
    ("prim::min", |c| extreme(c, Ordering::Less)),
    ("prim::max", |c| extreme(c, Ordering::Greater)),
];

pub(crate) const KERNELS: &[(&str, KernelFn)] = &[("prim::NumToTensor", to_tensor)];

fn abs(call: &Call<'_>) -> Result<Results, OpError> {
    one(match call.scalar(0)? {
        Scalar::Bool(b) => Value::Int(i64::from(b)),
        Scalar::Int(i) => Value::Int(i.wrapping_abs()),
        Scalar::Float(f) => Value::Float(f.abs()),
        Scalar::Complex(c) => Value::Float(c.norm()),
    })
}

/// The lesser or the greater of two numbers (of the wider type of the two), of two lists, or of a list's elements.
fn extreme(call: &Call<'_>, wanted: Ordering) -> Result<Results, OpError> {
    if call.args.len() == 1 {
        let items = call.list(0)?.items();
        let mut best = items.first().cloned().ok_or_else(|| {
            OpError::raised(if wanted == Ordering::Less {
                "min() arg is an empty sequence"
            } else {
                "max() arg is an empty sequence"
            })
        })?;
        for item in &items[1..] {
            if compare(item, &best) == Some(wanted) {
                best = item.clone();
            }
        }
        return one(best);
    }
    let (a, b) = (call.arg(0), call.arg(1));
    let chosen = if compare(b, a) == Some(wanted) { b } else { a };
    let either_float = matches!(a, Value::Float(_)) || matches!(b, Value::Float(_));
    match (chosen, either_float) {
        (Value::Int(i), true) => one(*i as f64),
        (v, _) => one(v.clone()),
    }
}

fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    if let (Some(x), Some(y)) = (a.items(), b.items()) {
        for (x, y) in x.iter().zip(&y) {
            match compare(x, y)? {
                Ordering::Equal => {}
                other => return Some(other),
            }
        }
        return Some(x.len().cmp(&y.len()));
    }
    match (a.as_scalar()?, b.as_scalar()?) {
        (Scalar::Int(x), Scalar::Int(y)) => Some(x.cmp(&y)),
        (x, y) => x.as_f64().partial_cmp(&y.as_f64()),
    }
}

/// A zero-dimensional tensor; floats are `Double`, as numbers of Python are.
fn to_tensor(call: &Call<'_>) -> Result<Results, OpError> {
    use frazil_ir::DType;
    let value = call.scalar(0)?;
    let dtype = match value {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::Long,
        Scalar::Float(_) => DType::Double,
        Scalar::Complex(_) => DType::ComplexDouble,
    };
    one(Tensor::scalar(dtype, value))
}
