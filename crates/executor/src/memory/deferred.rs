//! Constructors of LLVM's static objects, which programs may leave for later: they take longer than everything else that such a program does
//! before it runs code that it kept. A program that wants this links them into a section of the name `frazil_deferred`, as
//! `tools/deferred.ld` does; in others they have run before `main`, and nothing is left here.

use std::sync::Once;

/// Runs them, unless they have run. To be called before anything of LLVM or MLIR that is more than a look at the processor.
pub fn run() {
    // Of the process, as LLVM's objects are.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let (start, end) = bounds();
        for at in (start..end).step_by(size_of::<usize>()) {
            // SAFETY: the linker made a table of functions of these addresses, which are what constructors are: they take what `main` takes, and
            // LLVM's do not look at it. Nothing of LLVM has run before, and nobody else runs them.
            unsafe {
                let constructor = *(at as *const extern "C" fn(i32, usize, usize));
                constructor(0, 0, 0);
            }
        }
    });
}

/// Where the table begins and ends: twice the same where there is none.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(super) fn bounds() -> (usize, usize) {
    let (start, end): (usize, usize);
    // SAFETY: two loads of addresses. The linker makes the symbols of the section's name; they are zero where there is no such section.
    unsafe {
        std::arch::asm!(
            ".weak __start_frazil_deferred",
            ".weak __stop_frazil_deferred",
            "mov {start}, qword ptr [rip + __start_frazil_deferred@GOTPCREL]",
            "mov {end}, qword ptr [rip + __stop_frazil_deferred@GOTPCREL]",
            start = out(reg) start,
            end = out(reg) end,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    (start, end)
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(super) fn bounds() -> (usize, usize) {
    (0, 0)
}
