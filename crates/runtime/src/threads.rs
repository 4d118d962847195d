//! Threads for large loops: one pool per process, started on first use.
//!
//! Threads do not survive a fork: in the child process, no thread would run the tasks of its parent's pool, and a wait for them would never end. So a pool
//! belongs to the process that started it, and a child starts its own.

use frazil_limits::{Budget, Latch};
use frazil_rt::{Origin, SignalsBlocked};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

/// Stack size of a thread in bytes, as for the main thread.
const STACK_BYTES: usize = 8 << 20;

/// A thread pool with the process that owns it. It is never dropped, because another process would wait for its threads forever.
struct Owned {
    origin: Origin,
    /// The thread pool; `None` if the system cannot start any thread.
    pool: Option<ManuallyDrop<ThreadPool>>,
    /// The pool of the first child process that needed one, after a fork of this process.
    forked: OnceLock<Box<Owned>>,
}

impl Owned {
    fn new() -> Owned {
        Owned {
            origin: Origin::new(),
            pool: start(0, "frazil-loop").map(ManuallyDrop::new),
            forked: OnceLock::new(),
        }
    }
}

/// The pool of the first process that needed one. Forked processes have their own, linked by [`Owned::forked`].
static FIRST: OnceLock<Box<Owned>> = OnceLock::new();

fn pool() -> Option<&'static ThreadPool> {
    let mut place = &FIRST;
    loop {
        match place.get() {
            Some(owned) if owned.origin.is_here() => return owned.pool.as_deref(),
            Some(owned) => place = &owned.forked,
            None => {
                // Threads are started before the place is locked, which a fork could leave locked.
                let new = Box::new(Owned::new());
                if let Err(mut late) = place.set(new) {
                    late.pool.take().map(ManuallyDrop::into_inner);
                }
            }
        }
    }
}

/// Returns a pool of `threads` threads named `NAME-0` and so on, or of as many as the system allows; `None` for fewer than two.
pub fn pool_of(threads: usize, name: &'static str) -> Option<ThreadPool> {
    match threads {
        0 | 1 => None,
        n => start(n, name),
    }
}

/// Returns a pool as [`pool_of`] does, also of one thread. For 0, the number of threads is the number of processors, or the value of rayon's environment
/// variable.
fn start(threads: usize, name: &'static str) -> Option<ThreadPool> {
    let _blocked = SignalsBlocked::new();
    let mut count = threads;
    loop {
        let builder = ThreadPoolBuilder::new().num_threads(count);
        if let Ok(pool) = builder.thread_name(move |number| format!("{name}-{number}")).build() {
            return Some(pool);
        }
        let tried = match count {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        count = tried / 2;
        if count == 0 {
            return None;
        }
    }
}

/// Runs `work`, whose parallel iterators use threads of the current process: the caller's pool, or the process's. If the system refuses threads, everything
/// runs on the caller.
pub fn parallel<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    if rayon::current_thread_index().is_some() {
        return work();
    }
    if let Some(pool) = pool() {
        return install(pool, work);
    }
    // The caller becomes a pool of one, for good: rayon would fail to start its own.
    if let Ok(alone) = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build() {
        std::mem::forget(alone);
    }
    work()
}

/// Runs `work` on a thread of `pool` while the calling thread waits, and checks for interruptions if the calling thread is responsible for them.
pub fn install<R: Send>(pool: &ThreadPool, work: impl FnOnce() -> R + Send) -> R {
    if !frazil_limits::polls() || rayon::current_thread_index().is_some() {
        return pool.install(work);
    }
    let (latch, mut result) = (Latch::new(), None);
    pool.in_place_scope(|scope| {
        let finishing = latch.finishing();
        scope.spawn(|_| {
            let _finishing = finishing;
            result = Some(work());
        });
        latch.wait();
    });
    match result {
        Some(result) => result,
        None => unreachable!("the scope has run its work, or a panic ended it"),
    }
}

/// Runs `work` on a thread outside of all pools, and waits for it.
///
/// A pool's thread that waits for parallel work runs other work of the pool meanwhile. If that work waits for a result of the first, there is a deadlock. If
/// the system refuses a thread, `work` runs on the caller.
pub fn outside_of_pools<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    if rayon::current_thread_index().is_none() {
        return work();
    }
    let mut work = Some(work);
    let (budget, latch) = (Budget::current(), Latch::new());
    let result = std::thread::scope(|scope| {
        let finishing = latch.finishing();
        let run = || {
            let _finishing = finishing;
            let _entered = budget.as_ref().map(Budget::enter);
            work.take().map(|work| work())
        };
        let thread = std::thread::Builder::new()
            .name("frazil-make".into())
            .stack_size(STACK_BYTES);
        let blocked = SignalsBlocked::new();
        let started = thread.spawn_scoped(scope, run);
        drop(blocked);
        let started = started.ok()?;
        latch.wait();
        match started.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    match (result, work) {
        (Some(result), _) => result,
        (None, Some(work)) => work(),
        (None, None) => unreachable!("a thread that has taken the work gives its result"),
    }
}

/// Calls `work` on each chunk of `size` elements of `out`, with the chunk's index and a state that `state` creates for each thread.
pub(crate) fn each_chunk<T: Send, S, E: Send>(
    out: &mut [T],
    size: usize,
    state: impl Fn() -> S + Send + Sync,
    work: impl Fn(&mut S, (usize, &mut [T])) -> Result<(), E> + Send + Sync,
) -> Result<(), E> {
    let parts = out.par_chunks_mut(size).enumerate();
    parallel(|| parts.try_for_each_init(state, work))
}
