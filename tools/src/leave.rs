//! Exit of the tools' processes, and their limit on file sizes.

use std::io::Write;

/// Makes writes beyond the limit on file sizes (`ulimit -f`) fail with an error instead of ending the process by a signal.
pub(crate) fn report_file_size() {
    #[cfg(target_os = "linux")]
    {
        const FILE_SIZE: std::ffi::c_int = 25;
        const IGNORE: usize = 1;
        // SAFETY: the C library's own declaration; a handler is an address or one of two small numbers.
        unsafe extern "C" {
            fn signal(signal: std::ffi::c_int, handler: usize) -> usize;
        }
        // SAFETY: no handler is installed that could run.
        unsafe { signal(FILE_SIZE, IGNORE) };
    }
}

/// Ends the process with exit status `status`: flushes standard output, and runs nothing else.
///
/// The destructors of LLVM's static objects would access as much memory as a small model needs, and take longer than a small model runs.
pub fn leave(status: u8) -> ! {
    // There is nowhere to report an error.
    let _ = std::io::stdout().flush();
    #[cfg(unix)]
    {
        // SAFETY: the C library's own declaration.
        unsafe extern "C" {
            safe fn _exit(status: std::ffi::c_int) -> !;
        }
        _exit(status.into())
    }
    #[cfg(not(unix))]
    std::process::exit(status.into())
}
