//! Several threads call one model through handles of one engine: the results are those of one thread, and each signature is compiled once.

use frazil::ir::DType;
use frazil::{CallError, Engine, EngineKind, EngineOptions, HookOptions, Loaded, Model, Session, Tensor, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const THREADS: usize = 8;

fn model(source: &str) -> Model {
    let loaded = Session::new().load_bytes(Path::new("net.py"), source.as_bytes().to_vec());
    match loaded.unwrap() {
        Loaded::Model(model) => model,
        Loaded::Graphs(graphs) => graphs.to_model(),
    }
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/fixtures/models/{name}/model.pt"))
}

/// Returns options for any processor, since valgrind does not know all instructions of new ones.
fn options() -> EngineOptions {
    let target = match std::env::var_os("FRAZIL_VALGRIND") {
        Some(_) => "x86-64-v3",
        None => "host",
    };
    EngineOptions::default().target_cpu(target.to_owned())
}

fn kinds() -> Vec<EngineKind> {
    match cfg!(feature = "codegen") {
        true => vec![EngineKind::Native, EngineKind::Interpreter],
        false => vec![EngineKind::Interpreter],
    }
}

/// Returns a tensor of these sizes, whose elements are distinct and depend on the seed.
fn tensor(sizes: &[i64], seed: usize) -> Value {
    let count = sizes.iter().product::<i64>() as usize;
    let elements: Vec<f32> = (0..count)
        .map(|i| ((i * 7 + seed * 13) % 101) as f32 / 50.0 - 1.0)
        .collect();
    Tensor::from_f32(&elements, sizes).unwrap().into()
}

/// Returns a value as text, tensors with all their bytes.
fn text(value: &Value) -> String {
    match value {
        Value::Tensor(cell) => format!("{:?}{:?}", cell.get().sizes(), cell.get().to_bytes().unwrap()),
        Value::List(_) | Value::Tuple(_) => value.items().unwrap_or_default().iter().map(text).collect(),
        other => format!("{other:?}"),
    }
}

/// Calls the engine's `forward` on each thread with the arguments that `arguments` makes for each round, in another order on each, and compares
/// the results with those of `alone`, which makes the same calls sequentially.
fn agree(engine: &Engine, alone: &mut Engine, rounds: usize, arguments: impl Fn(usize) -> Vec<Value> + Sync) {
    let expected: Vec<String> = (0..rounds)
        .map(|round| text(&alone.call("forward", &arguments(round)).unwrap()))
        .collect();
    let start = std::sync::Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (mut handle, start, expected, arguments) = (engine.share(), &start, &expected, &arguments);
            scope.spawn(move || {
                start.wait();
                for turn in 0..rounds * 3 {
                    let round = (turn + number / 2) % rounds;
                    let result = handle.call("forward", &arguments(round)).unwrap();
                    assert!(text(&result) == expected[round], "round {round} on thread {number}");
                }
            });
        }
    });
}

/// Returns the sorted notes, without numbers of segments and times.
fn comparable(notes: Vec<String>) -> Vec<String> {
    let plain = |note: String| note.replace(|c: char| c.is_ascii_digit(), "");
    let mut notes: Vec<String> = notes.into_iter().map(plain).collect();
    notes.sort();
    notes
}

#[test]
fn threads_call_one_model() {
    let model = Session::new().load(fixture("residual_cnn")).unwrap();
    for kind in kinds() {
        for threads in [1, 2] {
            let options = options().kind(kind).threads(threads);
            let (engine, mut alone) = (model.engine(&options).unwrap(), model.engine(&options).unwrap());
            agree(&engine, &mut alone, 4, |round| {
                let size = 24 + 8 * (round as i64 % 2);
                vec![tensor(&[1, 3, size, size], round)]
            });
            assert_eq!(comparable(engine.notes()), comparable(alone.notes()));
            // Each of the two signatures is compiled once.
            assert_eq!(engine.notes().len(), if kind == EngineKind::Native { 2 } else { 0 });
        }
    }
}

