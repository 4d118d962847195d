//! Work within limits.

use crate::error::Error;
use frazil_limits::{Budget, Limits, Phase};

/// Does `work`, which is what `phase` says, within `limits`. Whatever the work makes of it, a limit that it exceeded is an [`Error::Exceeded`].
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

/// Does `work`, which ends with [`Error::Interrupted`] soon after `check` has returned true: loading, freezing, passes, compiling, and calls that the
/// interpreter runs, or native code in segments.
///
/// `check` is called on the current thread only, every 20 milliseconds or so, also while other threads do parts of the work. It may call this crate. The
/// compilation of a kernel and an operator that have begun are carried out first. Work that was interrupted leaves nothing half-done: no files, and engines
/// compile again what they have not compiled.
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
/// Those of `work`, and [`Error::Interrupted`] whenever `check` has returned true.
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

/// Fails if a limit of the work that the current thread does has been exceeded. To be called before the outcome of a part of the work is kept: if it
/// failed, the limit may be why.
#[cfg(feature = "codegen")]
pub(crate) fn unexceeded() -> Result<(), Error> {
    match Budget::current().and_then(|budget| budget.exceeded().cloned()) {
        Some(exceeded) => Err(exceeded.into()),
        None => Ok(()),
    }
}
