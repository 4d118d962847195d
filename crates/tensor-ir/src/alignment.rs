//! The alignment of tensors in buffers.

/// Alignment of tensors in buffers, in bytes: a cache line, and the widest vector register.
pub const ALIGNMENT: usize = 64;

/// Returns `n` rounded up to a multiple of [`ALIGNMENT`].
pub fn align_up(n: usize) -> usize {
    n.next_multiple_of(ALIGNMENT)
}
