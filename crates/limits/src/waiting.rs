//! Waiting for other threads with checks for interruption.

use crate::budget::{PAUSE, check, polls};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};

/// A counter of the threads for which the current thread waits.
///
/// ```
/// use frazil_limits::Latch;
///
/// let latch = Latch::new();
/// std::thread::scope(|scope| {
///     let finishing = latch.finishing();
///     let thread = scope.spawn(move || {
///         let _finishing = finishing;
///         3
///     });
///     latch.wait(); // calls the check of an interruptible scope meanwhile
///     assert_eq!(thread.join().ok(), Some(3));
/// });
/// ```
pub struct Latch {
    running: AtomicUsize,
    waiter: Thread,
}

impl Default for Latch {
    fn default() -> Latch {
        Latch::new()
    }
}

impl Latch {
    /// Returns a latch on which the current thread will wait.
    pub fn new() -> Latch {
        Latch {
            running: AtomicUsize::new(0),
            waiter: thread::current(),
        }
    }

    /// Returns a guard that a thread drops at its end.
    pub fn finishing(&self) -> Finishing<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Finishing(self)
    }

    /// Waits until all guards from [`finishing`](Latch::finishing) are dropped, and checks for interruptions meanwhile. Returns at once on a thread that has
    /// nothing to check; such a thread can join the others directly.
    pub fn wait(&self) {
        while polls() && self.running.load(Ordering::Acquire) > 0 {
            // The other threads see the outcome of this check.
            let _ = check();
            thread::park_timeout(PAUSE);
        }
    }
}

/// The guard of a thread for which another thread waits; see [`Latch`].
pub struct Finishing<'l>(&'l Latch);

impl Drop for Finishing<'_> {
    fn drop(&mut self) {
        let waiter = self.0.waiter.clone();
        if self.0.running.fetch_sub(1, Ordering::Release) == 1 {
            waiter.unpark();
        }
    }
}
