//! Detection of forks: whether a value was created in the current process.

use crate::sys;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

/// Identifies the process in which it was created. In a forked child of that process, [`Origin::is_here`] returns false.
///
/// The mark is a page that Linux clears in every child (since 4.14). Without such a page, process ids are compared, which may be
/// reused, and differ between namespaces.
pub struct Origin {
    /// 1 in the process that created it; null if the system refused the page.
    mark: *mut AtomicU32,
    process: c_int,
}

// SAFETY: the mark is atomic and is written by `new` only.
unsafe impl Send for Origin {}
// SAFETY: as above.
unsafe impl Sync for Origin {}

impl Origin {
    /// Identifies the current process.
    pub fn new() -> Origin {
        let mark = sys::page_cleared_by_fork().cast::<AtomicU32>();
        if !mark.is_null() {
            // SAFETY: a fresh page, which is aligned and large enough.
            unsafe { (*mark).store(1, Ordering::Relaxed) };
        }
        Origin {
            mark,
            process: sys::process(),
        }
    }

    /// Returns whether the current process is the one that created this.
    pub fn is_here(&self) -> bool {
        if self.mark.is_null() {
            return self.process == sys::process();
        }
        // SAFETY: the page is mapped until this is dropped.
        unsafe { (*self.mark).load(Ordering::Relaxed) == 1 }
    }
}

impl Default for Origin {
    fn default() -> Origin {
        Origin::new()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        if !self.mark.is_null() {
            // SAFETY: `new` mapped the page, and there are no other uses.
            unsafe { sys::unmap_page(self.mark.cast()) };
        }
    }
}
