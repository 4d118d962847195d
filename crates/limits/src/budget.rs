//! Budgets: the limits for one phase of the work, and the use of them so far.

use crate::{Limits, memory};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use thiserror::Error;

/// A part of the work on an input, most of which have a time limit of their own.
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
    /// The limit of its time: name and value.
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

/// The name under which an interruption ends work, as if it were a limit.
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
    /// The limit's name, as in the text of [`Limits`]. `reading` for what reading an archive may need, which depends on its size.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Whether no limit was exceeded, but the work was interrupted ([`Budget::interruptible`]).
    pub fn is_interruption(&self) -> bool {
        self.0.name == INTERRUPTION
    }

    /// The limit's value.
    pub fn value(&self) -> &str {
        &self.0.value
    }

    /// What would be too much, where that is known: "graphs of 1001 nodes".
    pub fn found(&self) -> Option<&str> {
        self.0.found.as_deref()
    }
}

/// What is left of the [`Limits`] for one phase of the work. Phases nest: a pass within freezing has to keep within both budgets.
#[derive(Clone)]
pub struct Budget(Arc<Meter>);

struct Meter {
    limits: Limits,
    /// The end of the phase: the limit's name, its value, and when.
    end: Option<(&'static str, Duration, Instant)>,
    /// Bytes of private memory when the work began, where there is a limit for memory.
    before: Option<u64>,
    /// Bytes that may be charged.
    allowance: Option<u64>,
    charged: AtomicU64,
    /// How often it was asked.
    asked: AtomicU64,
    exceeded: OnceLock<Exceeded>,
    interruption: Option<Interruption>,
    outer: Option<Budget>,
}

/// What says whether work is to be interrupted.
struct Interruption {
    check: Box<dyn Fn() -> bool + Send + Sync>,
    /// The thread that calls it; see [`here`].
    thread: usize,
    /// Whether it has returned true.
    is_interrupted: AtomicBool,
}

thread_local! {
    static CURRENT: RefCell<Option<Budget>> = const { RefCell::new(None) };
    /// Whether there is one: it needs no destructor, so that asking costs a load.
    static HAS_ONE: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread calls the check of an interruptible budget around it.
    static POLLS: Cell<bool> = const { Cell::new(false) };
    /// When it does so the next time.
    static NEXT_POLL: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Its address tells living threads from each other.
    static HERE: u8 = const { 0 };
}

/// Time between two calls of the check of an interruptible budget, and after which a thread that waits looks at its budget. People notice delays from about 100 ms on; a call may need a lock that another
/// thread holds for milliseconds (Python's).
pub const PAUSE: Duration = Duration::from_millis(20);

/// One of so many checks looks at the clock, which takes longer than the rest of a check.
const LOOK: u64 = 32;

/// One of so many looks at the clock also asks the system how much memory there is, which takes some microseconds.
const WEIGH: u64 = 8;

impl Budget {
    /// A budget that starts now, within that of the current thread if it has one.
    pub fn new(limits: &Limits, phase: Phase) -> Budget {
        let start = Instant::now();
        let outer = current();
        // What an outer phase began with counts.
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

    /// A budget without limits, within that of the current thread, for work that ends soon after `check` has returned true.
    ///
    /// Only the current thread calls `check`: every 20 ms or so, where the work [`check`]s its budget or waits for other threads ([`Latch`](crate::Latch)).
    /// Meanwhile the budget is not the thread's, so that `check` may do other work.
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

    /// Whether the check of this very budget has returned true.
    pub fn is_interrupted(&self) -> bool {
        let interruption = self.0.interruption.as_ref();
        interruption.is_some_and(|i| i.is_interrupted.load(Ordering::Relaxed))
    }

    /// A budget without limits but that no more than `bytes` may be [charged](charge), within that of the current thread.
    pub fn with_allowance(bytes: u64) -> Budget {
        let mut budget = Budget::new(&Limits::NONE, Phase::Load);
        if let Some(meter) = Arc::get_mut(&mut budget.0) {
            meter.allowance = Some(bytes);
        }
        budget
    }

    /// Makes it the current thread's until the guard is dropped.
    pub fn enter(&self) -> Entered {
        Entered::new(Some(self.clone()))
    }

    /// The current thread's, to be entered on another that does a part of the work.
    pub fn current() -> Option<Budget> {
        current()
    }

    /// The limit that was exceeded first, of this budget or one around it.
    pub fn exceeded(&self) -> Option<&Exceeded> {
        self.chain().find_map(|meter| meter.exceeded.get())
    }

    /// Its meter, and those of the budgets around it.
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

    /// Checks the time.
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

    /// Checks time and memory at the end of the work, which may have asked long ago.
    ///
    /// # Errors
    /// When a limit of this budget, or of one around it, is exceeded, or was.
    pub fn finish(&self) -> Result<(), Exceeded> {
        match self.exceeded() {
            Some(exceeded) => Err(exceeded.clone()),
            None => self.look().and_then(|()| self.weigh(0)),
        }
    }

    /// Checks the memory that there is, with `more` bytes.
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

    /// The least of a limit.
    fn least(&self, limit: impl Fn(&Limits) -> Option<u64>) -> Option<u64> {
        self.chain().filter_map(|meter| limit(&meter.limits)).min()
    }
}

impl Meter {
    /// The check that the current thread calls.
    fn polled_here(&self) -> Option<&Interruption> {
        self.interruption.as_ref().filter(|i| i.thread == here())
    }

