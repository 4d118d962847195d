//! Contractions with few rows (or columns) without packing, such as the contraction for each channel of a depthwise convolution.
//!
//! Packing the long operand of such a contraction would cost more than multiplying it. Each step of the depth adds its multiples directly to the results, a run
//! of elements at a time, and reads the operand in place.

use super::gemm::{GemmFloat, Matrix};
use crate::shape::Dims;
use crate::simd::vectorised;
use crate::tensor::access::{Reader, Run, Walk};
use crate::tensor::lanes::Lane;

/// Maximum number of rows. More rows share the cost of packing.
const MAX_FEW: usize = 3;
/// Maximum depth. Longer sums are faster and more accurate in GEMM's blocks.
const MAX_DEPTH: usize = 256;

/// The operand of a matmul that has many rows (or columns).
pub(super) struct Long<'r, 'a> {
    /// Reader of this operand over all loops of the nest.
    pub reader: &'r Reader<'a>,
    /// The loops that only this operand uses. The results are contiguous along them.
    pub loops: &'r [usize],
    /// The reduction loops.
    pub depth: &'r [usize],
    /// The extents of all loops of the nest.
    pub extents: &'r [i64],
}

impl Long<'_, '_> {
    /// Returns whether this implementation computes matmuls of `few` rows and `many` columns with sums over `depth` products.
    pub(super) fn suits<T: Lane>(&self, few: usize, many: usize, depth: usize) -> bool {
        let step = self.loops.last().map_or(0, |&l| self.reader.stride(l));
        let small = few <= MAX_FEW && depth <= MAX_DEPTH && many > MAX_FEW;
        small && step >= 1 && self.reader.fills_with_zeros() && self.reader.dtype() == T::DTYPE
    }

    /// Computes `out[row] += short[row] · long` for each of the `few` rows, which start at multiples of `row_stride` elements in `out`. `fixed` has the indices
    /// of the other loops of the nest.
    pub(super) fn add_products<T: GemmFloat + Lane>(
        &self,
        (few, many, row_stride): (usize, usize, i64),
        (short, matrix): (&[T], Matrix),
        fixed: &[(usize, i64)],
        out: &mut [T],
    ) {
        let order = [self.depth, self.loops].concat();
        let reader = self.reader.restricted(&order, fixed);
        let extents: Dims = order.iter().map(|&l| self.extents[l]).collect();
        let data: &[T] = reader.raw();
        let zeros: Dims = smallvec::smallvec![0; order.len()];
        let walk = Walk {
            extents: &extents,
            first: 0,
            end: order.len(),
            fixed: &zeros,
        };
        let total = extents.iter().product::<i64>() as usize;
        for row in 0..few {
            let first = row * row_stride as usize;
            let results = out.get_mut(first..first + many).unwrap_or_default();
            // One walk over all steps of the depth. A run lies within one of them, as the long loops are the inner ones.
            let mut at = matrix.offset + row as i64 * matrix.row_stride;
            let mut done = 0;
            reader.runs(&walk, 0, total, |run| {
                if done == many {
                    done = 0;
                    at += matrix.column_stride;
                }
                let factor = short.get(at as usize).copied().unwrap_or(T::ZERO);
                let inside = done + run.low..done + run.high;
                // Outside of the operand are zeros, which are multiplied too: infinity times them is NaN.
                if factor * T::ZERO != T::ZERO {
                    for outside in [done..inside.start, inside.end..done + run.len] {
                        let outside = results.get_mut(outside).unwrap_or_default();
                        outside.iter_mut().for_each(|r| *r = *r + factor * T::ZERO);
                    }
                }
                done += run.len;
                add_multiple(factor, data, &run, results.get_mut(inside).unwrap_or_default());
            });
        }
    }
}

/// Adds `factor` times the elements of a run. Elements outside of the operand are skipped.
#[inline(always)]
fn add_multiple<T: GemmFloat>(factor: T, data: &[T], run: &Run, results: &mut [T]) {
    let first = (run.offset + run.low as i64 * run.stride) as usize;
    let source = data.get(first..).unwrap_or_default();
    vectorised(
        #[inline(always)]
        || match run.stride {
            1 => results.iter_mut().zip(source).for_each(|(r, &x)| *r = *r + factor * x),
            step => results
                .iter_mut()
                .zip(source.iter().step_by(step as usize))
                .for_each(|(r, &x)| *r = *r + factor * x),
        },
    );
}
