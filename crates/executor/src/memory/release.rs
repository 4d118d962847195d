//! Release of memory that the compiler has used and runs do not need, before weights are packed and code runs.

use std::ops::Range;

/// Minimum number of bytes of weights and workspace for which memory is released. Less fits into memory that the allocator already holds.
const MIN_BYTES: usize = 4 << 20;

/// Releases the memory of LLVM after kernels have been compiled, for a function that needs `bytes` bytes.
pub fn after_compiling(bytes: usize) {
    if bytes >= MIN_BYTES {
        trim();
        release_code();
    }
}

/// Releases memory before a function allocates `bytes` bytes, and again before its first run. Does nothing in programs that have not requested it, whose heap
/// may be large and have many other uses.
pub fn before_running(bytes: usize) {
    if bytes >= MIN_BYTES && is_requested() {
        trim();
        release_code();
    }
}

/// Returns whether this program requests the release of memory: it links LLVM's constructors as `tools/deferred.ld` does.
fn is_requested() -> bool {
    let (start, end) = super::deferred::bounds();
    start != end
}

/// Releases memory after constants of `bytes` bytes have been packed, before smaller ones are.
pub fn after_packing(bytes: usize) {
    if bytes >= MIN_BYTES {
        trim();
    }
}

/// Releases the free memory of the allocator, which otherwise keeps the memory that compiling many kernels needed.
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

/// Releases the pages of this program's code and constants, most of which are LLVM's. Pages that are accessed later are mapped again from the system's cache
/// of the file.
fn release_code() {
    for range in read_only() {
        // SAFETY: these are whole pages of read-only segments, mapped from the program's file: they have the same contents when they are mapped
        // again.
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        unsafe {
            /// `MADV_DONTNEED` of Linux.
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

/// Returns the whole pages of the read-only segments of this program; none if it has not requested the release.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn read_only() -> Vec<Range<usize>> {
    use crate::memory::PAGE;
    use object::elf::{FileHeader64, PF_W, PT_LOAD, ProgramHeader64};
    use object::{LittleEndian, U16};
    if !is_requested() {
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
    // SAFETY: the header of the program's file is at this address, and the table of its segments after it in the same segment; neither is ever written.
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
    // The first segment contains the header; the program may have been moved as a whole.
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
