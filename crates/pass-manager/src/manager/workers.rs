//! The threads of a run of passes, which process several functions in parallel. Without the feature `threads` there are none.

#[cfg(feature = "threads")]
pub(super) struct Workers {
    /// At least 2.
    count: usize,
}

#[cfg(not(feature = "threads"))]
pub(super) enum Workers {}

#[cfg(feature = "threads")]
impl Workers {
    /// Returns `count` threads, which [`map`](Self::map) starts; `None` if one is enough.
    pub(super) fn new(count: usize) -> Option<Workers> {
        (count > 1).then_some(Workers { count })
    }

    /// Calls `work` on each job, and returns the results in the order of the jobs. If the system refuses threads, there are fewer, and the current
    /// thread works if there are none.
    pub(super) fn map<J: Send, R: Send>(&self, jobs: Vec<J>, work: impl Fn(J) -> R + Sync) -> Vec<R> {
        use frazil_limits::Latch;
        use frazil_rt::SignalsBlocked;
        use std::sync::{Mutex, PoisonError};
        use std::thread::{Builder, scope};

        let count = self.count.min(jobs.len());
        let mut results: Vec<Option<R>> = jobs.iter().map(|_| None).collect();
        let queue = Mutex::new(jobs.into_iter().zip(&mut results));
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work_off = || {
            while let Some((job, result)) = next() {
                *result = Some(work(job));
            }
        };
        let latch = Latch::new();
        scope(|scope| {
            let blocked = SignalsBlocked::new();
            let threads: Vec<_> = (0..count)
                .map_while(|number| {
                    let finishing = latch.finishing();
                    let thread = Builder::new().name(format!("frazil-pass-{number}"));
                    let run = || {
                        let _finishing = finishing;
                        work_off();
                    };
                    thread.spawn_scoped(scope, run).ok()
                })
                .collect();
            drop(blocked);
            if threads.is_empty() {
                work_off();
            }
            latch.wait();
            for thread in threads {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
        // Every job has a result, since a panic has ended the call otherwise.
        results.into_iter().flatten().collect()
    }
}

#[cfg(not(feature = "threads"))]
impl Workers {
    /// Returns no threads.
    pub(super) fn new(_: usize) -> Option<Workers> {
        None
    }

    /// Never called.
    pub(super) fn map<J, R>(&self, _: Vec<J>, _: impl Fn(J) -> R) -> Vec<R> {
        match *self {}
    }
}
