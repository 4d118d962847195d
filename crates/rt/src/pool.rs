//! A small pool of threads for one caller at a time.

use crate::origin::Origin;
use crate::signals::SignalsBlocked;
use crate::steps::TaskFn;
use crate::sys;
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicUsize, Ordering};

/// Iterations of the waiting loop before a thread sleeps: some tens of microseconds, longer than the gap between two runs.
const SPINS: u32 = 4000;
/// Further iterations in which a thread waits during a run and yields its processor: some milliseconds, longer than kernels that run on one
/// thread.
const YIELDS: u32 = 20_000;
/// Maximum number of threads of a pool, including the caller.
const MAX_THREADS: usize = 64;

/// Threads that run tasks for one caller. They sleep if nothing has run for a moment, or if a run has no tasks for them for a long time. They end when the pool
/// is dropped.
///
/// Threads do not survive a fork. The first run in the child starts new ones.
pub struct Pool {
    shared: *mut Shared,
    /// Number of working threads, including the caller.
    threads: usize,
    /// The process of the threads. Only the caller accesses it.
    origin: Cell<Origin>,
}

// SAFETY: everything behind the pointer is atomic, or written by the caller only while no worker reads it.
unsafe impl Send for Pool {}

struct Shared {
    /// Number of loops so far; the only odd value is [`STOP`].
    epoch: AtomicU32,
    sleepers: AtomicU32,
    /// [`OPEN`] while workers may join the current loop, plus the number of workers inside. The caller waits for these only, so a worker that the system has
    /// not scheduled yet causes no delay.
    state: AtomicU32,
    /// 1 while the caller sleeps on `state`.
    caller_sleeps: AtomicU32,
    /// The processor on which the caller runs while workers wake up.
    busy: AtomicI32,
    /// Number of workers that have started, from which each gets its index.
    started: AtomicU32,
    job: UnsafeCell<Job>,
    /// Number of workers, and their threads. Only the caller accesses them; they are atomic because they are written when workers already have a
    /// reference to this structure.
    workers: AtomicUsize,
    running: Running,
    threads: [AtomicUsize; MAX_THREADS],
    /// The next task of each part of the current loop.
    taken: [Cursor; MAX_THREADS],
}

/// A counter in its own cache line.
#[repr(align(64))]
struct Cursor(AtomicI64);

/// 1 during a run. It has a cache line of its own, apart from the state that waiting threads read, so that the caller need not fetch it from them.
#[repr(align(64))]
struct Running(AtomicU32);

#[derive(Clone, Copy)]
struct Job {
    task: Option<TaskFn>,
    argument: *mut c_void,
    /// Number of parts of the loop: one per thread.
    parts: i64,
    /// Minimum number of tasks per part, and the number of parts with one task more.
    each: i64,
    more: i64,
    /// Number of tasks that a thread reserves at once.
    chunk: i64,
    /// Whether the tasks of a part run in reverse order.
    backward: bool,
}

impl Job {
    /// Returns the first task of part `part`. Loops with the same number of tasks have the same parts. So a thread often finds its output of one loop in its
    /// cache in the next.
    fn first(&self, part: i64) -> i64 {
        part * self.each + part.min(self.more)
    }
}

const STOP: u32 = u32::MAX;
const OPEN: u32 = 1 << 31;

impl Pool {
    /// Returns a pool of `threads` threads, including the caller; at most 64. `None` if memory is short. If the system refuses to
    /// start a thread, the pool is smaller.
    pub fn new(threads: usize) -> Option<Pool> {
        let shared = sys::allocate(size_of::<Shared>()).cast::<Shared>();
        if shared.is_null() {
            return None;
        }
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { start(shared, threads) };
        Some(Pool {
            shared,
            threads,
            origin: Cell::new(Origin::new()),
        })
    }

    /// Returns whether the threads belong to the current process.
    fn is_here(&self) -> bool {
        // SAFETY: only the caller accesses the cell, and it does not write it meanwhile.
        unsafe { (*self.origin.as_ptr()).is_here() }
    }

    /// Returns the number of working threads, including the caller.
    pub fn threads(&self) -> usize {
        self.workers() + 1
    }

    fn workers(&self) -> usize {
        self.shared().workers.load(Ordering::Relaxed)
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the memory lives until the pool is dropped; workers and the caller share its atomics and its job.
        unsafe { &*self.shared }
    }

