//! The functions of the C library that the runtime uses.

use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::AtomicU32;

/// `pthread_t` of every Linux C library.
pub type Thread = usize;

// SAFETY: these are the C library's own declarations for Linux.
unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn pthread_create(
        thread: *mut Thread,
        attributes: *const c_void,
        start: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn pthread_join(thread: Thread, result: *mut *mut c_void) -> c_int;
    fn posix_memalign(out: *mut *mut c_void, alignment: usize, size: usize) -> c_int;
    fn free(pointer: *mut c_void);
    fn sched_getcpu() -> c_int;
    fn sched_yield() -> c_int;
    fn sched_getaffinity(thread: c_int, size: usize, mask: *mut c_void) -> c_int;
    fn sched_setaffinity(thread: c_int, size: usize, mask: *const c_void) -> c_int;
    fn getpid() -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
    fn pthread_sigmask(how: c_int, set: *const c_void, former: *mut c_void) -> c_int;
    fn mmap(
        address: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn munmap(address: *mut c_void, length: usize) -> c_int;
    fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
}

#[cfg(target_arch = "x86_64")]
const FUTEX: c_long = 202;
#[cfg(not(target_arch = "x86_64"))]
const FUTEX: c_long = 98;
const WAIT_PRIVATE: c_int = 128;
const WAKE_PRIVATE: c_int = 129;

/// Sleeps while `*word == expected`; may also return early.
pub fn futex_wait(word: &AtomicU32, expected: u32) {
    // SAFETY: the word is a live, aligned u32; the null timeout means no timeout.
    unsafe {
        syscall(
            FUTEX,
            word.as_ptr(),
            WAIT_PRIVATE,
            expected,
            core::ptr::null::<c_void>(),
        );
    }
}

/// Wakes all threads that sleep on `word`.
pub fn futex_wake_all(word: &AtomicU32) {
    // SAFETY: the word is a live, aligned u32.
    unsafe {
        syscall(FUTEX, word.as_ptr(), WAKE_PRIVATE, c_int::MAX);
    }
}

/// Starts a thread; `None` if the system refuses.
pub fn spawn(start: extern "C" fn(*mut c_void) -> *mut c_void, argument: *mut c_void) -> Option<Thread> {
    let mut thread = 0;
    // SAFETY: `thread` is writable; the argument is passed on untouched.
    let status = unsafe { pthread_create(&mut thread, core::ptr::null(), start, argument) };
    (status == 0).then_some(thread)
}

/// Names the current thread `frazil-NUMBER`, with at most 15 bytes, Linux's limit.
pub fn name_thread(number: usize) {
    const SET_NAME: c_int = 15;
    let mut name = *b"frazil-\0\0\0\0\0";
    let number = number % 1000;
    let digits = match number {
        0..10 => 1,
        10..100 => 2,
        _ => 3,
    };
    let mut rest = number;
    for slot in name[7..7 + digits].iter_mut().rev() {
        *slot = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // SAFETY: the name ends with a zero byte.
    unsafe {
        prctl(SET_NAME, name.as_ptr());
    }
}

/// Words of a signal set: 1024 bits, as in the C libraries' own sets.
const SIGNAL_WORDS: usize = 16;

/// A signal set, one bit per signal, in the layout of Linux's C libraries.
pub type SignalSet = [u64; SIGNAL_WORDS];

/// Signals that report a fault of the thread itself: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS.
const OWN_SIGNALS: [u32; 7] = [4, 5, 6, 7, 8, 11, 31];
const SET_MASK: c_int = 2;

/// Blocks all signals of the current thread except [`OWN_SIGNALS`]; returns its previous mask.
pub fn block_signals() -> SignalSet {
    let mut set = [u64::MAX; SIGNAL_WORDS];
    for signal in OWN_SIGNALS {
        set[0] &= !(1 << (signal - 1));
    }
    let mut former = [0; SIGNAL_WORDS];
    // SAFETY: both sets are as large as the largest of a C library.
    unsafe { pthread_sigmask(SET_MASK, set.as_ptr().cast(), former.as_mut_ptr().cast()) };
    former
}

/// Sets the signal mask of the current thread.
pub fn set_signals(set: &SignalSet) {
    // SAFETY: the set is as large as the largest of a C library.
    unsafe { pthread_sigmask(SET_MASK, set.as_ptr().cast(), core::ptr::null_mut()) };
}

/// Returns the id of the current process.
pub fn process() -> c_int {
    // SAFETY: the function has no requirements.
    unsafe { getpid() }
}

/// Size in bytes of the allocation: a page, or a part of one on machines with larger pages.
const PAGE: usize = 4096;

/// Returns a page of zeros that the system clears in forked processes; null if it cannot.
pub fn page_cleared_by_fork() -> *mut u8 {
    const READ_WRITE: c_int = 3;
    const PRIVATE_ANONYMOUS: c_int = 0x22;
    const WIPE_ON_FORK: c_int = 18;
    // SAFETY: a new mapping at an address that the system chooses; nothing else uses it when it is removed.
    unsafe {
        let page = mmap(core::ptr::null_mut(), PAGE, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
        if page.addr() == usize::MAX {
            return core::ptr::null_mut();
        }
        if madvise(page, PAGE, WIPE_ON_FORK) != 0 {
            munmap(page, PAGE);
            return core::ptr::null_mut();
        }
        page.cast()
    }
}

/// Unmaps a page from [`page_cleared_by_fork`].
///
/// # Safety
/// The page is not used any more.
pub unsafe fn unmap_page(page: *mut u8) {
    // SAFETY: by the contract of this function.
    unsafe { munmap(page.cast(), PAGE) };
}

/// Waits for the end of a thread that [`spawn`] started and that has not been joined.
pub fn join(thread: Thread) {
    // SAFETY: by this function's contract the thread is joinable.
    unsafe {
        pthread_join(thread, core::ptr::null_mut());
    }
}

/// Yields the processor to other threads.
pub fn give_way() {
    // SAFETY: the function has no requirements.
    unsafe {
        sched_yield();
    }
}

/// Returns the number of the processor that this thread currently runs on; negative if the system does not report it.
pub fn processor() -> i32 {
    if cfg!(miri) {
        // Miri does not support this function.
        return -1;
    }
    // SAFETY: the function has no requirements.
    unsafe { sched_getcpu() }
}

/// Moves this thread to another processor if it runs on `busy` and is allowed to run elsewhere. Its affinity is restored afterwards.
///
/// Linux often wakes a thread on the processor of its waker, in particular in virtual machines, whose idle processors it considers preempted by the host. Both
/// threads would share that processor until the next load balancing, milliseconds later.
pub fn leave_processor(busy: i32) {
    // A negative number means that the system did not report it.
    let Ok(number) = usize::try_from(busy) else { return };
    if processor() != busy {
        return;
    }
    let Some(allowed) = allowed_processors() else { return };
    let mut others = allowed;
    if let Some(word) = others.get_mut(number / 64) {
        *word &= !(1 << (number % 64));
    }
    if others != [0; MASK_WORDS] && others != allowed {
        for mask in [others, allowed] {
            // SAFETY: the mask has the given size; 0 is the calling thread.
            unsafe { sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
        }
    }
}

/// Words of a processor set: 1024 bits, as in the C library's own.
const MASK_WORDS: usize = 16;

/// Returns the processors on which this thread may run, one bit each; `None` if the system does not report them.
fn allowed_processors() -> Option<[u64; MASK_WORDS]> {
    let mut mask = [0; MASK_WORDS];
    // SAFETY: the mask has the given size; 0 is the calling thread.
    let status = unsafe { sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    (status == 0).then_some(mask)
}

/// Allocates `bytes` bytes, aligned to 64 bytes; null if there is no memory.
pub fn allocate(bytes: usize) -> *mut u8 {
    let mut out = core::ptr::null_mut();
    // SAFETY: `out` is writable, 64 is a power of two and a multiple of a pointer's size.
    match unsafe { posix_memalign(&mut out, 64, bytes.max(64)) } {
        0 => out.cast(),
        _ => core::ptr::null_mut(),
    }
}

/// Releases memory from [`allocate`], or null.
///
/// # Safety
/// The memory is not used any more.
pub unsafe fn release(pointer: *mut u8) {
    // SAFETY: by the contract of this function.
    unsafe { free(pointer.cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_a_processor_keeps_the_right_to_it() {
        let before = allowed_processors();
        assert!(before.is_some());
        for _ in 0..8 {
            leave_processor(processor());
            assert_eq!(allowed_processors(), before);
        }
        leave_processor(-1);
        leave_processor(i32::MAX);
        assert_eq!(allowed_processors(), before);
    }
}
