//! Deferred constructors of LLVM's static objects: they take longer than everything else that a program does before it runs stored code.
//! A program that defers them links them into a section with the name `frazil_deferred`, as `tools/deferred.ld` does. In other programs they run before `main`,
//! and this module does nothing.

use std::sync::Once;

/// Runs the constructors, unless they have run. Must be called before any use of LLVM or MLIR except the detection of the processor.
pub fn run() {
    // Of the process, as LLVM's objects are.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let (start, end) = bounds();
        for at in (start..end).step_by(size_of::<usize>()) {
            // SAFETY: the linker made a table of constructors at these addresses. Constructors have the arguments of `main`, which LLVM's ignore. No code of
            // LLVM has run before, and no other code runs them.
            unsafe {
                let constructor = *(at as *const extern "C" fn(i32, usize, usize));
                constructor(0, 0, 0);
            }
        }
    });
}

/// Returns the start and the end of the table, which are equal if there is none.
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
