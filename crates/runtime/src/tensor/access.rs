//! Reads of loop-nest operands in chunks of elements: affine accesses composed with the operands' strides.

use crate::error::TensorError;
use crate::program::structured::{Access, OutOfBounds};
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::tensor::element::{Element, with_element};
use crate::tensor::lanes::{Lane, Lanes};
use crate::tensor::storage::{AlignedBytes, Bytes};
use frazil_ir::DType;
use smallvec::{SmallVec, smallvec};

/// The bytes of an operand, aligned for the operand's dtype.
pub(crate) enum OperandBytes {
    Snapshot(Bytes),
    /// A copy at an aligned address. It is boxed because it is rare, and calls move operands.
    Copied(Box<AlignedBytes>),
}

impl OperandBytes {
    /// Returns a snapshot of the tensor's storage, or a copy if it is not aligned for the tensor's dtype (mapped archives).
    pub(crate) fn of(tensor: &Tensor) -> Result<OperandBytes, TensorError> {
        let bytes = tensor.storage().bytes();
        let align = tensor.dtype().size().min(8);
        if bytes.as_ptr().align_offset(align) == 0 {
            Ok(OperandBytes::Snapshot(bytes))
        } else {
            Ok(OperandBytes::Copied(Box::new(AlignedBytes::copied(&bytes)?)))
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            OperandBytes::Snapshot(b) => b,
            OperandBytes::Copied(b) => b.as_slice(),
        }
    }
}

/// The loop indices at one position of a walk. The inline capacity avoids heap allocations for the many loops of convolutions.
type Indices = SmallVec<[i64; 12]>;

/// A coordinate that has to be checked against the size of its dimension.
#[derive(Clone, PartialEq)]
struct Bound {
    coefficients: Dims,
    offset: i64,
    size: i64,
}

/// An [`Access`] composed with the strides of the accessed tensor: one stride per loop.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    dtype: DType,
    base: i64,
    strides: Dims,
    bounds: Vec<Bound>,
    fill: f64,
}

/// A walk over some loops of a domain in row-major order. The indices of the remaining loops are fixed.
pub(crate) struct Walk<'w> {
    /// Extents of all loops of the domain.
    pub extents: &'w [i64],
    /// The loops that are walked: `first..end` of the domain.
    pub first: usize,
    /// One past the last loop that is walked.
    pub end: usize,
    /// The indices of the loops outside of `first..end`; ignored for the loops that are walked.
    pub fixed: &'w [i64],
}

