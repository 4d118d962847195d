//! The alignment of buffers.

/// Every buffer offset is a multiple of this many bytes, and so is every caller's workspace.
pub const ALIGNMENT: usize = 64;

/// Bytes of a page of memory: a multiple of [`ALIGNMENT`].
pub const PAGE: usize = 4096;

pub use frazil_tensor_ir::align_up;
