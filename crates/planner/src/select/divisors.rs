//! Numbers of elements in expressions, such as the divisor of a mean.
//!
//! They are constants of the program for given shapes. In code for any size they have to be numbers of the kernel like the extents of its loops, or each size
//! would need code of its own.

use crate::kernel::{Loops, Stage};
use frazil_ir::DType;
use frazil_runtime::expr::Number;
use frazil_runtime::structured::Affine;

/// Maximum value: all integers up to here are exact in f32.
const MOST: f64 = (1 << 24) as f64;

/// Replaces the constants that may be numbers of elements, in what is applied to the results of reductions, by coordinates that do not depend on the loops. The
/// values stay the same.
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

/// Returns the integer that a constant is, if it may be a number of elements; a single element is none, as division by one is none.
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
