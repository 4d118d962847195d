//! A gate around calls of the compiler: a fork must copy neither a lock that another thread holds nor data that it is changing.
//!
//! `fork` copies the calling thread only. Locks that other threads hold are never released in the child. So `fork` waits, for at most
//! [`PATIENCE`], until no other thread is inside a call, and new calls wait until `fork` has returned. If that takes longer, calls are refused in
//! the child.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest time that `fork` waits for calls of other threads: longer than most methods take to compile.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest time that a call waits for a `fork`, which includes the time for copying the tables of pages.
const FORK_TIME: Duration = Duration::from_secs(10);
/// Time between two polls.
const PAUSE: Duration = Duration::from_micros(100);

/// Threads that are inside calls.
static INSIDE: AtomicU32 = AtomicU32::new(0);
/// Calls of `fork` that have started and not returned.
static FORKING: AtomicU32 = AtomicU32::new(0);
/// Whether this process was forked while another thread was inside a call.
static IS_TORN: AtomicBool = AtomicBool::new(false);
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Nesting depth of calls on the current thread: callbacks make calls of their own.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Whether the `fork` that the current thread is calling timed out.
    static GAVE_UP: Cell<bool> = const { Cell::new(false) };
}

/// The error of a refused call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn;

impl std::fmt::Display for Torn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "this process was forked while another thread of its parent was using the compiler, which cannot be used here: fork before the \
             other threads start, or let the child execute a program",
        )
    }
}

impl std::error::Error for Torn {}

/// A guard for a call of the compiler, which ends when the guard is dropped.
#[derive(Debug)]
pub struct Inside {
    /// The guard must be dropped on the thread that created it.
    _thread: std::marker::PhantomData<*mut ()>,
}

/// Begins a call of the compiler on the current thread. Calls may be nested.
///
/// # Errors
/// In a process that was forked while another thread was inside a call.
pub fn enter() -> Result<Inside, Torn> {
    if IS_TORN.load(Ordering::Relaxed) {
        return Err(Torn);
    }
    let depth = DEPTH.get();
    if depth == 0 {
        register();
        let mut start = None;
        loop {
            INSIDE.fetch_add(1, Ordering::SeqCst);
            // A callback on a thread of a call that `fork` waits for must not wait for `fork` forever.
            let waits =
                FORKING.load(Ordering::SeqCst) > 0 && start.get_or_insert_with(Instant::now).elapsed() < FORK_TIME;
            if !waits {
                break;
            }
            INSIDE.fetch_sub(1, Ordering::SeqCst);
            sleep(PAUSE);
        }
    }
    DEPTH.set(depth + 1);
    Ok(Inside {
        _thread: std::marker::PhantomData,
    })
}

impl Drop for Inside {
    fn drop(&mut self) {
        let depth = DEPTH.get().saturating_sub(1);
        DEPTH.set(depth);
        if depth == 0 {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Returns 1 if the current thread is inside a call, else 0.
fn own() -> u32 {
    u32::from(DEPTH.get() > 0)
}

extern "C" fn before_fork() {
    FORKING.fetch_add(1, Ordering::SeqCst);
    let start = Instant::now();
    let is_alone = || INSIDE.load(Ordering::SeqCst) <= own();
    while !is_alone() && start.elapsed() < PATIENCE {
        sleep(PAUSE);
    }
    GAVE_UP.set(!is_alone());
}

extern "C" fn after_fork_in_parent() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

extern "C" fn after_fork_in_child() {
    FORKING.store(0, Ordering::SeqCst);
    INSIDE.store(own(), Ordering::SeqCst);
    if GAVE_UP.get() {
        IS_TORN.store(true, Ordering::SeqCst);
    }
}

/// Registers the handlers, once per process.
fn register() {
    // SAFETY: the C library's own declaration.
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> c_int;
    }
    if IS_REGISTERED.load(Ordering::Relaxed) || IS_REGISTERED.swap(true, Ordering::SeqCst) {
        return;
    }
    // SAFETY: the handlers access atomics and cells only. If registration fails for lack of memory, forks are not
    // protected.
    unsafe { pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    // SAFETY: the C library's own declarations.
    unsafe extern "C" {
        fn fork() -> c_int;
        fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn _exit(status: c_int) -> !;
    }

    /// Forks, runs `work` in the child, and returns its result.
    fn in_child(work: impl FnOnce() -> c_int) -> c_int {
        // SAFETY: the child only runs `work`, which takes no locks.
        let child = unsafe { fork() };
        if child == 0 {
            let status = work();
            // SAFETY: it ends the child.
            unsafe { _exit(status) };
        }
        let mut status = -1;
        // SAFETY: `status` is writable.
        assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
        status >> 8
    }

    fn status() -> c_int {
        match enter() {
            Ok(_) => 1,
            Err(Torn) => 2,
        }
    }

    /// There is only one test, because the state belongs to the process.
    #[test]
    fn forks_wait_for_calls_of_other_threads_and_children_refuse_where_they_do_not_end() {
        assert_eq!(in_child(status), 1);
        // Within a call of the same thread.
        let call = enter().unwrap();
        let inner = enter().unwrap();
        assert_eq!(in_child(status), 1);
        drop(inner);
        drop(call);
        let during = |time: Duration| {
            std::thread::scope(|scope| {
                let (begun, wait) = std::sync::mpsc::channel();
                scope.spawn(move || {
                    let call = enter().unwrap();
                    begun.send(()).unwrap();
                    sleep(time);
                    drop(call);
                });
                wait.recv().unwrap();
                in_child(status)
            })
        };
        assert_eq!(during(Duration::from_millis(300)), 1);
        assert_eq!(during(PATIENCE + Duration::from_secs(2)), 2);
        // The parent is not affected.
        assert_eq!(status(), 1);
        assert_eq!(INSIDE.load(Ordering::SeqCst), 0);
    }
}
