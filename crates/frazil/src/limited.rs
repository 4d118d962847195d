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
