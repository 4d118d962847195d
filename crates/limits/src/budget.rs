//! Budgets: the limits for one phase of the work, and their use so far.

use crate::{Limits, memory};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use thiserror::Error;

/// A phase of the work on one input, such as loading or compiling. Most phases have a time limit of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading an archive, text or source.
    Load,
    /// Freezing a module.
    Freeze,
    /// A pass other than freezing.
    Pass,
    /// All passes of a pipeline together, whose time is not limited.
    Pipeline,
    /// Compiling a method.
    Compile,
    /// Calling a method.
    Call,
}

impl Phase {
    /// Returns the name and the value of the time limit.
    fn time(self, limits: &Limits) -> Option<(&'static str, Duration)> {
        let (name, time) = match self {
            Phase::Load => ("load-time", limits.load_time),
            Phase::Freeze => ("freeze-time", limits.freeze_time),
            Phase::Pass => ("pass-time", limits.pass_time),
            Phase::Pipeline => return None,
            Phase::Compile => ("compile-time", limits.compile_time),
            Phase::Call => ("call-time", limits.call_time),
        };
        Some((name, time?))
    }
}

/// A limit that the work on an input exceeded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Exceeded(Box<Excess>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Excess {
    name: &'static str,
    value: String,
    found: Option<String>,
}

/// The name that [`Exceeded`] reports for an interruption. An interruption ends work like an exceeded limit.
const INTERRUPTION: &str = "interruption";

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name == INTERRUPTION {
            return f.write_str("interrupted");
        }
        write!(f, "the limit {}={} is exceeded", self.name, self.value)?;
        match &self.found {
            Some(found) => write!(f, ": {found}"),
            None => Ok(()),
        }
    }
}

impl Exceeded {
    /// Returns the limit's name, as in the text of [`Limits`]; `reading` for the allowance for reading an archive, which depends on its size.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Returns whether no limit was exceeded, but the work was interrupted ([`Budget::interruptible`]).
    pub fn is_interruption(&self) -> bool {
        self.0.name == INTERRUPTION
    }

    /// Returns the limit's value.
    pub fn value(&self) -> &str {
        &self.0.value
    }

    /// Returns a description of the amount that exceeds the limit, if it is known: "graphs of 1001 nodes".
    pub fn found(&self) -> Option<&str> {
        self.0.found.as_deref()
    }
}

/// The remainder of the [`Limits`] for one phase of the work. Phases nest: a pass within freezing is subject to both budgets.
#[derive(Clone)]
pub struct Budget(Arc<Meter>);

struct Meter {
    limits: Limits,
    /// The deadline of the phase: the limit's name, its value, and the time.
    end: Option<(&'static str, Duration, Instant)>,
    /// Bytes of private memory when the work began, if memory is limited.
    before: Option<u64>,
    /// Maximum number of bytes that may be charged.
    allowance: Option<u64>,
    charged: AtomicU64,
    /// Number of checks so far.
    asked: AtomicU64,
    exceeded: OnceLock<Exceeded>,
    interruption: Option<Interruption>,
    outer: Option<Budget>,
}

/// A callback of the caller that decides whether the work is interrupted.
struct Interruption {
    check: Box<dyn Fn() -> bool + Send + Sync>,
    /// The thread that calls the check; see [`here`].
    thread: usize,
    /// Whether the check has returned true.
    is_interrupted: AtomicBool,
}

thread_local! {
    static CURRENT: RefCell<Option<Budget>> = const { RefCell::new(None) };
    /// Whether the current thread has a budget. It is a plain cell without destructor, so that a check costs one load.
    static HAS_ONE: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread calls the check of an enclosing interruptible budget.
    static POLLS: Cell<bool> = const { Cell::new(false) };
    /// The time of the next call of the check.
    static NEXT_POLL: Cell<Option<Instant>> = const { Cell::new(None) };
    /// A static whose address identifies the thread among all running threads.
    static HERE: u8 = const { 0 };
}

/// Interval between two calls of the check of an interruptible budget. A waiting thread checks its budget at the same interval.
///
/// Users notice delays of about 100 ms and more. On the other hand, a call may need a lock that another thread holds for milliseconds (Python's).
pub const PAUSE: Duration = Duration::from_millis(20);

/// Number of checks per read of the clock, which takes longer than the rest of a check.
const LOOK: u64 = 32;

/// Number of clock reads per query of the process's memory use. A query takes some microseconds.
const WEIGH: u64 = 8;

impl Budget {
    /// Returns a budget that starts now, within that of the current thread if it has one.
    pub fn new(limits: &Limits, phase: Phase) -> Budget {
        let start = Instant::now();
        let outer = current();
        // Memory is counted from the start of an outer phase.
        let known = outer.as_ref().and_then(|outer| outer.0.before);
        Budget(Arc::new(Meter {
            limits: *limits,
            end: phase
                .time(limits)
                .and_then(|(name, time)| Some((name, time, start.checked_add(time)?))),
            before: limits.memory.and_then(|_| known.or_else(memory::private_bytes)),
            allowance: None,
            charged: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            exceeded: OnceLock::new(),
            interruption: None,
            outer,
        }))
    }

