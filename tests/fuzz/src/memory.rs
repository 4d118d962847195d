//! Counts the bytes of the heap that are in use, so that targets can bound them.
//!
//! The allocator is installed in fuzzing builds alone (`--cfg fuzzing`). In others, nothing is counted and nothing refused.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Bytes in use from which on large requests are refused.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Smaller requests are never refused: few callers can go on without a few bytes.
#[cfg(fuzzing)]
const LARGE: usize = 1 << 20;

/// Bytes that a reader may use at most for an input of `len` bytes.
pub fn reader_budget(len: usize) -> usize {
    20 * len + (32 << 20)
}

/// Does `work`, which may use at most `budget` bytes more than are in use.
///
/// # Panics
/// When it uses more.
pub fn within<R>(budget: usize, work: impl FnOnce() -> R) -> R {
    let start = LIVE.load(Relaxed);
    PEAK.store(start, Relaxed);
    let result = work();
    let used = PEAK.load(Relaxed).saturating_sub(start);
    assert!(
        used <= budget,
        "{used} bytes were used at a time, and {budget} are allowed"
    );
    result
}

/// Does `work` while the allocator refuses large requests beyond `limit` bytes, as a system without more memory does.
pub fn refusing<R>(limit: usize, work: impl FnOnce() -> R) -> R {
    LIMIT.store(LIVE.load(Relaxed).saturating_add(limit), Relaxed);
    let result = work();
    LIMIT.store(usize::MAX, Relaxed);
    result
}

#[cfg(fuzzing)]
mod allocator {
    use super::{LARGE, LIMIT, LIVE, PEAK};
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::ptr::null_mut;
    use std::sync::atomic::Ordering::Relaxed;

    struct Counting;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    fn is_refused(size: usize) -> bool {
        size >= LARGE && LIVE.load(Relaxed).saturating_add(size) > LIMIT.load(Relaxed)
    }

    fn add(size: usize) {
        let live = LIVE.fetch_add(size, Relaxed) + size;
        PEAK.fetch_max(live, Relaxed);
    }

    // SAFETY: the system's allocator does the work; the caller guarantees its conditions.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if is_refused(layout.size()) {
                return null_mut();
            }
            add(layout.size());
            // SAFETY: as above.
            unsafe { System.alloc(layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            if is_refused(layout.size()) {
                return null_mut();
            }
            add(layout.size());
            // SAFETY: as above.
            unsafe { System.alloc_zeroed(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            LIVE.fetch_sub(layout.size(), Relaxed);
            // SAFETY: as above.
            unsafe { System.dealloc(pointer, layout) }
        }

        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            if size > layout.size() && is_refused(size - layout.size()) {
                return null_mut();
            }
            // Both may be there at a time, where the block moves.
            add(size);
            LIVE.fetch_sub(layout.size(), Relaxed);
            // SAFETY: as above.
            unsafe { System.realloc(pointer, layout, size) }
        }
    }
}
