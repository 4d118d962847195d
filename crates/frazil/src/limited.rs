//! Work within limits.

use crate::Error;
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
    budget.finish().map_err(Error::Exceeded)?;
    done
}

/// Fails if a limit of the work that the current thread does has been exceeded. To be called before the outcome of a part of the work is kept: if it
/// failed, the limit may be why.
#[cfg(feature = "codegen")]
pub(crate) fn unexceeded() -> Result<(), Error> {
    match Budget::current().and_then(|budget| budget.exceeded().cloned()) {
        Some(exceeded) => Err(Error::Exceeded(exceeded)),
        None => Ok(()),
    }
}