impl<'a> Reader<'a> {
    /// Composes `access` with the layout of `tensor`, whose bytes are `bytes`. Returns `None` if the program is
    /// malformed: the access can leave the tensor although it claims not to.
    pub(crate) fn new(access: &Access, tensor: &Tensor, bytes: &'a [u8], extents: &[i64]) -> Option<Reader<'a>> {
        let rank = extents.len();
        if access.map.len() != tensor.sizes().len() {
            return None;
        }
        let mut base = tensor.offset();
        let mut strides: Dims = smallvec![0; rank];
        let mut bounds = Vec::new();
        let empty = extents.contains(&0);
        for (affine, (&size, &stride)) in access.map.iter().zip(tensor.sizes().iter().zip(tensor.strides())) {
            if affine.coefficients.len() != rank {
                return None;
            }
            // Positions may wrap around on the way: those of elements that are read fit, and others are not used.
            base = base.wrapping_add(affine.offset.wrapping_mul(stride));
            let (mut low, mut high) = (affine.offset, affine.offset);
            for (l, &c) in affine.coefficients.iter().enumerate() {
                strides[l] = strides[l].wrapping_add(c.wrapping_mul(stride));
                let reach = c.checked_mul((extents[l] - 1).max(0))?;
                if reach < 0 {
                    low = low.checked_add(reach)?
                } else {
                    high = high.checked_add(reach)?
                }
            }
            if !empty && (low < 0 || high >= size) {
                if access.out_of_bounds == OutOfBounds::Never {
                    return None;
                }
                bounds.push(Bound {
                    coefficients: affine.coefficients.clone(),
                    offset: affine.offset,
                    size,
                });
            }
        }
        let fill = match access.out_of_bounds {
            OutOfBounds::Never => 0.0,
            OutOfBounds::Value(n) => n.as_f64(),
        };
        Some(Reader {
            bytes,
            dtype: tensor.dtype(),
            base,
            strides,
            bounds,
            fill,
        })
    }

    /// Returns a reader of elements of `dtype` with the given strides, in elements, and without bounds checks.
    pub(crate) fn dense(bytes: &'a [u8], dtype: DType, strides: Dims) -> Reader<'a> {
        Reader {
            bytes,
            dtype,
            base: 0,
            strides,
            bounds: Vec::new(),
            fill: 0.0,
        }
    }

    /// Returns the same reader with `base` as the position of its first element.
    pub(crate) fn at(mut self, base: i64) -> Reader<'a> {
        self.base = base;
        self
    }

    /// Writes `lanes` to the positions in `target` from which this reader would read.
    pub(crate) fn write<T: Element>(&self, walk: &Walk<'_>, start: usize, lanes: &[T::Lane], target: &mut [T::Raw]) {
        let mut rest = lanes;
        self.runs(walk, start, lanes.len(), |run| {
            let (now, later) = rest.split_at(run.len);
            rest = later;
            for (i, &lane) in now.iter().enumerate() {
                if let Some(out) = target.get_mut((run.offset + i as i64 * run.stride) as usize) {
                    *out = T::store(lane);
                }
            }
        });
    }

    /// Returns the dtype of the elements that are read.
    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the stride of loop `l`, in elements.
    pub(crate) fn stride(&self, l: usize) -> i64 {
        self.strides[l]
    }

    /// Returns the position of the first element, with all loops at index 0.
    pub(crate) fn base(&self) -> i64 {
        self.base
    }

    /// Returns true if no coordinate has to be checked.
    pub(crate) fn is_in_bounds(&self) -> bool {
        self.bounds.is_empty()
    }

    /// Returns true if every read outside of the operand's bounds has the value zero.
    pub(crate) fn fills_with_zeros(&self) -> bool {
        self.bounds.is_empty() || self.fill == 0.0
    }

    /// Returns the operand's elements in their memory representation.
    pub(crate) fn raw<T: bytemuck::Pod>(&self) -> &'a [T] {
        bytemuck::try_cast_slice(self.bytes).unwrap_or(&[])
    }

    /// Returns true if the position of the read elements depends on loop `l`.
    pub(crate) fn uses_loop(&self, l: usize) -> bool {
        self.strides[l] != 0 || self.bounds.iter().any(|b| b.coefficients[l] != 0)
    }

