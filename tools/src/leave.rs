//! How the tools end.

use std::io::Write;

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
