//! Forks run on the threads that a call may use, end with the call, and propagate exceptions.

use frazil::ir::types;
use frazil::runtime::interp::{ErrorKind, Interpreter, Output};
use frazil::runtime::value::ListValue;
use frazil::{Loaded, Session, Tensor, Value};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const SOURCE: &str = "
def work(x, n: int):
    print(n)
    return x * n

def both(x):
    a = torch.jit.fork(work, x, 2)
    b = torch.jit.fork(work, x, 3)
    return torch.jit.wait(a) + torch.jit.wait(b)

def refuse(x, n: int):
    if n > 1:
        raise ValueError('too many: ' + str(n))
    return x

def fails(x):
    first = torch.jit.fork(refuse, x, 1)
    second = torch.jit.fork(refuse, x, 7)
    return torch.jit.wait(first) + torch.jit.wait(second)

def leaf(x, n: int):
    return x + n

def branch(x, n: int):
    futures = torch.jit.annotate(List[Future[Tensor]], [])
    for i in range(n):
        futures.append(torch.jit.fork(leaf, x, i))
    sum = x
    for future in futures:
        sum = sum + torch.jit.wait(future)
    return sum

def tree(x, n: int):
    futures = torch.jit.annotate(List[Future[Tensor]], [])
    for i in range(n):
        futures.append(torch.jit.fork(branch, x, i))
    sum = x
    for future in futures:
        sum = sum + torch.jit.wait(future)
    return sum

def note(to: List[int], n: int):
    to.append(n)
    return n

def forgets(to: List[int]):
    torch.jit.fork(note, to, 5)
    return len(to) * 0

def twice(x, n: int):
    print(n)
    print(n)
    return x * n

def meets_the_second(x):
    a = torch.jit.fork(twice, x, 2)
    print(0)
    b = torch.jit.fork(work, x, 3)
    return torch.jit.wait(a) + torch.jit.wait(b)
";

/// Makes each line wait until another is being printed concurrently, or until a timeout.
#[derive(Default)]
struct Meeting {
    met: Mutex<usize>,
    changed: Condvar,
    missed: AtomicBool,
}

struct Meet(Arc<Meeting>);

impl Output for Meet {
    fn print(&self, _: &str) {
        let mut met = self.0.met.lock().unwrap();
        *met += 1;
        let pairs = met.next_multiple_of(2);
        self.0.changed.notify_all();
        // Long enough for a machine under load.
        let patience = Duration::from_secs(120);
        let (_met, outcome) = self
            .0
            .changed
            .wait_timeout_while(met, patience, |met| *met < pairs)
            .unwrap();
        self.0.missed.fetch_or(outcome.timed_out(), Ordering::Relaxed);
    }

    fn warn(&self, _: &str) {}
}

fn interpreter(threads: usize) -> Interpreter {
    let session = Session::new();
    let loaded = session
        .load_bytes(Path::new("forks.py"), SOURCE.as_bytes().to_vec())
        .unwrap();
    let module = match loaded {
        Loaded::Graphs(functions) => functions.to_model().module().clone(),
        Loaded::Model(model) => model.module().clone(),
    };
    Interpreter::with_module(session.registry().clone(), module)
        .unwrap()
        .with_threads(threads)
}

fn one() -> Value {
    Tensor::from_i64(&[1, 10], &[2]).unwrap().into()
}

/// Calls `function`, whose lines meet in pairs, on two threads.
fn meet(function: &str, lines: usize) {
    let meeting = Arc::new(Meeting::default());
    let interpreter = interpreter(2).with_output(Box::new(Meet(meeting.clone())));
    let result = interpreter.call(function, &[one()]).unwrap();
    assert_eq!(result.as_tensor().unwrap().to_i64_vec(), [5, 50]);
    assert_eq!(*meeting.met.lock().unwrap(), lines);
    assert!(!meeting.missed.load(Ordering::Relaxed), "they did not meet");
}

#[test]
fn two_forks_run_at_once_on_two_threads() {
    meet("both", 2);
}

#[test]
fn the_calling_thread_runs_other_forks_while_it_waits() {
    // The other thread has begun the first fork before the calling thread waits for it.
    meet("meets_the_second", 4);
}

#[test]
fn what_a_fork_raises_who_waits_raises_with_its_class_and_places() {
    for threads in [1, 4] {
        let error = interpreter(threads).call("fails", &[one()]).unwrap_err();
        match &error.kind {
            ErrorKind::Raised { class, message, .. } => {
                assert_eq!((class.as_str(), message.as_str()), ("ValueError", "too many: 7"));
            }
            other => panic!("{other:?}"),
        }
        let lines: Vec<&str> = error.trace.iter().map(String::as_str).collect();
        assert!(
            lines.iter().any(|l| l.contains("forks.py:13")) && lines.iter().any(|l| l.contains("forks.py:19")),
            "the places of the raise and of the wait: {lines:?}"
        );
    }
}

#[test]
fn forks_that_wait_for_forks_end_on_any_number_of_threads() {
    // The sum over i of x + (the sum over j < i of x + j), and x.
    let expected: Vec<i64> = [1i64, 10]
        .iter()
        .map(|x| x + (0..20).map(|i| x + (0..i).map(|j| x + j).sum::<i64>()).sum::<i64>())
        .collect();
    for threads in [1, 2, 3, 8] {
        let interpreter = interpreter(threads);
        for _ in 0..20 {
            let result = interpreter.call("tree", &[one(), Value::Int(20)]).unwrap();
            assert_eq!(result.as_tensor().unwrap().to_i64_vec(), expected);
        }
    }
}

#[test]
fn a_fork_without_a_wait_is_done_when_the_call_ends() {
    for threads in [1, 2] {
        let list = ListValue::new(types::INT, Vec::new());
        let interpreter = interpreter(threads);
        interpreter.call("forgets", &[Value::List(list.clone())]).unwrap();
        assert_eq!(list.items().first().and_then(Value::as_int), Some(5));
    }
}
