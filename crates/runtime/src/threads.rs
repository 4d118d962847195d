//! Threads for large loops: one pool a process, which is started when it is first needed.
//!
//! Threads do not survive a fork: in the child nobody would take up what is handed to a pool of its parent, and who waits for it would wait for ever.
//! So a pool serves the process that started it, and a child starts its own.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::mem::ManuallyDrop;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A pool and the process that it belongs to. It is never dropped: in another process that would wait for its threads.
struct Owned {
    process: u32,
    /// `None` where the system refuses threads.
    pool: Option<ManuallyDrop<ThreadPool>>,
}

impl Owned {
    fn new(process: u32) -> Owned {
        let pool = ThreadPoolBuilder::new().build().ok();
        Owned {
            process,
            pool: pool.map(ManuallyDrop::new),
        }
    }
}

/// The pool of the process that needed one first: read without a lock, which a fork could leave locked.
static FIRST: OnceLock<Owned> = OnceLock::new();
/// That of a process which was forked from it.
static FORKED: Mutex<Option<&'static Owned>> = Mutex::new(None);

fn pool() -> Option<&'static ThreadPool> {
    let process = std::process::id();
    let first = FIRST.get_or_init(|| Owned::new(process));
    if first.process == process {
        return first.pool.as_deref();
    }
    let mut forked = FORKED.lock().unwrap_or_else(PoisonError::into_inner);
    let owned = match *forked {
        Some(owned) if owned.process == process => owned,
        _ => forked.insert(Box::leak(Box::new(Owned::new(process)))),
    };
    owned.pool.as_deref()
}

/// Runs `work`, whose parallel iterators are shared by threads of this very process: those of the pool that the caller belongs to, or of the
/// process's. Where the system refuses threads, the caller does everything.
pub fn parallel<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    if rayon::current_thread_index().is_some() {
        return work();
    }
    if let Some(pool) = pool() {
        return pool.install(work);
    }
    // The caller becomes a pool of one, for good: rayon would fail to start its own.
    if let Ok(alone) = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build() {
        std::mem::forget(alone);
    }
    work()
}

/// Calls `work` on each chunk of `size` elements of `out` with its index, and with a state that `state` makes for each thread.
pub(crate) fn each_chunk<T: Send, S, E: Send>(
    out: &mut [T],
    size: usize,
    state: impl Fn() -> S + Send + Sync,
    work: impl Fn(&mut S, (usize, &mut [T])) -> Result<(), E> + Send + Sync,
) -> Result<(), E> {
    let parts = out.par_chunks_mut(size).enumerate();
    parallel(|| parts.try_for_each_init(state, work))
}
