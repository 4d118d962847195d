//! How the tools end, and how they do not.

use std::io::Write;

/// Lets writes beyond the limit for the size of files (`ulimit -f`) fail with an error, which is reported as others are, and not end the process
/// by a signal.
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

/// Ends the process with exit status `status`: what stands in the buffer of standard output is written, and nothing else runs. The destructors of
/// LLVM's static objects, which would, touch as much memory as a small model takes, and more time than a small model runs.
pub fn leave(status: u8) -> ! {
    // Nobody is left to be told.
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
