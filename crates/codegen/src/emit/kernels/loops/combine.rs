//! Combination of the values of a reduction.

use crate::emit::builder::{Emitter, Val};
use crate::emit::expr::ExprEmitter;
use frazil_ir::DType;
use frazil_runtime::expr::Number;
use frazil_runtime::structured::Combine;

/// Returns the identity element of `combine`, from which a reduction starts.
pub(super) fn identity<'c>(e: &mut Emitter<'c>, combine: Combine, dtype: DType, lanes: Option<i64>) -> Val<'c> {
    let bits = 8 * dtype.size() as u32;
    let unsigned = matches!(dtype, DType::Byte | DType::Bool);
    let value = match combine {
        Combine::Add | Combine::Or => Number::Int(0),
        Combine::Mul => Number::Int(1),
        Combine::And if dtype == DType::Bool => Number::Int(1),
        Combine::And => Number::Int(-1),
        Combine::Max if dtype.is_floating_point() => Number::Float(f64::NEG_INFINITY),
        Combine::Min if dtype.is_floating_point() => Number::Float(f64::INFINITY),
        Combine::Max if unsigned => Number::Int(0),
        Combine::Min if unsigned => Number::Int(if dtype == DType::Bool { 1 } else { 255 }),
        Combine::Max => Number::Int(i64::MIN >> (64 - bits)),
        Combine::Min => Number::Int(i64::MAX >> (64 - bits)),
    };
    ExprEmitter::new(e, lanes).constant(value, dtype)
}

/// The instructions that combine two values.
enum Join {
    /// An operation of MLIR, and the kind of `vector.reduction` that combines lanes in the same way.
    Named(&'static str, &'static str),
    /// The selection of one of the values, by the predicate of its comparison with the other value.
    Pick(&'static str),
}

fn how(combine: Combine, dtype: DType) -> Join {
    let unsigned = matches!(dtype, DType::Byte | DType::Bool);
    let (name, kind) = match (combine, dtype.is_floating_point()) {
        (Combine::Max, true) => return Join::Pick("ogt"),
        (Combine::Min, true) => return Join::Pick("olt"),
        (Combine::Add, true) => ("arith.addf", "add"),
        (Combine::Mul, true) => ("arith.mulf", "mul"),
        (Combine::Add, false) if dtype == DType::Bool => ("arith.ori", "or"),
        (Combine::Mul, false) if dtype == DType::Bool => ("arith.andi", "and"),
        (Combine::Add, false) => ("arith.addi", "add"),
        (Combine::Mul, false) => ("arith.muli", "mul"),
        (Combine::Max, false) if unsigned => ("arith.maxui", "maxui"),
        (Combine::Min, false) if unsigned => ("arith.minui", "minui"),
        (Combine::Max, false) => ("arith.maxsi", "maxsi"),
        (Combine::Min, false) => ("arith.minsi", "minsi"),
        (Combine::Or, _) => ("arith.ori", "or"),
        (Combine::And, _) => ("arith.andi", "and"),
    };
    Join::Named(name, kind)
}

/// Combines two values, or two vectors of `lanes` values.
pub(super) fn join<'c>(
    e: &mut Emitter<'c>,
    combine: Combine,
    dtype: DType,
    a: Val<'c>,
    b: Val<'c>,
    lanes: Option<i64>,
) -> Val<'c> {
    match how(combine, dtype) {
        Join::Pick(predicate) => e.nan_select(predicate, a, b, lanes),
        Join::Named(name, _) => e.binary(name, a, b),
    }
}

/// Combines the `lanes` lanes of a vector; `lanes` must be a power of two.
pub(super) fn horizontal<'c>(
    e: &mut Emitter<'c>,
    combine: Combine,
    dtype: DType,
    mut vector: Val<'c>,
    lanes: i64,
) -> Val<'c> {
    if let Join::Named(_, kind) = how(combine, dtype) {
        return e.reduce_lanes(kind, vector, dtype.is_floating_point());
    }
    let mut step = lanes / 2;
    while step > 0 {
        let other = e.shuffle(vector, vector, (0..lanes).map(|l| (l + step) % lanes));
        vector = join(e, combine, dtype, vector, other, Some(lanes));
        step /= 2;
    }
    e.extract(vector, 0)
}
