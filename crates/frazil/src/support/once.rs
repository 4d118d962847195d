//! Lazily initialised values: the first thread that needs a value initialises it, while others wait.

use frazil_limits::{Exceeded, PAUSE};
use frazil_runtime::threads::outside_of_pools;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// A lazily initialised value. If the initialisation fails, nothing is stored, and the next thread tries again.
pub(crate) struct Once<T> {
    value: OnceLock<T>,
    /// Whether a thread is currently initialising the value.
    is_making: Mutex<bool>,
    ended: Condvar,
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once {
            value: OnceLock::new(),
            is_making: Mutex::new(false),
            ended: Condvar::new(),
        }
    }
}

/// Guard that marks the initialisation as ended when it is dropped, also after a failure.
struct Making<'o, T>(&'o Once<T>);

impl<T> Drop for Making<'_, T> {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.ended.notify_all();
    }
}

impl<T> Once<T> {
    /// Returns the value, if it has been initialised.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.get()
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value. If necessary, initialises it with `make`, or waits for another thread that is initialising it.
    ///
    /// # Errors
    /// The errors of `make`; also if the current thread's budget is exceeded while it waits.
    pub(crate) fn get_or_make<E>(&self, make: impl FnOnce() -> Result<T, E> + Send) -> Result<&T, E>
    where
        T: Send + Sync,
        E: From<Exceeded> + Send,
    {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let mut is_making = self.lock();
        while *is_making {
            (is_making, _) = self
                .ended
                .wait_timeout(is_making, PAUSE)
                .unwrap_or_else(PoisonError::into_inner);
            if *is_making {
                // The check may use this value, so the lock must not be held here.
                drop(is_making);
                frazil_limits::check()?;
                is_making = self.lock();
            }
        }
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        *is_making = true;
        drop(is_making);
        let _making = Making(self);
        let value = outside_of_pools(make)?;
        Ok(self.value.get_or_init(|| value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use frazil_limits::{Budget, Limits, Phase};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_value_is_made_once() {
        let (once, made) = (Once::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let value = once.get_or_make(|| {
                        thread::sleep(PAUSE * 2);
                        Ok::<_, Error>(made.fetch_add(1, Ordering::Relaxed))
                    });
                    assert_eq!(value.ok(), Some(&0));
                });
            }
        });
        assert_eq!((once.get(), made.into_inner()), (Some(&0), 1));
    }

    #[test]
    fn the_next_thread_tries_again() {
        let once = Once::default();
        assert!(once.get_or_make(|| Err(Error::Call("no".to_owned()))).is_err());
        assert_eq!(once.get(), None);
        let panics = std::panic::AssertUnwindSafe(|| drop(once.get_or_make::<Error>(|| panic!("a bug"))));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(once.get_or_make(|| Ok::<_, Error>(3)).ok(), Some(&3));
    }

    #[test]
    fn who_waits_keeps_to_its_budget() {
        let once = Once::default();
        let started = std::sync::Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                let made = once.get_or_make(|| {
                    started.wait();
                    thread::sleep(Duration::from_secs(1));
                    Ok::<_, Error>(1)
                });
                assert_eq!(made.ok(), Some(&1));
            });
            started.wait();
            let limits: Limits = "call-time=10ms".parse().unwrap();
            let budget = Budget::new(&limits, Phase::Call);
            let _entered = budget.enter();
            // Only one of this number of checks reads the clock.
            let refused = (0..64).find_map(|_| once.get_or_make(|| Ok::<_, Error>(2)).err());
            assert!(refused.is_some_and(|e| e.exceeded().is_some()));
        });
    }
}
