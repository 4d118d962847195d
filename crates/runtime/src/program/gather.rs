//! Reads at places that other tensors name: the step of a [`Program`](crate::program::structured::Program) whose coordinates are not affine.

use crate::program::structured::{Affine, TensorId};
use crate::shape::TensorShape;
use smallvec::SmallVec;
use std::borrow::Cow;

/// `out[i] = tensor[c0(i), c1(i), ...]` over a domain that is the result's sizes: embedding, `index_select`, `gather`, indexing
/// with integer tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// The tensor whose elements are read.
    pub tensor: TensorId,
    /// One coordinate a dimension of that tensor.
    pub coordinates: SmallVec<[Coordinate; 4]>,
    /// Whether a negative value counts from the end, as Python's indices do; otherwise it is out of range.
    pub from_end: bool,
    /// The exception when a value is out of range; `{index}` and `{size}` stand for the value and its dimension's extent.
    pub message: Cow<'static, str>,
    /// dtype and sizes of the result.
    pub output: TensorShape,
}

/// One coordinate of a [`Gather`].
#[derive(Clone, Debug, PartialEq)]
pub enum Coordinate {
    /// A function of the result's coordinates that stays within the dimension.
    Affine(Affine),
    /// The element of an integer tensor.
    Value {
        /// The tensor.
        tensor: TensorId,
        /// One map a dimension of it; none leaves it.
        map: Vec<Affine>,
    },
}

impl Gather {
    /// The tensors that are read: the one whose elements are the result, and those that name the places.
    pub fn operands(&self) -> impl Iterator<Item = TensorId> + '_ {
        let values = self.coordinates.iter().filter_map(|c| match c {
            Coordinate::Affine(_) => None,
            Coordinate::Value { tensor, .. } => Some(*tensor),
        });
        std::iter::once(self.tensor).chain(values)
    }

    /// [`Gather::operands`], to be renumbered.
    pub fn operands_mut(&mut self) -> impl Iterator<Item = &mut TensorId> {
        let values = self.coordinates.iter_mut().filter_map(|c| match c {
            Coordinate::Affine(_) => None,
            Coordinate::Value { tensor, .. } => Some(tensor),
        });
        std::iter::once(&mut self.tensor).chain(values)
    }

    /// The exception for `value` in a dimension of extent `size`.
    pub fn out_of_range(&self, value: i64, size: i64) -> String {
        self.message
            .replace("{index}", &value.to_string())
            .replace("{size}", &size.to_string())
    }

    /// Whether a value that names no place of a dimension of extent `size` raises. PyTorch's `index` does not look at values where the
    /// result is empty, unless there is no place at all.
    pub fn checks_values(&self, size: i64) -> bool {
        !self.from_end || size == 0 || self.output.numel() > 0
    }

    /// The values that name a place of a dimension of extent `size`.
    pub fn valid(&self, size: i64) -> std::ops::Range<i64> {
        let first = if self.from_end { -size } else { 0 };
        first..size
    }
}
