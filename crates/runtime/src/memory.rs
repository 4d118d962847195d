//! Checked allocation for all buffers whose size a program determines. If the system refuses a request, the result is an error with PyTorch's message instead
//! of an abort.
//!
//! A request that exceeds the current thread's budget returns the same error; the budget records that it was the cause.

use bytemuck::Zeroable;
use thiserror::Error;

/// Allocation failed, or the request exceeds the memory limit of the current thread's [`frazil_limits::Budget`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate {bytes} bytes. Error code 12 (Cannot allocate memory)"
)]
pub struct OutOfMemory {
    /// Size of the request in bytes.
    pub bytes: usize,
}

/// Checks that the budget allows `len` items of type `T`; returns their size in bytes.
fn room<T>(len: usize) -> Result<usize, OutOfMemory> {
    let bytes = len.saturating_mul(size_of::<T>());
    match frazil_limits::check_memory(bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(OutOfMemory { bytes }),
    }
}

/// Returns `bytes` zero bytes. Pages of large buffers remain untouched.
///
/// # Errors
/// When the allocator refuses.
pub fn zeroed(bytes: usize) -> Result<Vec<u8>, OutOfMemory> {
    zeros(bytes)
}

/// Returns `len` zeros. Pages of large buffers remain untouched.
///
/// # Errors
/// When the allocator refuses.
pub fn zeros<T: Zeroable>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    let bytes = room::<T>(len)?;
    bytemuck::allocation::try_zeroed_vec(len).map_err(|()| OutOfMemory { bytes })
}

/// Returns an empty vector with room for `len` elements.
///
/// # Errors
/// When the allocator refuses.
pub fn with_capacity<T>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    let bytes = room::<T>(len)?;
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).map_err(|_| OutOfMemory { bytes })?;
    Ok(vec)
}

/// Returns `len` copies of `value`.
///
/// # Errors
/// When the allocator refuses.
pub fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>, OutOfMemory> {
    let mut vec = with_capacity(len)?;
    vec.resize(len, value);
    Ok(vec)
}

/// Collects `items` into a vector of exact size.
///
/// # Errors
/// When the allocator refuses the memory for them.
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, OutOfMemory> {
    let mut vec = with_capacity(items.len())?;
    vec.extend(items);
    Ok(vec)
}

/// Returns a copy of `items`.
///
/// # Errors
/// When the allocator refuses the memory for it.
pub fn copied<T: Copy>(items: &[T]) -> Result<Vec<T>, OutOfMemory> {
    let mut vec = with_capacity(items.len())?;
    vec.extend_from_slice(items);
    Ok(vec)
}

/// Checks that the allocator could return memory for `len` items of `bytes` bytes each, which will be allocated one by one.
///
/// # Errors
/// When it could not.
pub fn check_items(len: i64, bytes: usize) -> Result<(), OutOfMemory> {
    let len = usize::try_from(len).unwrap_or(0);
    check_available(len.saturating_mul(bytes))
}

/// Checks that the allocator could return `bytes` bytes now. Kernels check their arguments with this before they copy elements into their own vectors.
///
/// # Errors
/// When it could not.
pub fn check_available(bytes: usize) -> Result<(), OutOfMemory> {
    with_capacity::<u8>(bytes).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_requests_are_errors() {
        assert_eq!(zeroed(100).map(|v| v.len()), Ok(100));
        assert_eq!(filled(3, 7u16), Ok(vec![7; 3]));
        assert_eq!(collected([1, 2].into_iter()), Ok(vec![1, 2]));
        for bytes in [1 << 60, usize::MAX] {
            assert_eq!(zeroed(bytes), Err(OutOfMemory { bytes }));
            assert_eq!(check_available(bytes), Err(OutOfMemory { bytes }));
        }
        assert_eq!(with_capacity::<u64>(1 << 61), Err(OutOfMemory { bytes: usize::MAX }));
        assert_eq!(zeros::<u64>(1 << 61), Err(OutOfMemory { bytes: usize::MAX }));
        assert_eq!(copied(&[1, 2]), Ok(vec![1, 2]));
        assert_eq!(check_items(-1, 8), Ok(()));
        assert_eq!(check_items(i64::MAX, 8), Err(OutOfMemory { bytes: usize::MAX }));
    }
}
