//! Execution of work within limits, with interruption.

use crate::error::Error;
use frazil_limits::{Budget, Limits, Phase};

/// Runs `work` within `limits`; `phase` describes it in errors. If a limit is exceeded, returns [`Error::Exceeded`], whatever the result of `work` is.
pub(crate) fn within<R, E: From<Error>>(
    limits: &Limits,
    phase: Phase,
    work: impl FnOnce() -> Result<R, E>,
) -> Result<R, E> {
    if *limits == Limits::NONE {
        return work();
    }
    let budget = Budget::new(limits, phase);
    let entered = budget.enter();
    let done = work();
    drop(entered);
    budget.finish().map_err(Error::from)?;
    done
}

/// Runs `work`, and ends it with [`Error::Interrupted`] soon after `check` has returned true. This applies to loading, freezing, passes, compiling,
/// and calls that run in the interpreter or in native segments.
///
/// `check` is called on the current thread only, about every 20 milliseconds, also while other threads run parts of the work. It may call this crate. A running
/// compilation of a kernel or a running operator is completed first. Interrupted work leaves no partial state: no files, and engines compile again when needed.
///
/// ```
/// use frazil::{CallError, Error, Value, interruptible};
/// use std::time::{Duration, Instant};
///
/// # let source = "def f(n: int):\n    x = 0\n    while n > 0:\n        x += 1\n    return x\n";
/// # let model = frazil::Session::new().script("f.py".as_ref(), source, &[])?.to_model("f")?;
/// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
/// # let mut engine = model.engine(&options)?;
/// let start = Instant::now();
/// let is_late = move || start.elapsed() > Duration::from_millis(50);
/// let endless = interruptible(is_late, || engine.call("forward", &[Value::Int(1)])); // `while n > 0`
/// assert!(matches!(endless, Err(CallError::Failed(Error::Interrupted))));
/// assert!(engine.call("forward", &[Value::Int(0)]).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The errors of `work`, and [`Error::Interrupted`] whenever `check` has returned true.
pub fn interruptible<R, E: From<Error>>(
    check: impl Fn() -> bool + Send + Sync + 'static,
    work: impl FnOnce() -> Result<R, E>,
) -> Result<R, E> {
    let budget = Budget::interruptible(check);
    let entered = budget.enter();
    let done = work();
    drop(entered);
    match budget.is_interrupted() {
        true => Err(Error::Interrupted.into()),
        false => done,
    }
}

/// Returns an error if the work of the current thread has exceeded a limit. Callers must check this before they cache the result of a part of the work, because
/// a failure may be due to the limit.
#[cfg(feature = "codegen")]
pub(crate) fn unexceeded() -> Result<(), Error> {
    match Budget::current().and_then(|budget| budget.exceeded().cloned()) {
        Some(exceeded) => Err(exceeded.into()),
        None => Ok(()),
    }
}
