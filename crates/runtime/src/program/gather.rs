//! Gathers: steps of a [`Program`](crate::program::structured::Program) that read elements at indices which other tensors contain.

use crate::program::structured::{Affine, TensorId};
use crate::shape::TensorShape;
use smallvec::SmallVec;
use std::borrow::Cow;

/// `out[i] = tensor[c0(i), c1(i), ...]` over the domain of the result's sizes: embedding, `index_select`, `gather`, indexing with integer tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// The tensor whose elements are read.
    pub tensor: TensorId,
    /// One coordinate per dimension of `tensor`.
    pub coordinates: SmallVec<[Coordinate; 4]>,
    /// Whether a negative value counts from the end, as in Python; otherwise it is out of range.
    pub from_end: bool,
    /// The message of the exception for a value out of range. `{index}` and `{size}` are replaced by the value and its dimension's extent.
    pub message: Cow<'static, str>,
    /// dtype and sizes of the result.
    pub output: TensorShape,
}

/// One coordinate of the elements that a [`Gather`] reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Coordinate {
    /// An affine function of the result's coordinates that is always within the dimension.
    Affine(Affine),
    /// The element of an integer tensor at affine coordinates.
    Value {
        /// The integer tensor.
        tensor: TensorId,
        /// One affine map per dimension of the integer tensor, from the result's coordinates.
        map: Vec<Affine>,
    },
}

impl Gather {
    /// Returns the tensors that the gather reads: the tensor with the elements, and the tensors with the indices.
    pub fn operands(&self) -> impl Iterator<Item = TensorId> + '_ {
        let values = self.coordinates.iter().filter_map(|c| match c {
            Coordinate::Affine(_) => None,
            Coordinate::Value { tensor, .. } => Some(*tensor),
        });
        std::iter::once(self.tensor).chain(values)
    }

    /// Returns the tensors that the gather reads, mutably, so that they can be renumbered. See [`Gather::operands`].
    pub fn operands_mut(&mut self) -> impl Iterator<Item = &mut TensorId> {
        let values = self.coordinates.iter_mut().filter_map(|c| match c {
            Coordinate::Affine(_) => None,
            Coordinate::Value { tensor, .. } => Some(tensor),
        });
        std::iter::once(&mut self.tensor).chain(values)
    }

    /// Returns the message of the exception for index `value` in a dimension of extent `size`.
    pub fn out_of_range(&self, value: i64, size: i64) -> String {
        self.message
            .replace("{index}", &value.to_string())
            .replace("{size}", &size.to_string())
    }

    /// Returns whether a value that is out of range for a dimension of extent `size` raises. PyTorch's `index` does not check the values if the result is
    /// empty, unless `size` is 0.
    pub fn checks_values(&self, size: i64) -> bool {
        !self.from_end || size == 0 || self.output.numel() > 0
    }

    /// Returns the range of valid indices for a dimension of extent `size`.
    pub fn valid(&self, size: i64) -> std::ops::Range<i64> {
        let first = if self.from_end { -size } else { 0 };
        first..size
    }
}
