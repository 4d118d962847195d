//! Transformations of tensor graphs, a file each.

pub mod fold_constants;
pub mod fuse;
pub mod materialize_views;
pub mod merge_matmuls;
pub mod simplify;
