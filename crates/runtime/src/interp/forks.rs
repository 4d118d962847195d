//! Forks on separate threads.
//!
//! A call that may use several threads starts them at its first fork. It ends after all of its forks have ended, so no thread outlives it. A fork is run by an
//! idle thread or by the thread that waits for it, whichever comes first. So a thread only blocks on a fork that is running, and nested waits cannot exhaust
//! the threads. The calling thread runs other queued forks before it blocks.

use super::run::Run;
use super::{Interpreter, lock};
use crate::error::ExecError;
use crate::value::{FutureValue, Value};
use frazil_ir::Graph;
use frazil_limits::{Budget, Latch};
use frazil_rt::SignalsBlocked;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError};
use std::thread;

/// Stack size of a thread in bytes: programs can be nested as deeply as on the main thread.
const STACK_BYTES: usize = 8 << 20;

/// Queue of the forks that no thread has started yet.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    futures: VecDeque<FutureValue>,
    is_closed: bool,
}

impl Queue {
    fn push(&self, future: FutureValue) {
        lock(&self.state).futures.push_back(future);
        self.changed.notify_one();
    }

    /// Returns the next fork; `None` if the queue is empty.
    fn try_next(&self) -> Option<FutureValue> {
        lock(&self.state).futures.pop_front()
    }

    /// Returns the next fork; `None` once the queue is empty and closed.
    fn next(&self) -> Option<FutureValue> {
        let mut state = lock(&self.state);
        loop {
            if let Some(future) = state.futures.pop_front() {
                return Some(future);
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Closes the queue when the call ends, in any way. The threads wait for that, and the scope waits for the threads.
struct Closing<'q>(&'q Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).is_closed = true;
        self.0.changed.notify_all();
    }
}

/// Access to a run's queue of forks.
#[derive(Clone, Copy)]
pub(super) struct Forks<'i> {
    queue: &'i Queue,
    /// Starts the threads that run forks; `None` on such a thread.
    start: Option<&'i dyn Fn()>,
    /// Whether a fork is running on the current thread.
    in_fork: bool,
}

impl Interpreter {
    /// Calls `work` with a run, which has threads for forks if the interpreter may use several.
    pub(super) fn run<R>(&self, work: impl FnOnce(Run<'_>) -> R) -> R {
        if self.threads <= 1 {
            return work(Run::new(self, None));
        }
        let queue = Queue::default();
        let once = Once::new();
        let (budget, latch) = (Budget::current(), Latch::new());
        thread::scope(|scope| {
            let serve = || {
                let _entered = budget.as_ref().map(Budget::enter);
                let run = Run::new(
                    self,
                    Some(Forks {
                        queue: &queue,
                        start: None,
                        in_fork: true,
                    }),
                );
                while let Some(future) = queue.next() {
                    begin(run, &future);
                }
            };
            let start = || {
                once.call_once(|| {
                    let _blocked = SignalsBlocked::new();
                    for number in 1..self.threads {
                        let thread = thread::Builder::new()
                            .name(format!("frazil-fork-{number}"))
                            .stack_size(STACK_BYTES);
                        // Where the machine has no thread left, who waits does the work.
                        let finishing = latch.finishing();
                        let serve = move || {
                            let _finishing = finishing;
                            serve();
                        };
                        if thread.spawn_scoped(scope, serve).is_err() {
                            break;
                        }
                    }
                });
            };
            let forks = Forks {
                queue: &queue,
                start: Some(&start),
                in_fork: false,
            };
            let closing = Closing(&queue);
            let result = work(Run::new(self, Some(forks)));
            drop(closing);
            // Forks without a `wait` are run too, as in PyTorch.
            if once.is_completed() {
                serve();
                latch.wait();
            }
            result
        })
    }
}

/// Returns the future for the result of `graph` on `inputs`. Depending on the run, the graph is queued or run immediately.
pub(super) fn fork(run: Run<'_>, graph: &Arc<Graph>, inputs: Vec<Value>) -> FutureValue {
    let future = FutureValue::of_work(graph.clone(), inputs);
    match run.forks {
        Some(forks) => {
            forks.queue.push(future.clone());
            if let Some(start) = forks.start {
                start();
            }
        }
        None => begin(run, &future),
    }
    future
}

/// Returns the result of a future. The calling thread computes it, unless another thread has already started to.
pub(super) fn wait(run: Run<'_>, future: &FutureValue) -> Result<Value, ExecError> {
    begin(run, future);
    // Within a fork, this could end in a deadlock: another fork may wait for the one that it interrupts.
    if let Some(forks) = run.forks.filter(|forks| !forks.in_fork) {
        while !future.is_done()
            && let Some(other) = forks.queue.try_next()
        {
            begin(run, &other);
        }
    }
    future.wait()
}

/// Runs the work of `future`, unless another thread has started it.
fn begin(mut run: Run<'_>, future: &FutureValue) {
    let Some((graph, inputs)) = future.claim() else { return };
    if let Some(forks) = &mut run.forks {
        forks.in_fork = true;
    }
    let plan = run.interpreter.plan_shared(&graph);
    // No thread waits for ever, even if this does not end.
    let _unfinished = Unfinished(future);
    let results = run.graph(&graph, &plan, &inputs);
    future.complete(results.map(|mut results| match results.len() {
        1 => results.remove(0),
        _ => Value::tuple(results),
    }));
}

/// Sets an error on a future that is incomplete when its work ends, for example by a panic.
struct Unfinished<'f>(&'f FutureValue);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0
            .complete(Err(ExecError::malformed("a fork did not come to its end")));
    }
}
