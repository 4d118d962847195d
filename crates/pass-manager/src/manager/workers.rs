//! Threads that process several functions of a module in parallel. Without the feature `threads` there are none.

/// The number of threads for a run of a pipeline.
#[cfg(feature = "threads")]
pub(super) struct Workers {
    /// At least 2.
    count: usize,
}

/// The threads of a build without threads: it has no values.
#[cfg(not(feature = "threads"))]
pub(super) enum Workers {}

#[cfg(feature = "threads")]
impl Workers {
    /// Returns the number `count` of threads, which [`map`](Self::map) starts; `None` for 0 or 1, when the calling thread works.
    pub(super) fn new(count: usize) -> Option<Workers> {
        (count > 1).then_some(Workers { count })
    }

    /// Calls `work` on each job, and returns the results in the order of the jobs. If the system refuses to start some of the threads, there are fewer; if it refuses
    /// all, the calling thread works.
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
        // Every job has a result, since the panic of a job is resumed above.
        results.into_iter().flatten().collect()
    }
}

#[cfg(not(feature = "threads"))]
impl Workers {
    /// Returns `None`: there are no threads.
    pub(super) fn new(_: usize) -> Option<Workers> {
        None
    }

    /// Not callable, since there is no value of the type.
    pub(super) fn map<J, R>(&self, _: Vec<J>, _: impl Fn(J) -> R) -> Vec<R> {
        match *self {}
    }
}