    /// Begins a run of several loops, which ends when the result is dropped. Threads stay awake between the loops.
    ///
    /// Only one thread may call this function at a time.
    pub fn begin_run(&self) -> Run<'_> {
        if !self.is_here() {
            // SAFETY: the threads that used the memory are not in this process.
            unsafe { start(self.shared, self.threads) };
            self.origin.set(Origin::new());
        }
        let shared = self.shared();
        shared.running.0.store(1, Ordering::Relaxed);
        Run { shared }
    }

    /// Runs `task(argument, begin, end)` over `0..tasks` in disjoint ranges on all threads; with `backward`, each thread starts with the
    /// last of its ranges.
    ///
    /// # Safety
    /// `task` may be called in this way on any thread; only one thread calls this function at a time, within
    /// [`Pool::begin_run`].
    pub unsafe fn parallel_for(&self, tasks: i64, backward: bool, task: TaskFn, argument: *mut c_void) {
        let shared = self.shared();
        let workers = self.workers();
        if workers == 0 || tasks <= 1 {
            // SAFETY: by the contract of this function.
            unsafe { task(argument, 0, tasks) };
            return;
        }
        let threads = workers as i64 + 1;
        // Several ranges per part, so that others can help a thread that starts late or is interrupted.
        let each = tasks.checked_div(threads).unwrap_or(0);
        let job = Job {
            task: Some(task),
            argument,
            parts: threads,
            each,
            more: tasks - each * threads,
            chunk: (each / 4).max(1),
            backward,
        };
        // SAFETY: the last loop ended closed and without workers inside, so no thread reads the job.
        unsafe { *shared.job.get() = job };
        for (part, taken) in shared.taken.iter().take(threads as usize).enumerate() {
            taken.0.store(job.first(part as i64), Ordering::Relaxed);
        }
        if shared.sleepers.load(Ordering::Relaxed) > 0 {
            shared.busy.store(sys::processor(), Ordering::Relaxed);
        }
        shared.state.store(OPEN, Ordering::SeqCst);
        let epoch = shared.epoch.load(Ordering::Relaxed).wrapping_add(2) & !1;
        shared.epoch.store(epoch, Ordering::SeqCst);
        if shared.sleepers.load(Ordering::SeqCst) > 0 {
            sys::futex_wake_all(&shared.epoch);
        }
        work(shared, job, 0);
        shared.state.fetch_and(!OPEN, Ordering::SeqCst);
        let mut waiting = Waiting::default();
        loop {
            let inside = shared.state.load(Ordering::Acquire);
            if inside == 0 {
                return;
            }
            if !waiting.turn(|| true) {
                shared.caller_sleeps.store(1, Ordering::SeqCst);
                sys::futex_wait(&shared.state, inside);
                shared.caller_sleeps.store(0, Ordering::SeqCst);
            }
        }
    }
}

/// A run of several loops; see [`Pool::begin_run`].
pub struct Run<'a> {
    shared: &'a Shared,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.shared.running.0.store(0, Ordering::Relaxed);
    }
}

/// The time for which a thread has waited without sleeping.
#[derive(Default)]
struct Waiting {
    spins: u32,
    yields: u32,
}

impl Waiting {
    /// Waits for a moment. Returns false when the thread should sleep.
    ///
    /// A thread that sleeps between two kernels starts the next one late: its processor must be woken. In a virtual machine, an idle processor is assigned to
    /// other machines, which may keep it for milliseconds.
    fn turn(&mut self, is_running: impl FnOnce() -> bool) -> bool {
        if self.spins < SPINS {
            self.spins += 1;
            core::hint::spin_loop();
            return true;
        }
        if is_running() {
            self.yields += 1;
            sys::give_way();
            return self.yields < YIELDS;
        }
        // Another run may follow the one that has just ended.
        let has_just_ended = self.yields > 0;
        *self = Waiting::default();
        has_just_ended
    }
}

