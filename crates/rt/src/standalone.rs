//! Root of the object file that is linked into compiled libraries: the same runtime without the standard library, with a C interface. `crates/codegen/build.rs`
//! compiles it; the C side is in `crates/codegen/src/aot`.
#![no_std]
#![allow(dead_code, unreachable_pub, reason = "a part of the crate, compiled as a whole program")]

mod origin;
mod pool;
mod signals;
mod steps;
mod sys;

use core::ffi::c_void;
use pool::Pool;
use steps::{Memory, Runner, Step, TaskFn};

/// The panic handler, which is never called; the language requires it without the standard library.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Returns a new pool of `threads` threads, including the caller; null if memory is short.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_rt_pool_new(threads: u64) -> *mut c_void {
    let Some(pool) = Pool::new(threads as usize) else {
        return core::ptr::null_mut();
    };
    let memory = sys::allocate(size_of::<Pool>()).cast::<Pool>();
    if memory.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: fresh memory of the right size, aligned to 64 bytes.
    unsafe { memory.write(pool) };
    memory.cast()
}

/// Frees a pool from [`frazil_rt_pool_new`].
///
/// # Safety
/// `pool` is from that function, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_rt_pool_drop(pool: *mut c_void) {
    if !pool.is_null() {
        // SAFETY: by the contract of this function.
        unsafe {
            core::ptr::drop_in_place(pool.cast::<Pool>());
            sys::release(pool.cast());
        }
    }
}

/// Runs `count` steps: on `parallel_for` if it is not null, else on `pool` if it is not null, else on the calling thread.
///
/// # Safety
/// See [`steps::run`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_rt_run(
    steps: *const Step,
    count: u64,
    memory: *const Memory,
    pool: *const c_void,
    // `ParallelFor`: cbindgen does not look through the name in an option.
    parallel_for: Option<unsafe extern "C" fn(*mut c_void, i64, TaskFn, *mut c_void)>,
    user: *mut c_void,
) {
    // SAFETY: by the contract of this function.
    unsafe {
        let steps = core::slice::from_raw_parts(steps, count as usize);
        let runner = match parallel_for {
            Some(f) => Runner::Caller(f, user),
            None if pool.is_null() => Runner::Serial,
            None => Runner::Pool(&*pool.cast::<Pool>()),
        };
        steps::run(steps, &*memory, &runner);
    }
}
