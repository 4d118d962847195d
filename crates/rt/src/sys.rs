//! The few functions of the C library that the runtime uses.

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

/// Wakes everybody who sleeps on `word`.
pub fn futex_wake_all(word: &AtomicU32) {
    // SAFETY: the word is a live, aligned u32.
    unsafe {
        syscall(FUTEX, word.as_ptr(), WAKE_PRIVATE, c_int::MAX);
    }
}

/// Starts a thread; `None` when the system refuses.
pub fn spawn(start: extern "C" fn(*mut c_void) -> *mut c_void, argument: *mut c_void) -> Option<Thread> {
    let mut thread = 0;
    // SAFETY: `thread` is writable; the argument is passed on untouched.
    let status = unsafe { pthread_create(&mut thread, core::ptr::null(), start, argument) };
    (status == 0).then_some(thread)
}

/// Waits for the end of a thread that [`spawn`] started and nobody has joined.
pub fn join(thread: Thread) {
    // SAFETY: by this function's contract the thread is joinable.
    unsafe {
        pthread_join(thread, core::ptr::null_mut());
    }
}

/// `bytes` bytes at a 64-byte boundary; null when there is no memory.
pub fn allocate(bytes: usize) -> *mut u8 {
    let mut out = core::ptr::null_mut();
    // SAFETY: `out` is writable, 64 is a power of two and a multiple of a pointer's size.
    match unsafe { posix_memalign(&mut out, 64, bytes.max(64)) } {
        0 => out.cast(),
        _ => core::ptr::null_mut(),
    }
}

/// Gives back what [`allocate`] gave, or null.
///
/// # Safety
/// Nobody uses the memory any more.
pub unsafe fn release(pointer: *mut u8) {
    // SAFETY: by the caller.
    unsafe { free(pointer.cast()) }
}
