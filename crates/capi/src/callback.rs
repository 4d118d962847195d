//! Functions of the caller that the compiler calls.

use std::ffi::c_void;

/// The context argument of a caller's function, and the function that releases it.
pub(crate) struct Context {
    pub(crate) context: *mut c_void,
    release: Option<extern "C" fn(*mut c_void)>,
    is_taken: bool,
}

// SAFETY: the pointer is only handed to the caller's functions, which by the rules may be called on any thread, one call at a time.
unsafe impl Send for Context {}

impl Context {
    pub(crate) fn new(context: *mut c_void, release: Option<extern "C" fn(*mut c_void)>) -> Context {
        Context {
            context,
            release,
            is_taken: false,
        }
    }

    /// Returns the context, whose release function is called when it is dropped.
    pub(crate) fn taken(mut self) -> Context {
        self.is_taken = true;
        self
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(release) = self.release
            && self.is_taken
        {
            release(self.context);
        }
    }
}