#[test]
fn threads_run_segments() {
    let source = "
def forward(x, n: int):
    total = x * 0
    y = x
    for i in range(n):
        y = torch.tanh(y * 1.5 + 0.1)
        if bool(y.sum() > 0):
            total = total + y
        else:
            total = total - y * 2
    return total, y[y > 0.2]
";
    let model = model(source);
    for kind in kinds() {
        let options = options().kind(kind).strict(true);
        let (engine, mut alone) = (model.engine(&options).unwrap(), model.engine(&options).unwrap());
        agree(&engine, &mut alone, 6, |round| {
            vec![tensor(&[33], round), Value::Int(3 + round as i64 % 2)]
        });
        assert_eq!(comparable(engine.notes()), comparable(alone.notes()));
        let segments = engine.notes().iter().filter(|note| note.contains("segment")).count();
        assert_eq!(segments > 6, kind == EngineKind::Native, "{:?}", engine.notes());
    }
}

/// A method that draws random numbers in place runs in the interpreter, which calls compiled subgraphs; also those of forks.
#[test]
fn threads_run_compiled_parts() {
    let source = "
def part(x):
    return (x * 2 + 1).tanh().exp()

def forward(x):
    future = torch.jit.fork(part, x)
    y = (x * 3 - 1).sigmoid().relu()
    y = y * torch.empty_like(x).uniform_(1.0, 1.0)
    return torch.jit.wait(future) + y.mm(y).tanh()
";
    let model = model(source);
    for kind in kinds() {
        for threads in [1, 3] {
            let options = options().kind(kind).threads(threads);
            let (engine, mut alone) = (model.engine(&options).unwrap(), model.engine(&options).unwrap());
            agree(&engine, &mut alone, 4, |round| vec![tensor(&[9, 9], round)]);
            let parts = engine.notes().iter().filter(|note| note.starts_with("part")).count();
            assert_eq!(parts > 0, kind == EngineKind::Native, "{:?}", engine.notes());
            assert_eq!(comparable(engine.notes()), comparable(alone.notes()));
        }
    }
}

#[cfg(feature = "codegen")]
#[test]
fn threads_find_kept_code() {
    let folder = tempfile::tempdir().unwrap();
    let kept = options().cache_dir(Some(folder.path().join("code")));
    let mut alone = Session::new()
        .load(fixture("residual_cnn"))
        .unwrap()
        .engine(&options())
        .unwrap();
    for how in ["compiled in", "found in"] {
        // The archive is read when a thread needs it.
        let engine = Session::new().engine(fixture("residual_cnn"), &kept).unwrap();
        agree(&engine, &mut alone, 2, |round| vec![tensor(&[1, 3, 32, 32], round)]);
        let notes = engine.notes();
        assert!(notes.len() == 1 && notes[0].contains(how), "{notes:?}");
    }
}

const COUNTER: &str = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.register_buffer('sum', torch.zeros(50))

    def forward(self, x):
        self.n += 1
        self.sum += x
        return self.sum.clone()
";

#[test]
fn a_handle_sees_what_another_changes() {
    for kind in kinds() {
        let model = model(COUNTER);
        let first = model.engine(&options().kind(kind)).unwrap();
        let mut second = first.share();
        let mut third = second.share();
        drop(second.call("forward", &[tensor(&[50], 1)]).unwrap());
        drop(first);
        let result = third.call("forward", &[tensor(&[50], 2)]).unwrap();
        let expected = model.engine(&options().kind(EngineKind::Interpreter));
        let mut expected = expected.unwrap();
        expected.call("forward", &[tensor(&[50], 1)]).unwrap();
        assert_eq!(
            text(&result),
            text(&expected.call("forward", &[tensor(&[50], 2)]).unwrap())
        );
        let snapshot = second.snapshot().unwrap();
        assert_eq!(snapshot.root().attribute("n").unwrap().as_int(), Some(2));
    }
}

