//! Reduction of an input while a test holds: delta debugging.
//!
//! Every step proposes smaller valid candidates, and keeps those for which the test is true. Long ranges of nodes, outputs and inputs are tried before short
//! ones, so that irrelevant parts are removed with logarithmically many tests. Steps are repeated until none succeeds.

pub mod bisect;
mod graph;
mod module;
mod tensors;

/// The result of a reduction.
pub struct Reduction<S> {
    /// The smallest candidate that was found to pass the test.
    pub smallest: S,
    /// Number of tests that were run.
    pub runs: usize,
}

/// An input that [`Reducer`] can reduce step by step to a smaller one: a TorchScript graph, a module, or a graph of tensors.
pub trait Candidate: Clone {
    /// Runs every step of the reduction once: calls of [`Reducer::each`].
    fn round(reducer: &mut Reducer<'_, Self>, best: &mut Self);

    /// Removes what has no use any more after changes.
    fn prune(&mut self);

    /// Returns false if the verifier rejects the candidate, so that the command would fail for another reason than the one under investigation.
    fn is_valid(&self) -> bool;
}

/// The search for a smaller candidate that still passes the test. See the [module documentation](self).
pub struct Reducer<'t, S> {
    test: &'t mut dyn FnMut(&S) -> bool,
    runs: usize,
    /// Number of candidates that were kept.
    kept: usize,
    max_runs: usize,
}

/// A change to a part of a candidate. Returns false if the change is impossible.
pub type Change<'c, S, T> = &'c dyn Fn(&mut S, &T) -> bool;

impl<'t, S> Reducer<'t, S> {
    /// Returns a reducer that keeps candidates for which `test` returns true, and runs at most `max_runs` tests.
    pub fn new(test: &'t mut dyn FnMut(&S) -> bool, max_runs: usize) -> Reducer<'t, S> {
        Reducer {
            test,
            runs: 0,
            kept: 0,
            max_runs,
        }
    }
}

impl<S: Candidate> Reducer<'_, S> {
    /// Returns the smallest candidate found, starting from `input`, for which the test is true.
    pub fn reduce(mut self, input: &S) -> Reduction<S> {
        let mut best = input.clone();
        loop {
            let kept = self.kept;
            S::round(&mut self, &mut best);
            if self.kept == kept || self.runs >= self.max_runs {
                break;
            }
        }
        if self.kept == 0 {
            let mut pruned = best.clone();
            pruned.prune();
            if self.holds(&pruned) {
                best = pruned;
            }
        }
        Reduction {
            smallest: best,
            runs: self.runs,
        }
    }

    fn holds(&mut self, candidate: &S) -> bool {
        if self.runs >= self.max_runs || !candidate.is_valid() {
            return false;
        }
        self.runs += 1;
        (self.test)(candidate)
    }

    /// Applies `change` to ever shorter ranges of the elements of `list`, and keeps candidates for which the test is
    /// true.
    pub fn each<T>(&mut self, best: &mut S, list: &dyn Fn(&S) -> Vec<T>, change: Change<'_, S, T>) {
        let mut size = list(best).len();
        while size > 0 {
            let mut start = 0;
            loop {
                let items = list(best);
                let Some(chunk) = items.get(start..).filter(|rest| !rest.is_empty()) else {
                    break;
                };
                let chunk = &chunk[..size.min(chunk.len())];
                let mut candidate = best.clone();
                let mut changed = false;
                for item in chunk {
                    changed |= change(&mut candidate, item);
                }
                if changed {
                    candidate.prune();
                }
                if changed && self.holds(&candidate) {
                    self.kept += 1;
                    // The following elements have moved up, unless the change left something smaller in its place.
                    if list(&candidate).len() >= items.len() {
                        start += size;
                    }
                    *best = candidate;
                } else {
                    start += size;
                }
                if self.runs >= self.max_runs {
                    return;
                }
            }
            size /= 2;
        }
    }
}