    /// Returns a reader for a smaller domain, whose loops are the loops `order` of this one. Other loops have the index in `fixed`, or else 0.
    pub(crate) fn restricted(&self, order: &[usize], fixed: &[(usize, i64)]) -> Reader<'a> {
        let select = |of: &Dims| order.iter().map(|&l| of[l]).collect::<Dims>();
        let each = |of: &Dims, (l, at): (usize, i64)| of[l].wrapping_mul(at);
        let shift = |of: &Dims| fixed.iter().fold(0, |sum: i64, &f| sum.wrapping_add(each(of, f)));
        Reader {
            base: self.base.wrapping_add(shift(&self.strides)),
            strides: select(&self.strides),
            bounds: self
                .bounds
                .iter()
                .map(|b| Bound {
                    coefficients: select(&b.coefficients),
                    offset: b.offset + shift(&b.coefficients),
                    size: b.size,
                })
                .collect(),
            ..*self
        }
    }

    /// Returns true if loops `l` and `l + 1` can be walked as one loop.
    pub(crate) fn coalesces(&self, l: usize, inner_extent: i64) -> bool {
        let continues = |of: &Dims| of[l + 1].checked_mul(inner_extent) == Some(of[l]);
        continues(&self.strides) && self.bounds.iter().all(|b| continues(&b.coefficients))
    }

    /// Removes loop `l`, which was merged into loop `l + 1` or has extent 1.
    pub(crate) fn remove_loop(&mut self, l: usize) {
        self.strides.remove(l);
        for b in &mut self.bounds {
            b.coefficients.remove(l);
        }
    }

    /// Reads `len` elements in the order of the walk, starting at iteration `start`, into `out`.
    pub(crate) fn read(&self, walk: &Walk<'_>, start: usize, len: usize, out: &mut Lanes) {
        with_element!(self.dtype, T => {
            let lanes = <T as Element>::Lane::of_mut(out);
            lanes.resize(len, Default::default());
            self.read_into::<T>(walk, start, lanes);
        });
    }

    /// Reads as many elements as `target` has, like [`Reader::read`], for a reader of elements of type `T`.
    pub(crate) fn read_into<T: Element>(&self, walk: &Walk<'_>, start: usize, target: &mut [T::Lane]) {
        let data: &[T::Raw] = self.raw();
        let fill = if self.bounds.is_empty() {
            T::Lane::default()
        } else {
            fill_lane::<T>(self.fill)
        };
        let mut at = 0;
        self.runs(walk, start, target.len(), |run| {
            let end = at + run.len;
            if let Some(target) = target.get_mut(at..end) {
                read_run::<T>(data, &run, fill, target);
            }
            at = end;
        });
    }

    /// Splits the iterations `start..start + len` of the walk into runs along the innermost loop, and calls `each` on each run.
    pub(crate) fn runs(&self, walk: &Walk<'_>, start: usize, len: usize, mut each: impl FnMut(Run)) {
        let mut index: Indices = walk.fixed.into();
        let mut rest = start as i64;
        for l in (walk.first..walk.end).rev() {
            let extent = walk.extents[l].max(1);
            index[l] = rest % extent;
            rest /= extent;
        }
        let mut offset = self.base.wrapping_add(dot(&self.strides, &index));
        // Where each checked coordinate stands; it moves along with `offset`.
        let mut checked: SmallVec<[i64; 4]> = self
            .bounds
            .iter()
            .map(|b| b.offset + dot(&b.coefficients, &index))
            .collect();
        let inner = walk.end.checked_sub(1).filter(|&l| l >= walk.first);
        let mut inside = Inside::default();
        let Some(inner) = inner else {
            let (low, high) = self.inside(&checked, None, len, &mut inside);
            each(Run {
                offset,
                stride: 0,
                len,
                low,
                high,
            });
            return;
        };
        let stride = self.strides[inner];
        let mut remaining = len;
        while remaining > 0 {
            let run_len = remaining.min((walk.extents[inner] - index[inner]).max(1) as usize);
            let (low, high) = self.inside(&checked, Some(inner), run_len, &mut inside);
            each(Run {
                offset,
                stride,
                len: run_len,
                low,
                high,
            });
            remaining -= run_len;
            if remaining == 0 {
                break;
            }
            // The next row of the walk.
            let mut step = |l: usize, by: i64| {
                offset = offset.wrapping_add(self.strides[l].wrapping_mul(by));
                for (at, b) in checked.iter_mut().zip(&self.bounds) {
                    *at += b.coefficients[l] * by;
                }
            };
            step(inner, -index[inner]);
            index[inner] = 0;
            for l in (walk.first..inner).rev() {
                index[l] += 1;
                step(l, 1);
                if index[l] < walk.extents[l] {
                    break;
                }
                step(l, -index[l]);
                index[l] = 0;
            }
        }
    }

    /// Returns which of `len` elements along loop `inner` are inside the operand. `checked` has the initial values of the checked coordinates.
    #[inline(always)]
    fn inside(&self, checked: &[i64], inner: Option<usize>, len: usize, last: &mut Inside) -> (usize, usize) {
        let (mut low, mut high) = (0, len);
        for (&at, b) in checked.iter().zip(&self.bounds) {
            let step = inner.map_or(0, |l| b.coefficients[l]);
            if step == 0 {
                if !(0..b.size).contains(&at) {
                    return (0, 0);
                }
                continue;
            }
            // Row after row starts at the same coordinate along the innermost loop.
            let question = (at, step, b.size, len);
            if last.question != question {
                let (low, high) = inside_range(at, step, b.size, len as i64);
                let low = low.min(len as i64) as usize;
                *last = Inside {
                    question,
                    answer: (low, (high.max(0) as usize).max(low)),
                };
            }
            low = low.max(last.answer.0);
            high = high.min(last.answer.1);
        }
        (low, high.max(low))
    }
}