    /// Records that a limit is exceeded; gives the one that was exceeded first.
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

/// While it lives, its budget is the current thread's.
#[must_use = "the budget is left when this is dropped"]
pub struct Entered {
    before: Option<Budget>,
    /// It has to be dropped on the thread that entered.
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

/// Makes `budget` the current thread's; gives the one that was.
fn set_current(budget: Option<Budget>) -> Option<Budget> {
    HAS_ONE.set(budget.is_some());
    let polls = |budget: &Budget| budget.chain().any(|meter| meter.polled_here().is_some());
    POLLS.set(budget.as_ref().is_some_and(polls));
    CURRENT.with(|current| current.replace(budget))
}

/// What tells the current thread from others.
fn here() -> usize {
    HERE.with(|byte| std::ptr::from_ref(byte).addr())
}

/// Whether the current thread calls the check of an interruptible budget around it.
pub fn polls() -> bool {
    POLLS.get()
}

/// Calls the checks of the interruptible budgets that the current thread is responsible for, if it is time.
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
    // What the checks do is no part of the work.
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

/// What the current thread's budget says; fine where there is none.
fn ask<R>(none: R, ask: impl FnOnce(&Budget) -> R) -> R {
    if !HAS_ONE.get() {
        return none;
    }
    CURRENT.with(|current| match &*current.borrow() {
        Some(budget) => ask(budget),
        None => none,
    })
}

/// Checks time and memory, now and then; for every step of work that may take long.
///
/// # Errors
/// When the current thread's budget is exceeded.
pub fn check() -> Result<(), Exceeded> {
    poll();
    ask(Ok(()), Budget::check)
}

/// Counts `bytes` of what reading makes, which is kept, and checks time and memory.
///
/// # Errors
/// When the current thread's budget is exceeded.
pub fn charge(bytes: usize) -> Result<(), Exceeded> {
    poll();
    ask(Ok(()), |budget| budget.charge(bytes as u64))
}

/// Counts `bytes` of what reading makes until what this gives is dropped, and checks time and memory.
///
/// # Errors
/// When the current thread's budget is exceeded.
pub fn hold(bytes: usize) -> Result<Held, Exceeded> {
    charge(bytes)?;
    Ok(Held {
        budget: current(),
        bytes: bytes as u64,
    })
}

/// Bytes that are charged while it lives; see [`hold`].
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

/// Checks that there may be one more allocation of `bytes`.
///
/// # Errors
/// When the current thread's budget is exceeded.
pub fn check_memory(bytes: usize) -> Result<(), Exceeded> {
    /// Smaller requests are seen when memory is weighed the next time.
    const MUCH: usize = 1 << 24;
    ask(Ok(()), |budget| match bytes {
        0..MUCH => Ok(()),
        _ => budget.weigh(bytes as u64),
    })
}

/// Checks that graphs may have `nodes` nodes together.
///
/// # Errors
/// When the current thread's budget is exceeded.
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
/// When the current thread's budget is exceeded.
pub fn check_elements(elements: u64) -> Result<(), Exceeded> {
    ask(Ok(()), |budget| {
        let found = || format!("a tensor of {elements} elements");
        budget.check_count("elements", |l| l.elements, elements, found)
    })
}

/// Checks that something may be repeated `times` times, `what`: "rounds of `repeat`".
///
/// # Errors
/// When the current thread's budget is exceeded.
pub fn check_repetitions(times: u64, what: &str) -> Result<(), Exceeded> {
    ask(Ok(()), |budget| {
        budget.check_count("repetitions", |l| l.repetitions, times, || format!("{times} {what}"))
    })
}

/// How many nodes graphs may have together; none where that is not limited.
pub fn most_nodes() -> Option<u64> {
    ask(None, |budget| budget.least(|l| l.nodes))
}

/// How often something may be repeated; none where that is not limited.
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
        // What is dropped counts no longer.
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
            // It may do work of its own.
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
        std::thread::scope(|scope| {
            let current = Budget::current();
            let latch = crate::Latch::new();
            let finishing = latch.finishing();
            let part = scope.spawn(move || {
                let _finishing = finishing;
                let _entered = current.as_ref().map(Budget::enter);
                // This thread waits for what the other finds.
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
