//! Stack for recursive work: source trees, values and pickles are walked recursively, and the caller's stack may be too small for that.
//!
//! Work gets a thread with a stack of its own: a large one if the system allows, else a smaller one, else the caller's. How deeply source may nest is bounded
//! by a number of levels ([`MAX_DEPTH`]), and on small stacks by the bytes that are left too.

use std::hint::black_box;

use frazil_limits::{Budget, Latch};

use super::depth::MAX_DEPTH;
use frazil_rt::SignalsBlocked;

/// Sizes of stacks in bytes, in the order in which they are tried. The first is enough for [`MAX_DEPTH`] levels in debug builds.
const STACK_BYTES: &[usize] = &[256 << 20, 64 << 20, 16 << 20, 4 << 20];

/// Bytes assumed to be left on the caller's stack where the system does not tell.
const ASSUMED_BYTES: usize = 256 << 10;

/// Most bytes of a caller's stack that count. The main thread's stack may be unlimited, and what lies below another's start need not belong to it.
const MAX_CALLER_BYTES: usize = 8 << 20;

/// Bytes that the parser takes for one level of nesting, at most: 9 KiB in debug builds and less in others, as measured by the test `the_parser_needs_less`.
const PARSER_LEVEL_BYTES: usize = 12 << 10;

/// The stack that recursive work runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stack {
    /// Recursion stops where frames reach below this address. A quarter of the stack is below it: for what does not look.
    floor: usize,
}

impl Stack {
    /// The stack of the current thread, of which `bytes` are left.
    fn with_left(bytes: usize) -> Stack {
        Stack {
            floor: here().saturating_sub(bytes - bytes / 4),
        }
    }

    /// Whether there is too little left for another level of nesting.
    pub(crate) fn is_short(self) -> bool {
        here() < self.floor
    }

    /// How many levels of nesting the parser may be given.
    pub(crate) fn parser_levels(self) -> usize {
        (here().saturating_sub(self.floor) / PARSER_LEVEL_BYTES).min(MAX_DEPTH)
    }
}

/// An address in the frame of the caller. Stacks grow towards lower ones.
#[inline(never)]
fn here() -> usize {
    let marker = 0u8;
    std::ptr::from_ref(black_box(&marker)).addr()
}

/// Carries out `work` on a thread with a large stack, or where the system refuses that on the caller's.
pub(crate) fn with_stack<T: Send>(work: impl FnOnce(Stack) -> T + Send) -> T {
    on_first_of(STACK_BYTES, work)
}

fn on_first_of<T: Send, W: FnOnce(Stack) -> T + Send>(sizes: &[usize], work: W) -> T {
    let mut work = Some(work);
    for &bytes in sizes {
        if let Some(result) = on_thread(bytes, &mut work) {
            return result;
        }
    }
    let work = work.expect("only a thread that started has taken it");
    work(Stack::with_left(caller_bytes().unwrap_or(ASSUMED_BYTES)))
}

/// Carries out `work` on a thread with `bytes` of stack, if one can be started.
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

/// The bytes that are left on the stack of the current thread, from the system's list of mappings: a thread's stack is one mapping above a guard page, and
/// the main thread's grows down to its limit.
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

    /// `levels` of nesting of each kind that the parser recurses into.
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
