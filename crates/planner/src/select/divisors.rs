//! Numbers of elements in expressions, such as the divisor of a mean.
//!
//! For given shapes, they are constants of the program. In code for any size, they have to be integers of the kernel like the extents of its loops; otherwise
//! each size would need code of its own.

use crate::kernel::{Loops, Stage};
use frazil_ir::DType;
use frazil_runtime::expr::Number;
use frazil_runtime::structured::Affine;

/// Maximum value of a constant that is replaced: all integers up to it are exact in f32.
const MOST: f64 = (1 << 24) as f64;

/// Replaces the constants that may be numbers of elements by loop-invariant indices ([`Stage::indices`]), in the expressions that are applied to the results of
/// reductions. The values stay the same.
pub(super) fn replace(loops: &mut Loops) {
    for stage in loops.stages.iter_mut().filter(|stage| stage.combine.is_some()) {
        let Stage {
            finish,
            indices,
            output,
            ..
        } = stage;
        if let Some(finish) = finish {
            *finish = finish.replace_constants(|value, dtype| {
                let count = count_of(value, dtype)?;
                indices.push(Affine {
                    coefficients: output.index.coefficients.iter().map(|_| 0).collect(),
                    offset: count,
                });
                u32::try_from(indices.len() - 1).ok()
            });
        }
    }
}

/// Returns the integer that a constant is, if it may be a number of elements. 1 is excluded: dividing by it changes nothing.
fn count_of(value: Number, dtype: DType) -> Option<i64> {
    match value {
        Number::Float(value) if matches!(dtype, DType::Float | DType::Double) => {
            let is_count = value.fract() == 0.0 && (2.0..=MOST).contains(&value);
            is_count.then_some(value as i64)
        }
        Number::Float(_) | Number::Int(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_integers_that_f32_has() {
        let count = |value| count_of(Number::Float(value), DType::Float);
        assert_eq!([2.0, 7.0, MOST].map(count), [Some(2), Some(7), Some(1 << 24)]);
        for other in [1.0, 0.0, -3.0, 2.5, MOST + 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(count(other), None, "{other}");
        }
        assert_eq!(count_of(Number::Float(7.0), DType::Half), None);
        assert_eq!(count_of(Number::Int(7), DType::Long), None);
    }
}
