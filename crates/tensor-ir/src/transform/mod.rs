//! Transformations of tensor graphs, one file each.
//!
//! All of them preserve the values of the outputs, bit by bit, except for the order of the sums that [`merge_matmuls`] batches. They visit live
//! tensors in topological order, and change the graph through a [`Rewriter`](rewriter::Rewriter).

pub mod fold_constants;
pub mod fuse;
pub mod materialize_views;
pub mod merge_matmuls;
pub mod rewriter;
pub mod simplify;