/// The arguments of the last call of [`inside_range`] with its result.
#[derive(Default)]
struct Inside {
    question: (i64, i64, i64, usize),
    answer: (usize, usize),
}

/// A run of elements along the innermost loop. Elements `low..high` are inside the operand.
pub(crate) struct Run {
    /// Position of the first element, which may be outside, in elements.
    pub offset: i64,
    /// The step between neighbouring elements of the run, in elements of the operand.
    pub stride: i64,
    /// Number of elements.
    pub len: usize,
    /// Index in the run of the first element inside of the operand.
    pub low: usize,
    /// One past the index in the run of the last element inside of the operand.
    pub high: usize,
}

/// Copies the elements of a run into `target`, which has the same length. Elements outside are set to `fill`.
fn read_run<T: Element>(data: &[T::Raw], run: &Run, fill: T::Lane, target: &mut [T::Lane]) {
    let (target, after) = target.split_at_mut(run.high);
    let (before, inside) = target.split_at_mut(run.low);
    before.fill(fill);
    after.fill(fill);
    let first = run.offset.wrapping_add((run.low as i64).wrapping_mul(run.stride));
    match run.stride {
        _ if inside.is_empty() => {}
        0 => inside.fill(T::load(element_at(data, first))),
        1 => {
            let source = slice_at(data, first, inside.len());
            inside.iter_mut().zip(source).for_each(|(to, &x)| *to = T::load(x));
        }
        s => {
            let mut at = first;
            for to in inside {
                *to = T::load(element_at(data, at));
                at = at.wrapping_add(s);
            }
        }
    }
}

fn fill_lane<T: Element>(fill: f64) -> T::Lane {
    let mut lanes = Lanes::new(T::DTYPE);
    lanes.convert_from(&Lanes::F64(vec![fill]), DType::Double, T::DTYPE);
    T::Lane::of(&lanes).first().copied().unwrap_or_default()
}

fn dot(a: &[i64], b: &[i64]) -> i64 {
    a.iter()
        .zip(b)
        .fold(0, |sum: i64, (x, y)| sum.wrapping_add(x.wrapping_mul(*y)))
}

fn element_at<T: bytemuck::Pod>(data: &[T], at: i64) -> T {
    // In range by construction (tensors fit their storage, accesses were checked against the tensor).
    data.get(at as usize)
        .copied()
        .unwrap_or_else(bytemuck::Zeroable::zeroed)
}

fn slice_at<T>(data: &[T], at: i64, len: usize) -> &[T] {
    data.get(at as usize..at as usize + len).unwrap_or(&[])
}

/// Returns the range of `t` in `0..len` for which `0 <= at + t * step < size`.
fn inside_range(at: i64, step: i64, size: i64, len: i64) -> (i64, i64) {
    let ceil_div = |a: i64, b: i64| a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0);
    match step {
        0 if (0..size).contains(&at) => (0, len),
        0 => (0, 0),
        1 => ((-at).max(0), (size - at).min(len)),
        s if s > 0 => (ceil_div(-at, s).max(0), ceil_div(size - at, s).min(len)),
        s => (ceil_div(at - size + 1, -s).max(0), (at.div_euclid(-s) + 1).min(len)),
    }
}

#[cfg(test)]
mod tests {
    use super::inside_range;

    #[test]
    fn inside_ranges_agree_with_counting() {
        for at in -5..9 {
            for step in -3..4 {
                for size in 0..5 {
                    let inside: Vec<i64> = (0..7).filter(|t| (0..size).contains(&(at + t * step))).collect();
                    let (low, high) = inside_range(at, step, size, 7);
                    let got: Vec<i64> = (low..high).collect();
                    assert_eq!(got, inside, "at {at} step {step} size {size}");
                }
            }
        }
    }
}
