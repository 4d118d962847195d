//! Fuel: a limit on the number of rewrites. With it, a rewrite that breaks a program is found by bisection.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The number of rewrites that passes may still do. Passes on several threads may share it.
#[derive(Debug)]
pub struct Fuel {
    left: AtomicU64,
    /// The rewrite that took the last unit of fuel.
    last: Mutex<Option<LastRewrite>>,
}

/// The last rewrite that a limit allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastRewrite {
    /// The pass and its options, as in the text of the pipeline.
    pub pass: String,
    /// The qualified name of the function; empty for a graph that belongs to no module, and for a pass over modules.
    pub function: String,
    /// The statistic to which the rewrite was added, such as `nodes merged`.
    pub statistic: &'static str,
}

impl fmt::Display for LastRewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.statistic, self.pass)?;
        match self.function.as_str() {
            "" => Ok(()),
            function => write!(f, " in {function}"),
        }
    }
}

impl Fuel {
    /// Returns fuel for `limit` rewrites.
    pub fn new(limit: u64) -> Fuel {
        Fuel {
            left: AtomicU64::new(limit),
            last: Mutex::default(),
        }
    }

    /// Takes fuel for one rewrite, which belongs to the statistic `statistic`. Returns false if no fuel is left.
    pub(crate) fn take(&self, statistic: &'static str) -> bool {
        let less = |n: u64| n.checked_sub(1);
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if before == Ok(1) {
            let last = LastRewrite {
                statistic,
                ..LastRewrite::default()
            };
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
        }
        before.is_ok()
    }

    /// Sets the pass and the function of the last rewrite, if there was one and they are not set.
    pub(crate) fn locate_last(&self, pass: &str, function: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_mut().filter(|last| last.pass.is_empty()) {
            last.pass = pass.to_owned();
            last.function = function.to_owned();
        }
    }

    /// Returns the rewrite that took the last unit of fuel; `None` if fuel is left.
    pub fn last(&self) -> Option<LastRewrite> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of rewrites that may still be done.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }
}