/// Initialises the state of a new pool in `shared`, and starts its threads.
///
/// # Safety
/// The memory is large enough and aligned, and no thread uses it.
unsafe fn start(shared: *mut Shared, threads: usize) {
    let job = Job {
        task: None,
        argument: core::ptr::null_mut(),
        parts: 0,
        each: 0,
        more: 0,
        chunk: 1,
        backward: false,
    };
    // SAFETY: by the contract of this function; workers are started after the memory is initialised, and read neither
    // `workers` nor `threads`.
    unsafe {
        shared.write(Shared {
            epoch: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            state: AtomicU32::new(0),
            caller_sleeps: AtomicU32::new(0),
            busy: AtomicI32::new(sys::processor()),
            started: AtomicU32::new(0),
            job: UnsafeCell::new(job),
            workers: AtomicUsize::new(0),
            running: Running(AtomicU32::new(0)),
            threads: [const { AtomicUsize::new(0) }; MAX_THREADS],
            taken: [const { Cursor(AtomicI64::new(0)) }; MAX_THREADS],
        });
        let _blocked = SignalsBlocked::new();
        for _ in 1..threads.min(MAX_THREADS) {
            let Some(thread) = sys::spawn(worker, shared.cast()) else {
                break;
            };
            let shared = &*shared;
            let workers = shared.workers.load(Ordering::Relaxed);
            if let Some(slot) = shared.threads.get(workers) {
                slot.store(thread, Ordering::Relaxed);
            }
            shared.workers.store(workers + 1, Ordering::Relaxed);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.is_here() {
            let shared = self.shared();
            shared.epoch.store(STOP, Ordering::SeqCst);
            sys::futex_wake_all(&shared.epoch);
            for thread in shared.threads.iter().take(self.workers()) {
                sys::join(thread.load(Ordering::Relaxed));
            }
        }
        // SAFETY: all workers have ended, or are not in this process.
        unsafe { sys::release(self.shared.cast()) };
    }
}

/// Runs the remaining tasks of part `own`, then those of the other parts.
fn work(shared: &Shared, job: Job, own: i64) {
    let Some(task) = job.task else { return };
    for part in (own..job.parts).chain(0..own) {
        let Some(taken) = shared.taken.get(part as usize) else {
            return;
        };
        let (first, end) = (job.first(part), job.first(part + 1));
        loop {
            let begin = taken.0.fetch_add(job.chunk, Ordering::Relaxed);
            if begin >= end {
                break;
            }
            let until = end.min(begin + job.chunk);
            let (begin, until) = match job.backward {
                true => (first + (end - until), first + (end - begin)),
                false => (begin, until),
            };
            // SAFETY: by `parallel_for`'s contract; the ranges are disjoint.
            unsafe { task(job.argument, begin, until) };
        }
    }
}

extern "C" fn worker(argument: *mut c_void) -> *mut c_void {
    // SAFETY: the pool joins its workers before it frees this.
    let shared = unsafe { &*argument.cast::<Shared>() };
    let own = i64::from(shared.started.fetch_add(1, Ordering::Relaxed)) + 1;
    sys::name_thread(own as usize);
    sys::leave_processor(shared.busy.load(Ordering::Relaxed));
    let mut seen = 0;
    loop {
        let mut waiting = Waiting::default();
        loop {
            let epoch = shared.epoch.load(Ordering::Acquire);
            if epoch == STOP {
                return core::ptr::null_mut();
            }
            if epoch != seen {
                seen = epoch;
                break;
            }
            if !waiting.turn(|| shared.running.0.load(Ordering::Relaxed) == 1) {
                shared.sleepers.fetch_add(1, Ordering::SeqCst);
                sys::futex_wait(&shared.epoch, seen);
                shared.sleepers.fetch_sub(1, Ordering::SeqCst);
                if shared.epoch.load(Ordering::Acquire) != seen {
                    sys::leave_processor(shared.busy.load(Ordering::Relaxed));
                }
            }
        }
        if !join(shared) {
            continue;
        }
        // SAFETY: the job was written before the loop was opened, and is not written again while this worker is inside.
        let job = unsafe { *shared.job.get() };
        work(shared, job, own);
        // 1: the loop is closed, and this was the last worker inside.
        if shared.state.fetch_sub(1, Ordering::SeqCst) == 1 && shared.caller_sleeps.load(Ordering::SeqCst) == 1 {
            sys::futex_wake_all(&shared.state);
        }
    }
}

/// Enters the current loop, unless it is closed.
fn join(shared: &Shared) -> bool {
    let mut state = shared.state.load(Ordering::Relaxed);
    while state & OPEN != 0 {
        match shared
            .state
            .compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => return true,
            Err(now) => state = now,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of iterations until the thread should sleep.
    fn turns(waiting: &mut Waiting, running: bool) -> u32 {
        let mut turns = 1;
        while waiting.turn(|| running) {
            turns += 1;
        }
        turns
    }

    #[test]
    fn a_run_keeps_threads_awake() {
        assert_eq!(turns(&mut Waiting::default(), false), SPINS + 1);
        let mut waiting = Waiting::default();
        assert_eq!(turns(&mut waiting, true), SPINS + YIELDS);
        // The next run may follow at once.
        assert_eq!(turns(&mut waiting, false), SPINS + 2);
    }

    unsafe extern "C" fn count(argument: *mut c_void, begin: i64, end: i64) {
        // SAFETY: the tests pass an array with one element per task.
        let counts = unsafe { core::slice::from_raw_parts(argument.cast::<AtomicU32>(), 1000) };
        for i in begin..end {
            counts[i as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    // SAFETY: the C library's own declarations.
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(status: i32) -> !;
    }

    /// Returns the contents of `file` for every thread of this process whose name is that of a pool's thread.
    fn of_threads(file: &str) -> Vec<String> {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let folders = tasks.map(|entry| entry.unwrap().path());
        let named = folders.filter(|folder| {
            let name = std::fs::read_to_string(folder.join("comm")).unwrap_or_default();
            name.trim_end()
                .strip_prefix("frazil-")
                .is_some_and(|number| number.parse::<u32>().is_ok())
        });
        named
            .filter_map(|folder| std::fs::read_to_string(folder.join(file)).ok())
            .collect()
    }

    /// Other tests have pools, too, so there may be more threads than those of this one.
    #[test]
    fn threads_have_names_and_leave_signals_to_the_host() {
        let pool = Pool::new(4).unwrap();
        let counts: Vec<AtomicU32> = (0..1000).map(|_| AtomicU32::new(0)).collect();
        // Threads set their names when they start.
        while pool.shared().started.load(Ordering::Relaxed) < 3 {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        let _run = pool.begin_run();
        // SAFETY: `count` only touches `counts`, which has 1000 elements.
        unsafe { pool.parallel_for(1000, false, count, counts.as_ptr().cast_mut().cast()) };
        let blocked = of_threads("status");
        assert!(blocked.len() >= 3, "{} threads have names", blocked.len());
        for status in blocked {
            let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
            let mask = u64::from_str_radix(line.trim(), 16).unwrap();
            for (signal, is_blocked) in [(2, true), (10, true), (14, true), (7, false), (11, false)] {
                assert_eq!(mask >> (signal - 1) & 1 == 1, is_blocked, "signal {signal}");
            }
        }
        let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let own = own
            .lines()
            .find_map(|line| line.strip_prefix("SigBlk:"))
            .unwrap()
            .trim();
        assert_eq!(u64::from_str_radix(own, 16), Ok(0), "the caller has its mask again");
    }

    #[test]
    fn a_forked_process_starts_its_own_threads() {
        let pool = Pool::new(4).unwrap();
        let counts: Vec<AtomicU32> = (0..1000).map(|_| AtomicU32::new(0)).collect();
        // SAFETY: `count` only touches `counts`, which has 1000 elements.
        let run = || unsafe { pool.parallel_for(1000, false, count, counts.as_ptr().cast_mut().cast()) };
        let all = |round: u32| counts.iter().all(|c| c.load(Ordering::Relaxed) == round);
        {
            let _run = pool.begin_run();
            run();
        }
        // SAFETY: the child calls nothing that needs a lock of another thread.
        let child = unsafe { fork() };
        if child == 0 {
            let is_restarted = {
                let _run = pool.begin_run();
                run();
                pool.is_here() && pool.threads() == 4
            };
            let status = i32::from(!is_restarted || !all(2));
            // Dropping joins the threads of the child.
            drop(pool);
            // SAFETY: it ends the child.
            unsafe { _exit(status) };
        }
        let mut status = -1;
        // SAFETY: `status` is writable.
        assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        let _run = pool.begin_run();
        run();
        assert!(all(2) && pool.threads() == 4);
    }

    #[test]
    fn runs_every_task_once() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads).unwrap();
            assert_eq!(pool.threads(), threads);
            let counts: Vec<AtomicU32> = (0..1000).map(|_| AtomicU32::new(0)).collect();
            let _run = pool.begin_run();
            for round in 1..=if cfg!(miri) { 3 } else { 200 } {
                // SAFETY: `count` only touches `counts`, which has 1000 elements.
                unsafe { pool.parallel_for(1000, round % 2 == 0, count, counts.as_ptr().cast_mut().cast()) };
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == round));
            }
        }
    }
}