    /// Returns a budget without limits, within that of the current thread, for work that ends soon after `check` has returned true.
    ///
    /// Only the current thread calls `check`: about every 20 ms, when the work [`check`]s its budget or waits for other threads ([`Latch`](crate::Latch)).
    /// During the call, the thread has no such budget, so `check` may do other work.
    pub fn interruptible(check: impl Fn() -> bool + Send + Sync + 'static) -> Budget {
        NEXT_POLL.set(None);
        Budget(Arc::new(Meter {
            limits: Limits::NONE,
            end: None,
            before: None,
            allowance: None,
            charged: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            exceeded: OnceLock::new(),
            interruption: Some(Interruption {
                check: Box::new(check),
                thread: here(),
                is_interrupted: AtomicBool::new(false),
            }),
            outer: current(),
        }))
    }

    /// Returns whether the check of this budget itself has returned true.
    pub fn is_interrupted(&self) -> bool {
        let interruption = self.0.interruption.as_ref();
        interruption.is_some_and(|i| i.is_interrupted.load(Ordering::Relaxed))
    }

    /// Returns a budget whose only limit is that at most `bytes` may be [charged](charge), within that of the current thread.
    pub fn with_allowance(bytes: u64) -> Budget {
        let mut budget = Budget::new(&Limits::NONE, Phase::Load);
        if let Some(meter) = Arc::get_mut(&mut budget.0) {
            meter.allowance = Some(bytes);
        }
        budget
    }

    /// Sets this as the current thread's budget until the guard is dropped.
    pub fn enter(&self) -> Entered {
        Entered::new(Some(self.clone()))
    }

    /// Returns the current thread's budget, to be entered on another thread that runs a part of the work.
    pub fn current() -> Option<Budget> {
        current()
    }

    /// Returns the limit that was exceeded first, of this budget or an enclosing one.
    pub fn exceeded(&self) -> Option<&Exceeded> {
        self.chain().find_map(|meter| meter.exceeded.get())
    }

    /// Returns the meters of this budget and of the enclosing ones.
    fn chain(&self) -> impl Iterator<Item = &Meter> {
        std::iter::successors(Some(&*self.0), |meter| meter.outer.as_ref().map(|outer| &*outer.0))
    }

    fn check(&self) -> Result<(), Exceeded> {
        if let Some(exceeded) = self.exceeded() {
            return Err(exceeded.clone());
        }
        let asked = self.0.asked.fetch_add(1, Ordering::Relaxed);
        if asked.is_multiple_of(LOOK) {
            self.look()?;
            if asked.is_multiple_of(LOOK * WEIGH) {
                self.weigh(0)?;
            }
        }
        Ok(())
    }

    /// Checks the time limit.
    fn look(&self) -> Result<(), Exceeded> {
        let now = Instant::now();
        for meter in self.chain() {
            if let Some((name, time, end)) = meter.end
                && now > end
            {
                return Err(meter.exceed(name, format!("{}s", time.as_secs_f64()), None));
            }
        }
        Ok(())
    }

    /// Checks time and memory at the end of the work, because the last check may be long ago.
    ///
    /// # Errors
    /// If a limit of this budget, or of an enclosing one, is or was exceeded.
    pub fn finish(&self) -> Result<(), Exceeded> {
        match self.exceeded() {
            Some(exceeded) => Err(exceeded.clone()),
            None => self.look().and_then(|()| self.weigh(0)),
        }
    }

