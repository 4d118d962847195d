//! Joining the values of a reduction.

use crate::emit::builder::{Emitter, Val};
use crate::emit::expr::ExprEmitter;
use frazil_ir::DType;
use frazil_runtime::expr::Number;
use frazil_runtime::structured::Combine;

/// What a combination starts from.
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

/// MLIR's names of a combination: the operation, and the kind of `vector.reduction`.
fn names(combine: Combine, dtype: DType) -> (&'static str, &'static str) {
    let unsigned = matches!(dtype, DType::Byte | DType::Bool);
    match (combine, dtype.is_floating_point()) {
        (Combine::Add, true) => ("arith.addf", "add"),
        (Combine::Mul, true) => ("arith.mulf", "mul"),
        (Combine::Max, true) => ("arith.maximumf", "maximumf"),
        (Combine::Min, true) => ("arith.minimumf", "minimumf"),
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
    }
}

pub(super) fn join<'c>(e: &mut Emitter<'c>, combine: Combine, dtype: DType, a: Val<'c>, b: Val<'c>) -> Val<'c> {
    e.binary(names(combine, dtype).0, a, b)
}

/// Joins the lanes of a vector.
pub(super) fn horizontal<'c>(e: &mut Emitter<'c>, combine: Combine, dtype: DType, vector: Val<'c>) -> Val<'c> {
    e.reduce_lanes(names(combine, dtype).1, vector, dtype.is_floating_point())
}
