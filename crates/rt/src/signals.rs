//! Signals of the host process, whose handlers run on its own threads.

use crate::sys::{self, SignalSet};
use core::marker::PhantomData;

/// A guard during whose lifetime threads that the current thread starts have all signals blocked, except those that report a fault of the
/// thread itself. So the handlers of the host process run on its own threads. Dropping the guard restores the mask of the current thread.
pub struct SignalsBlocked {
    former: SignalSet,
    /// The mask belongs to the thread, so the guard must not be sent to another one.
    _thread: PhantomData<*mut ()>,
}

impl SignalsBlocked {
    /// Blocks signals of the current thread.
    pub fn new() -> SignalsBlocked {
        SignalsBlocked {
            former: sys::block_signals(),
            _thread: PhantomData,
        }
    }
}

impl Default for SignalsBlocked {
    fn default() -> SignalsBlocked {
        SignalsBlocked::new()
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        sys::set_signals(&self.former);
    }
}