    /// Checks the memory in use plus `more` bytes.
    fn weigh(&self, more: u64) -> Result<(), Exceeded> {
        let mut now = None;
        for meter in self.chain() {
            if let (Some(limit), Some(before)) = (meter.limits.memory, meter.before) {
                let now = *now.get_or_insert_with(|| memory::private_bytes().unwrap_or_default());
                let grown = now.saturating_sub(before).saturating_add(more);
                if grown > limit {
                    return Err(meter.exceed("memory", limit.to_string(), Some(format!("{grown} bytes"))));
                }
            }
        }
        Ok(())
    }

    fn charge(&self, bytes: u64) -> Result<(), Exceeded> {
        for meter in self.chain() {
            let charged = meter.charged.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
            if let Some(allowance) = meter.allowance
                && charged > allowance
            {
                return Err(meter.exceed("reading", allowance.to_string(), Some(format!("{charged} bytes"))));
            }
        }
        self.check()
    }

    fn check_count(
        &self,
        name: &'static str,
        limit: impl Fn(&Limits) -> Option<u64>,
        count: u64,
        found: impl Fn() -> String,
    ) -> Result<(), Exceeded> {
        for meter in self.chain() {
            if let Some(limit) = limit(&meter.limits).filter(|&limit| count > limit) {
                return Err(meter.exceed(name, limit.to_string(), Some(found())));
            }
        }
        Ok(())
    }

    /// Returns the minimum of a limit over this budget and the enclosing ones.
    fn least(&self, limit: impl Fn(&Limits) -> Option<u64>) -> Option<u64> {
        self.chain().filter_map(|meter| limit(&meter.limits)).min()
    }
}

impl Meter {
    /// Returns the check that the current thread calls, if any.
    fn polled_here(&self) -> Option<&Interruption> {
        self.interruption.as_ref().filter(|i| i.thread == here())
    }