/// Changes may be lost, but each element has a value that some order of the calls produces.
#[test]
fn threads_change_state_at_the_same_time() {
    const CALLS: usize = 50;
    for kind in kinds() {
        let model = model(COUNTER);
        let engine = model.engine(&options().kind(kind)).unwrap();
        let one: Value = Tensor::full(DType::Float, &[50], 1.0.into()).unwrap().into();
        thread::scope(|scope| {
            for _ in 0..THREADS {
                let (mut handle, one) = (engine.share(), one.clone());
                scope.spawn(move || {
                    for _ in 0..CALLS {
                        let sums = handle.call("forward", std::slice::from_ref(&one)).unwrap();
                        for sum in sums.as_tensor().unwrap().to_f64_vec() {
                            assert!(
                                sum.fract() == 0.0 && (1.0..=(THREADS * CALLS) as f64).contains(&sum),
                                "{sum}"
                            );
                        }
                    }
                });
            }
        });
        let snapshot = engine.share().snapshot().unwrap();
        let calls = snapshot.root().attribute("n").unwrap().as_int().unwrap();
        assert!((1..=(THREADS * CALLS) as i64).contains(&calls), "{calls}");
    }
}

/// A thread of a pool that waits for work runs other work of the pool meanwhile, which may need the same code.
#[test]
fn threads_of_a_pool_do_not_wait_for_themselves() {
    use rayon::prelude::*;
    let model = Session::new().load(fixture("residual_cnn")).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for kind in kinds() {
        let engine = model.engine(&options().kind(kind)).unwrap();
        let handles: Vec<Engine> = (0..16).map(|_| engine.share()).collect();
        let results: Vec<String> = pool.install(|| {
            let call = |mut handle: Engine| text(&handle.call("forward", &[tensor(&[1, 3, 32, 32], 1)]).unwrap());
            handles.into_par_iter().map(call).collect()
        });
        assert!(results.iter().all(|result| *result == results[0]));
    }
}

#[test]
fn hooks_run_for_all_handles() {
    let options = options().kind(EngineKind::Interpreter);
    let mut engine = model("def forward(x: int): return x + 1\n").engine(&options).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let mut handle = engine.share();
    let id = engine.register_forward_hook(move |_, result| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(result.as_int().map(|x| Value::Int(10 * x)))
    });
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let mut handle = engine.share();
            scope.spawn(move || {
                for x in 0..20 {
                    let result = handle.call_module(&[Value::Int(x)]).unwrap();
                    assert_eq!(result.as_int(), Some(10 * (x + 1)));
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), THREADS * 20);
    assert!(handle.remove_hook(id));
    assert_eq!(engine.call_module(&[Value::Int(1)]).unwrap().as_int(), Some(2));

    // A hook may call the engine, but not recursively run itself.
    let mut inner = engine.share();
    engine
        .register_forward_hook_with(&HookOptions::default(), move |_, result| {
            let by_method = inner.call("forward", std::slice::from_ref(result))?;
            match inner.call_module(&[Value::Int(0)]) {
                Err(CallError::Failed(error)) if error.to_string().contains("another handle") => Ok(Some(by_method)),
                other => panic!("{:?}", other.map(|value| text(&value))),
            }
        })
        .unwrap();
    assert_eq!(engine.call_module(&[Value::Int(1)]).unwrap().as_int(), Some(3));
}

#[cfg(feature = "codegen")]
#[test]
fn all_handles_together_compile_for_as_many_shapes_as_the_engine_may() {
    let options = options().specialisations(Some(2));
    let engine = model("def forward(x): return x * 2 + 1\n").engine(&options).unwrap();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let mut handle = engine.share();
            scope.spawn(move || {
                for round in 0..6 {
                    let size = 1 + (number + round) as i64 % 4;
                    let result = handle.call("forward", &[tensor(&[size], 0)]).unwrap();
                    assert_eq!(result.as_tensor().unwrap().sizes(), [size]);
                }
            });
        }
    });
    let compiled = |note: &&String| note.starts_with("forward: 1 kernel calls");
    assert_eq!(
        engine.notes().iter().filter(compiled).count(),
        2,
        "{:?}",
        engine.notes()
    );
}
