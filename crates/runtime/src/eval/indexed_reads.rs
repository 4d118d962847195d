//! Execution of the step [`Gather`]: reads of elements at indices in tensors.

use crate::error::EvalError;
use crate::error::TensorError;
use crate::memory;
use crate::program::gather::{Coordinate, Gather};
use crate::program::structured::{Affine, TensorId};
use crate::shape::Dims;
use crate::tensor::Tensor;
use frazil_ir::contiguous_strides;

/// A tensor of indices along one dimension, whose stride is `stride` elements.
struct Index {
    values: Vec<i64>,
    map: Affine,
    stride: i64,
}

/// Reads the elements that `g` selects. Its operands are indices into `tensors`.
pub(super) fn eval_gather(g: &Gather, tensors: &[Tensor]) -> Result<Tensor, EvalError> {
    let get = |id: TensorId| {
        tensors
            .get(id.index())
            .ok_or(EvalError::Malformed("a read of an unknown tensor"))
    };
    let source = get(g.tensor)?.contiguous()?;
    let sizes = &g.output.sizes;
    let malformed = EvalError::Malformed("the coordinates of a gather do not fit its tensor");
    if g.coordinates.len() != source.dim() || g.output.dtype != source.dtype() {
        return Err(malformed);
    }
    let strides = contiguous_strides(source.sizes());
    let mut base = Affine::constant(sizes.len(), 0);
    let mut indices = Vec::new();
    for (coordinate, (&size, &stride)) in g.coordinates.iter().zip(source.sizes().iter().zip(&strides)) {
        match coordinate {
            Coordinate::Affine(map) => add(&mut base, map, stride),
            Coordinate::Value { tensor, map } => {
                let index = get(*tensor)?;
                if map.len() != index.dim() {
                    return Err(malformed);
                }
                let mut values = index.to_i64_vec();
                for v in &mut values {
                    if g.checks_values(size) && !g.valid(size).contains(v) {
                        return Err(EvalError::OutOfRange(g.out_of_range(*v, size)));
                    }
                    *v += if *v < 0 { size } else { 0 };
                }
                let mut at = Affine::constant(sizes.len(), 0);
                for (m, &s) in map.iter().zip(&contiguous_strides(index.sizes())) {
                    add(&mut at, m, s);
                }
                indices.push(Index {
                    values,
                    map: at,
                    stride,
                });
            }
        }
    }
    // `take` checks positions against the tensor, so that a malformed map is an error and no more.
    let mut positions = memory::with_capacity(g.output.numel().max(0) as usize).map_err(TensorError::from)?;
    let mut at: Dims = smallvec::smallvec![0; sizes.len()];
    for _ in 0..g.output.numel() {
        let named = indices.iter().map(|i| {
            let value = usize::try_from(i.map.at(&at)).ok().and_then(|n| i.values.get(n));
            value.map_or(-1, |v| v * i.stride)
        });
        positions.push(base.at(&at) + named.sum::<i64>());
        for d in (0..sizes.len()).rev() {
            at[d] += 1;
            if at[d] < sizes[d] {
                break;
            }
            at[d] = 0;
        }
    }
    Ok(source.take(&positions, sizes)?)
}

/// Computes `sum += factor · map`.
fn add(sum: &mut Affine, map: &Affine, factor: i64) {
    sum.offset += map.offset * factor;
    for (s, &c) in sum.coefficients.iter_mut().zip(&map.coefficients) {
        *s += c * factor;
    }
}
