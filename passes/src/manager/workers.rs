//! The threads of a run of passes, which process several functions in parallel. Without the feature `threads`, there are none.

#[cfg(feature = "threads")]
pub(super) struct Workers(rayon::ThreadPool);

#[cfg(not(feature = "threads"))]
pub(super) enum Workers {}

#[cfg(feature = "threads")]
impl Workers {
    /// Starts `count` threads. Returns `None` if one thread is enough, or if the system cannot start threads.
    pub(super) fn start(count: usize) -> Option<Workers> {
        frazil_runtime::threads::pool_of(count, "frazil-pass").map(Workers)
    }

    /// Calls `work` on each job, and returns the results in the order of the jobs.
    pub(super) fn map<J: Send, R: Send>(&self, jobs: Vec<J>, work: impl Fn(J) -> R + Send + Sync) -> Vec<R> {
        use rayon::prelude::*;
        frazil_runtime::threads::install(&self.0, || jobs.into_par_iter().map(work).collect())
    }
}

#[cfg(not(feature = "threads"))]
impl Workers {
    /// Returns `None`: this build does not use threads.
    pub(super) fn start(_: usize) -> Option<Workers> {
        None
    }

    /// Never called, because [`Workers::start`] returns `None`.
    pub(super) fn map<J, R>(&self, _: Vec<J>, _: impl Fn(J) -> R) -> Vec<R> {
        match *self {}
    }
}
