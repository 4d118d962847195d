//! Recognition of loop nests by their structure: which kernel family can run a [`Structured`].
//!
//! Operators do not matter. A convolution is a sum of products of two reads of which one slides over the result's
//! rows and columns; a matmul is one whose reads have rows, columns and a common inner loop; pooling reduces a
//! window. Other nests are [`Class::General`] and run as plain loops.

mod concat;
mod conv;
mod gemm;
mod nest;
mod pool;
mod window;

pub use concat::{ConcatClass, ConcatPart};
pub use conv::{ConvClass, ConvShape, Phase, Spread};
pub use gemm::{BatchLoop, GemmClass, GemmOperand};
pub use nest::{EpilogueClass, EpilogueOperand, OperandClass};
pub use pool::PoolClass;

use crate::graph::TensorGraph;
use frazil_runtime::structured::Structured;
use nest::Nest;

/// The pattern of a loop nest.
#[derive(Clone, Debug, PartialEq)]
pub enum Class {
    /// A convolution over rows and columns with constant weights.
    Conv(ConvClass),
    /// A matmul.
    Gemm(GemmClass),
    /// The reduction of a window.
    Pool(PoolClass),
    /// A concatenation of tensors along one dimension.
    Concat(ConcatClass),
    /// One result element from the elements of its operands, without a reduction.
    Pointwise,
    /// Any other loop nest.
    General,
}

/// Classifies `s`, a loop nest over tensors of `graph`.
pub fn classify(graph: &TensorGraph, s: &Structured) -> Class {
    if s.combine.is_none() {
        return match concat::recognise(graph, s) {
            Some(c) => Class::Concat(c),
            None => Class::Pointwise,
        };
    }
    // The reads of an empty loop may start outside of their tensors, as those of a flipped tensor without elements do. No kernel is faster for it.
    if s.domain.contains(&0) {
        return Class::General;
    }
    let nest = Nest::new(graph, s);
    let conv = conv::recognise(&nest);
    // If each image has one result, the images are the rows of a matmul, which reads the weights once for many of them. Images of one channel
    // are stored as rows already.
    let is_matrix = |c: &ConvShape| c.output == [1, 1] && (c.batch > 1 || c.in_channels == 1);
    let rows = conv.as_ref().is_some_and(|c| is_matrix(&c.shape));
    let product = (rows || conv.is_none()).then(|| gemm::recognise(&nest)).flatten();
    product
        .map(Class::Gemm)
        .or_else(|| conv.map(Class::Conv))
        .or_else(|| pool::recognise(&nest).map(Class::Pool))
        .unwrap_or(Class::General)
}

impl Class {
    /// True for the families whose kernels have an epilogue.
    pub fn has_epilogue(&self) -> bool {
        matches!(self, Class::Conv(_) | Class::Gemm(_) | Class::Pool(_))
    }

    /// Returns true if both belong to the same family of kernels.
    pub fn same_family(&self, other: &Class) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}
