//! Memory that the compiler has used and runs do not need: given back to the system before weights are packed and code runs.

use std::ops::Range;

/// Bytes of weights and workspace from which on it is worth while: what takes less fits beside what is there by then.
const WORTH: usize = 4 << 20;

/// To be called when kernels have been compiled, for a function that takes so many bytes: what LLVM held is free by then.
pub fn after_compiling(bytes: usize) {
    if bytes >= WORTH {
        trim();
        release();
    }
}

/// To be called before a function that takes so many bytes takes them, and again before it first runs: what was used to get there is free by
/// then. Only in programs that want it: another's heap may be large, and its instances many.
pub fn before_running(bytes: usize) {
    if bytes >= WORTH && is_wanted() {
        trim();
        release();
    }
}

/// Whether this program lets its own pages be looked after, by linking LLVM's constructors as `tools/deferred.ld` does.
fn is_wanted() -> bool {
    let (start, end) = super::deferred::bounds();
    start != end
}

/// To be called when constants of so many bytes have been packed, and smaller ones follow.
pub fn after_packing(bytes: usize) {
    if bytes >= WORTH {
        trim();
    }
}

/// Gives back what the allocator holds for nobody. What many kernels took while they were compiled stays with it otherwise.
fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the C library's own declaration.
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: it may be called at any time.
        unsafe { malloc_trim(0) };
    }
}

/// Gives back the pages of this program's code and constants, LLVM's above all: those that are still needed are mapped again when they are
/// touched, from the system's cache of the file. Programs say that they want it by linking LLVM's constructors as `tools/deferred.ld` does.
fn release() {
    for range in read_only() {
        // SAFETY: these are whole pages of segments that nobody may write to, mapped from the program's file: they have the same contents when they
        // come back.
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        unsafe {
            /// Linux's number for it.
            const DONT_NEED: std::ffi::c_int = 4;
            unsafe extern "C" {
                fn madvise(address: *mut std::ffi::c_void, len: usize, advice: std::ffi::c_int) -> std::ffi::c_int;
            }
            madvise(range.start as *mut std::ffi::c_void, range.len(), DONT_NEED);
        }
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        let _ = range;
    }
}

/// The whole pages of the segments of this program that cannot be written to; none where it does not want to be looked at.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn read_only() -> Vec<Range<usize>> {
    use crate::memory::PAGE;
    use object::elf::{FileHeader64, PF_W, PT_LOAD, ProgramHeader64};
    use object::{LittleEndian, U16};
    if !is_wanted() {
        return Vec::new();
    }
    let header: usize;
    // SAFETY: a load of an address. The linker makes the symbol, or else it is zero.
    unsafe {
        std::arch::asm!(
            ".weak __ehdr_start",
            "mov {header}, qword ptr [rip + __ehdr_start@GOTPCREL]",
            header = out(reg) header,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    if header == 0 {
        return Vec::new();
    }
    let little = LittleEndian;
    // SAFETY: the header of the program's file lies there, and the table of its segments behind it in the same segment, both never written.
    let segments = unsafe {
        let file = &*(header as *const FileHeader64<LittleEndian>);
        let count: &U16<LittleEndian> = &file.e_phnum;
        let table = header + file.e_phoff.get(little) as usize;
        std::slice::from_raw_parts(
            table as *const ProgramHeader64<LittleEndian>,
            usize::from(count.get(little)),
        )
    };
    let loaded = || segments.iter().filter(|s| s.p_type.get(little) == PT_LOAD);
    // The first segment holds the header; the program may have been moved as a whole.
    let Some(first) = loaded().find(|s| s.p_offset.get(little) == 0) else {
        return Vec::new();
    };
    let moved = header.wrapping_sub(first.p_vaddr.get(little) as usize);
    let pages = |s: &ProgramHeader64<LittleEndian>| {
        let start = moved.wrapping_add(s.p_vaddr.get(little) as usize);
        let end = start + s.p_filesz.get(little) as usize;
        start.next_multiple_of(PAGE)..end / PAGE * PAGE
    };
    let constant = loaded().filter(|s| s.p_flags.get(little) & PF_W == 0);
    constant.map(pages).filter(|pages| pages.start < pages.end).collect()
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn read_only() -> Vec<Range<usize>> {
    Vec::new()
}