    /// Records that a limit is exceeded; returns the one that was exceeded first.
    fn exceed(&self, name: &'static str, value: String, found: Option<String>) -> Exceeded {
        self.exceeded
            .get_or_init(|| Exceeded(Box::new(Excess { name, value, found })))
            .clone()
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}

/// A guard during whose lifetime its budget is the current thread's.
#[must_use = "the budget is left when this is dropped"]
pub struct Entered {
    before: Option<Budget>,
    /// The guard must be dropped on the thread that entered the budget.
    of_this_thread: PhantomData<*const ()>,
}

impl Entered {
    fn new(budget: Option<Budget>) -> Entered {
        Entered {
            before: set_current(budget),
            of_this_thread: PhantomData,
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        set_current(self.before.take());
    }
}

fn current() -> Option<Budget> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Sets the current thread's budget; returns the previous one.
fn set_current(budget: Option<Budget>) -> Option<Budget> {
    HAS_ONE.set(budget.is_some());
    let polls = |budget: &Budget| budget.chain().any(|meter| meter.polled_here().is_some());
    POLLS.set(budget.as_ref().is_some_and(polls));
    CURRENT.with(|current| current.replace(budget))
}

/// Returns an identifier of the current thread.
fn here() -> usize {
    HERE.with(|byte| std::ptr::from_ref(byte).addr())
}

/// Returns whether the current thread calls the check of an enclosing interruptible budget.
pub fn polls() -> bool {
    POLLS.get()
}

/// Calls the checks of the interruptible budgets for which the current thread is responsible, if it is time.
fn poll() {
    if !POLLS.get() {
        return;
    }
    let now = Instant::now();
    match NEXT_POLL.get() {
        Some(next) if now < next => return,
        // Most work ends before the first call.
        None => return NEXT_POLL.set(Some(now + PAUSE)),
        Some(_) => {}
    }
    let Some(budget) = current() else { return };
    // Work of the checks is not counted.
    let outside = Entered::new(None);
    for meter in budget.chain() {
        if let Some(interruption) = meter.polled_here()
            && !interruption.is_interrupted.load(Ordering::Relaxed)
            && (interruption.check)()
        {
            interruption.is_interrupted.store(true, Ordering::Relaxed);
            meter.exceed(INTERRUPTION, String::new(), None);
        }
    }
    drop(outside);
    NEXT_POLL.set(Some(Instant::now() + PAUSE));
}

/// Calls `ask` with the current thread's budget; returns `none` if there is none.
fn ask<R>(none: R, ask: impl FnOnce(&Budget) -> R) -> R {
    if !HAS_ONE.get() {
        return none;
    }
    CURRENT.with(|current| match &*current.borrow() {
        Some(budget) => ask(budget),
        None => none,
    })
}

/// Checks time and memory at intervals; to be called in every step of work that may take long.
///
/// # Errors
/// If the current thread's budget is exceeded.
pub fn check() -> Result<(), Exceeded> {
    poll();
    ask(Ok(()), Budget::check)
}

/// Counts `bytes` that reading has allocated permanently, and checks time and memory.
///
/// # Errors
/// If the current thread's budget is exceeded.
pub fn charge(bytes: usize) -> Result<(), Exceeded> {
    poll();
    ask(Ok(()), |budget| budget.charge(bytes as u64))
}

/// Counts `bytes` of temporary memory of a reader, until the result is dropped, and checks time and memory.
///
/// # Errors
/// If the current thread's budget is exceeded.
pub fn hold(bytes: usize) -> Result<Held, Exceeded> {
    charge(bytes)?;
    Ok(Held {
        budget: current(),
        bytes: bytes as u64,
    })
}

/// Bytes that are charged during its lifetime; see [`hold`].
#[derive(Debug)]
pub struct Held {
    budget: Option<Budget>,
    bytes: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        for meter in self.budget.iter().flat_map(Budget::chain) {
            meter.charged.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// Checks that another allocation of `bytes` is within the limit.
///
/// # Errors
/// If the current thread's budget is exceeded.
pub fn check_memory(bytes: usize) -> Result<(), Exceeded> {
    /// Size of a request in bytes from which memory is checked at once. The next periodic check detects smaller ones.
    const MUCH: usize = 1 << 24;
    ask(Ok(()), |budget| match bytes {
        0..MUCH => Ok(()),
        _ => budget.weigh(bytes as u64),
    })
}

/// Checks that the graphs of a module may have `nodes` nodes in total.
///
/// # Errors
/// If the current thread's budget is exceeded.
pub fn check_nodes(nodes: usize) -> Result<(), Exceeded> {
    ask(Ok(()), |budget| {
        budget.check_count(
            "nodes",
            |l| l.nodes,
            nodes as u64,
            || format!("graphs of {nodes} nodes"),
        )
    })
}

/// Checks that a tensor may have `elements` elements.
///
/// # Errors
/// If the current thread's budget is exceeded.
pub fn check_elements(elements: u64) -> Result<(), Exceeded> {
    ask(Ok(()), |budget| {
        let found = || format!("a tensor of {elements} elements");
        budget.check_count("elements", |l| l.elements, elements, found)
    })
}

/// Checks that something may be repeated `times` times. `what` describes it in messages, such as "rounds of `repeat`".
///
/// # Errors
/// If the current thread's budget is exceeded.
pub fn check_repetitions(times: u64, what: &str) -> Result<(), Exceeded> {
    ask(Ok(()), |budget| {
        budget.check_count("repetitions", |l| l.repetitions, times, || format!("{times} {what}"))
    })
}

/// Returns the maximum number of nodes of all graphs together; `None` if unlimited.
pub fn most_nodes() -> Option<u64> {
    ask(None, |budget| budget.least(|l| l.nodes))
}

/// Returns the maximum number of repetitions; `None` if unlimited.
pub fn most_repetitions() -> Option<u64> {
    ask(None, |budget| budget.least(|l| l.repetitions))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: Result<(), Exceeded>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn nothing_is_checked_without_a_budget() {
        assert!(check().is_ok() && charge(usize::MAX).is_ok() && check_memory(usize::MAX).is_ok());
        assert!(check_nodes(usize::MAX).is_ok() && check_elements(u64::MAX).is_ok());
        assert_eq!((most_nodes(), most_repetitions()), (None, None));
    }

    #[test]
    fn each_limit_names_itself_and_stays_exceeded() {
        let limits: Limits = "nodes=10,elements=20,repetitions=3,memory=1G".parse().unwrap();
        type Exceeding = fn() -> Result<(), Exceeded>;
        let exceeding: [(&str, Exceeding); 4] = [
            ("the limit nodes=10 is exceeded: graphs of 11 nodes", || check_nodes(11)),
            ("the limit elements=20 is exceeded: a tensor of 21 elements", || {
                check_elements(21)
            }),
            ("the limit repetitions=3 is exceeded: 4 rounds", || {
                check_repetitions(4, "rounds")
            }),
            ("the limit memory=1073741824 is exceeded: ", || check_memory(2 << 30)),
        ];
        for (expected, exceed) in exceeding {
            let budget = Budget::new(&limits, Phase::Load);
            let entered = budget.enter();
            assert!(check_nodes(10).is_ok() && check_elements(20).is_ok() && check_memory(1 << 25).is_ok());
            assert!(check().is_ok() && budget.exceeded().is_none());
            assert!(text(exceed()).starts_with(expected));
            assert!(text(check()).starts_with(expected));
            assert!(budget.exceeded().is_some());
            drop(entered);
            assert!(check().is_ok());
        }
    }

    #[test]
    fn time_ends_inner_stages_too() {
        let short: Limits = "freeze-time=1ms".parse().unwrap();
        let outer = Budget::new(&short, Phase::Freeze);
        let _entered = outer.enter();
        let inner = Budget::new(&Limits::NONE, Phase::Pass);
        let _entered = inner.enter();
        std::thread::sleep(Duration::from_millis(5));
        let late = inner.finish().unwrap_err();
        assert_eq!(late.to_string(), "the limit freeze-time=0.001s is exceeded");
        assert_eq!(check(), Err(late.clone()));
        assert_eq!(inner.exceeded(), Some(&late));
    }

    #[test]
    fn what_reading_makes_is_charged_on_all_threads() {
        let budget = Budget::with_allowance(1000);
        let _entered = budget.enter();
        // Dropped memory is not counted any more.
        drop(hold(600).unwrap());
        assert!(charge(600).is_ok());
        std::thread::scope(|scope| {
            let current = Budget::current();
            let part = scope.spawn(move || {
                let _entered = current.as_ref().map(Budget::enter);
                charge(600)
            });
            assert_eq!(
                text(part.join().unwrap()),
                "the limit reading=1000 is exceeded: 1200 bytes"
            );
        });
        assert!(check().is_err());
    }

    #[test]
    fn work_ends_once_its_check_says_so() {
        let (asked, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, says) = (Arc::clone(&asked), Arc::clone(&stop));
        let budget = Budget::interruptible(move || {
            // The check may do work with a budget of its own.
            let _entered = Budget::new(&Limits::NONE, Phase::Load).enter();
            assert!(check().is_ok());
            count.fetch_add(1, Ordering::Relaxed);
            says.load(Ordering::Relaxed)
        });
        let _entered = budget.enter();
        let inner = Budget::new(&Limits::NONE, Phase::Pass);
        let _entered = inner.enter();
        assert!((0..1000).all(|_| check().is_ok()));
        std::thread::sleep(PAUSE);
        assert!(check().is_ok());
        assert!((1..4).contains(&asked.load(Ordering::Relaxed)), "{asked:?}");
        stop.store(true, Ordering::Relaxed);
        let latch = crate::Latch::new();
        std::thread::scope(|scope| {
            let current = Budget::current();
            let finishing = latch.finishing();
            let part = scope.spawn(move || {
                let _finishing = finishing;
                let _entered = current.as_ref().map(Budget::enter);
                // This thread waits for the other's result.
                loop {
                    std::thread::sleep(Duration::from_millis(1));
                    if let Err(exceeded) = check() {
                        return exceeded;
                    }
                }
            });
            latch.wait();
            assert!(part.join().unwrap().is_interruption());
        });
        assert_eq!(text(check()), "interrupted");
        assert!(budget.is_interrupted() && !inner.is_interrupted());
        assert!(inner.finish().is_err_and(|exceeded| exceeded.is_interruption()));
    }

    #[test]
    fn memory_is_weighed_now_and_then() {
        let limits: Limits = "memory=16M".parse().unwrap();
        let budget = Budget::new(&limits, Phase::Load);
        let _entered = budget.enter();
        let much = std::hint::black_box(vec![1u8; 64 << 20]);
        let weighed = (0..=LOOK * WEIGH).find_map(|_| check().err());
        assert_eq!(
            weighed.map(|e| e.name()),
            cfg!(target_os = "linux").then_some("memory"),
            "{}",
            much.len()
        );
    }
}
