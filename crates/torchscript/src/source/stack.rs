//! Threads with large stacks for recursive work. Source trees, values and pickles are walked recursively, and the caller's stack may be too small for that.
//!
//! Work runs on a thread with a large stack if the system allows it, else with a smaller one, else on the caller's. The nesting of source is limited by a
//! number of levels ([`MAX_DEPTH`]), and on small stacks also by the remaining bytes.

use std::hint::black_box;

use frazil_limits::{Budget, Latch};

use super::circles::Circles;
use super::depth::MAX_DEPTH;
use frazil_rt::SignalsBlocked;

/// Stack sizes in bytes, in the order in which they are tried. The first suffices for [`MAX_DEPTH`] levels in debug builds.
const STACK_BYTES: &[usize] = &[256 << 20, 64 << 20, 16 << 20, 4 << 20];

/// Bytes assumed to be left on the caller's stack if the system does not report it.
const ASSUMED_BYTES: usize = 256 << 10;

/// Maximum number of bytes of a caller's stack that are counted. The main thread's stack may be unlimited, and memory below another thread's stack need not
/// belong to it.
const MAX_CALLER_BYTES: usize = 8 << 20;

/// Maximum stack bytes of the parser per nesting level: 9 KiB in debug builds and less in others, as measured by the test `the_parser_needs_less`.
const PARSER_LEVEL_BYTES: usize = 12 << 10;

/// The available stack of the thread that runs recursive work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stack {
    /// Recursion stops when frames reach below this address. A quarter of the stack is below it, for code that does not check.
    floor: usize,
}

impl Stack {
    /// Returns the stack of the current thread, of which `bytes` are left.
    fn with_left(bytes: usize) -> Stack {
        Stack {
            floor: here().saturating_sub(bytes - bytes / 4),
        }
    }

    /// Returns whether too little stack is left for another nesting level.
    pub(crate) fn is_short(self) -> bool {
        here() < self.floor
    }

    /// Returns the maximum number of nesting levels that the parser may reach.
    pub(crate) fn parser_levels(self) -> usize {
        (here().saturating_sub(self.floor) / PARSER_LEVEL_BYTES).min(MAX_DEPTH)
    }
}

/// Returns an address in the caller's frame. Stacks grow towards lower addresses.
#[inline(never)]
fn here() -> usize {
    let marker = 0u8;
    std::ptr::from_ref(black_box(&marker)).addr()
}

/// Runs `work` on a thread with a large stack, or on the caller's if the system refuses that.
pub(crate) fn with_stack<T: Send>(work: impl FnOnce(Stack) -> T + Send) -> T {
    on_first_of(STACK_BYTES, work)
}

fn on_first_of<T: Send, W: FnOnce(Stack) -> T + Send>(sizes: &[usize], work: W) -> T {
    let work = move |stack| {
        let _circles = Circles::new();
        work(stack)
    };
    let mut work = Some(work);
    for &bytes in sizes {
        if let Some(result) = on_thread(bytes, &mut work) {
            return result;
        }
    }
    let work = work.expect("only a thread that started has taken it");
    work(Stack::with_left(caller_bytes().unwrap_or(ASSUMED_BYTES)))
}

/// Runs `work` on a thread with `bytes` of stack, if one can be started.
fn on_thread<T: Send, W: FnOnce(Stack) -> T + Send>(bytes: usize, work: &mut Option<W>) -> Option<T> {
    let latch = Latch::new();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("frazil-script".into())
            .stack_size(bytes);
        let budget = Budget::current();
        let finishing = latch.finishing();
        let run = move || {
            let _finishing = finishing;
            let _entered = budget.as_ref().map(Budget::enter);
            work.take().map(|work| work(Stack::with_left(bytes)))
        };
        let blocked = SignalsBlocked::new();
        let started = thread.spawn_scoped(scope, run);
        drop(blocked);
        let started = started.ok()?;
        latch.wait();
        match started.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Returns the number of bytes left on the stack of the current thread, from the system's list of mappings. A thread's stack is a mapping above a guard page.
/// The main thread's stack grows down to its limit.
fn caller_bytes() -> Option<usize> {
    let here = here();
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let (start, end, is_main) = maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let (start, end) = (
            usize::from_str_radix(start, 16).ok()?,
            usize::from_str_radix(end, 16).ok()?,
        );
        (start..end)
            .contains(&here)
            .then(|| (start, end, rest.ends_with("[stack]")))
    })?;
    let lowest = if is_main {
        let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max stack size"))?;
        let limit = limit.split_whitespace().next()?;
        end.saturating_sub(limit.parse().unwrap_or(MAX_CALLER_BYTES))
    } else {
        start
    };
    Some(here.saturating_sub(lowest).min(MAX_CALLER_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::file::SourceFile;

    /// Returns source texts with `levels` of nesting: one for each construct on which the parser recurses.
    fn nested(levels: usize) -> Vec<String> {
        let chain = |open: &str, close: &str| format!("x = {}y{}\n", open.repeat(levels), close.repeat(levels));
        let mut texts: Vec<String> = [
            ("(", ")"),
            ("[", "]"),
            ("f(", ")"),
            ("{1: ", "}"),
            ("-", ""),
            ("not ", ""),
            ("a + ", ""),
        ]
        .map(|(open, close)| chain(open, close))
        .to_vec();
        let blocks = (0..levels.min(90)).map(|level| format!("{}if x:\n", " ".repeat(level)));
        texts.push(format!(
            "{}{}pass\n",
            blocks.collect::<String>(),
            " ".repeat(levels.min(90))
        ));
        texts
    }

    #[test]
    fn work_runs_on_the_callers_stack_where_no_thread_starts() {
        let caller = std::thread::current().id();
        assert_eq!(on_first_of(&[], |_| std::thread::current().id()), caller);
        // No system gives so much; the next size is taken.
        let other = on_first_of(&[usize::MAX >> 1, 1 << 20], |_| std::thread::current().id());
        assert_ne!(other, caller);
        assert_eq!(on_first_of(&[usize::MAX >> 1], |_| std::thread::current().id()), caller);
    }

    #[test]
    fn what_is_left_of_the_callers_stack_is_known() {
        for bytes in [256 << 10, 1 << 20, 4 << 20] {
            let thread = std::thread::Builder::new().stack_size(bytes);
            let left = thread.spawn(|| caller_bytes().unwrap()).unwrap().join().unwrap();
            assert!(left <= bytes && left > bytes / 2, "{left} of {bytes}");
        }
    }

    #[test]
    fn the_parser_needs_less() {
        // The levels that are allowed fit the stack that they are allowed on, whatever nests; more are an error.
        for bytes in [256 << 10, 1 << 20, 4 << 20] {
            let thread = std::thread::Builder::new().stack_size(bytes);
            let parse = move || {
                on_first_of(&[], |stack| {
                    let levels = stack.parser_levels();
                    assert!(levels > 8, "{levels} levels in {bytes} bytes");
                    for text in nested(levels - 1) {
                        SourceFile::parse("deep.py", &text, None, stack).unwrap();
                    }
                    for text in &nested(MAX_DEPTH + 1)[..6] {
                        SourceFile::parse("deep.py", text, None, stack).unwrap_err();
                    }
                });
            };
            thread.spawn(parse).unwrap().join().unwrap();
        }
    }
}
