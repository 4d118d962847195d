//! The pools of threads that runs take and return.

use crate::error::LoadError;
use frazil_rt::{Pool, Runner};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Thread pools for runs. Clones share them. The number of pools is the maximum number of concurrent runs, and does not depend on the amount of loaded code.
#[derive(Clone, Default)]
pub struct Pools(Arc<Mutex<Vec<Idle>>>);

/// An unused pool, and the number of threads that was requested for it.
struct Idle {
    threads: usize,
    pool: Pool,
}

impl fmt::Debug for Pools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pools").finish_non_exhaustive()
    }
}

impl Pools {
    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a pool of `threads` threads for a run. If `threads` is 1, there is no pool, because the caller runs all tasks.
    ///
    /// # Errors
    /// If the system refuses memory for a new pool.
    pub(crate) fn take(&self, threads: usize) -> Result<Taken<'_>, LoadError> {
        if threads <= 1 {
            return Ok(Taken {
                pools: self,
                idle: None,
            });
        }
        let found = {
            let mut idle = self.idle();
            // The last one that was used is the one whose threads may be awake.
            let at = idle.iter().rposition(|one| one.threads == threads);
            at.map(|at| idle.remove(at))
        };
        let idle = match found {
            Some(idle) => idle,
            None => Idle {
                threads,
                pool: Pool::new(threads).ok_or(LoadError::Resources)?,
            },
        };
        Ok(Taken {
            pools: self,
            idle: Some(idle),
        })
    }
}

/// A pool that is in use until this is dropped.
pub(crate) struct Taken<'p> {
    pools: &'p Pools,
    idle: Option<Idle>,
}

impl Taken<'_> {
    /// Returns how a run on these threads is executed.
    pub(crate) fn runner(&self) -> Runner<'_> {
        match &self.idle {
            Some(idle) => Runner::Pool(&idle.pool),
            None => Runner::Serial,
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(idle) = self.idle.take() {
            self.pools.idle().push(idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_used_again() {
        let pools = Pools::default();
        let count = |pools: &Pools| pools.idle().len();
        assert!(matches!(pools.take(1).unwrap().runner(), Runner::Serial));
        assert_eq!(count(&pools), 0);
        for _ in 0..3 {
            let taken = pools.take(2).unwrap();
            assert!(matches!(taken.runner(), Runner::Pool(pool) if pool.threads() == 2));
            assert_eq!(count(&pools), 0);
        }
        assert_eq!(count(&pools), 1);
        let (_two, _three) = (pools.take(2).unwrap(), pools.take(3).unwrap());
        assert_eq!(count(&pools), 0);
        drop(pools.clone().take(2).unwrap());
        assert_eq!(count(&pools), 1);
    }
}
