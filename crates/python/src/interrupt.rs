//! Execution of long work without the GIL. Ctrl+C can interrupt the work.

use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs `work` without the GIL, so that other Python threads can run. On the main thread, signal handlers run about every 20 milliseconds; if one raises, the
/// work ends.
///
/// # Errors
/// The exception of a handler: `KeyboardInterrupt` after Ctrl+C.
pub(crate) fn without_gil<R: Send, E: From<frazil::Error> + Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<R, E> + Send,
) -> PyResult<Result<R, E>> {
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let slot = Arc::clone(&raised);
    let is_interrupted = move || match Python::attach(|py| py.check_signals()) {
        Ok(()) => false,
        Err(error) => {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            true
        }
    };
    let result = py.detach(|| frazil::interruptible(is_interrupted, work));
    match raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(error),
        None => Ok(result),
    }
}
