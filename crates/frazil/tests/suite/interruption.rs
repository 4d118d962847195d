//! Interruption: work ends soon after the check of its scope returns true, and leaves a usable state.

use frazil::ir::{DType, types};
use frazil::runtime::value::ListValue;
use frazil::{
    CallError, EngineKind, EngineOptions, Error, ErrorClass, FreezeOptions, Loaded, Model, PassOptions, Session,
    Tensor, Value, interruptible,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

fn model(source: &str) -> Model {
    let loaded = Session::new().load_bytes(Path::new("net.py"), source.as_bytes().to_vec());
    match loaded.unwrap() {
        Loaded::Model(model) => model,
        Loaded::Graphs(graphs) => graphs.to_model(),
    }
}

/// Returns a check that returns true from its `count`th call on. It must be called on the thread that made it.
fn at_call(count: usize) -> (impl Fn() -> bool + Send + Sync, Arc<AtomicUsize>) {
    let (calls, thread): (Arc<AtomicUsize>, ThreadId) = (Arc::default(), thread::current().id());
    let counted = Arc::clone(&calls);
    let check = move || {
        assert_eq!(thread::current().id(), thread);
        counted.fetch_add(1, Ordering::Relaxed) + 1 >= count
    };
    (check, calls)
}

/// Returns a function with `count` operators of different sizes, each of which is one kernel.
fn many_kernels(count: usize) -> String {
    let mut text = "def forward(x):\n    total = x.sum()\n".to_owned();
    for i in 1..=count {
        text += &format!("    total = total + torch.tanh(x[:{i}] * {i}.5).cumsum(0).sum()\n");
    }
    text + "    return total\n"
}

/// Returns a source with `functions` functions, which takes long to read.
fn long_source(functions: usize) -> Vec<u8> {
    let mut text = String::new();
    for f in 0..functions {
        text += &format!("def f{f}(x):\n");
        for i in 0..200 {
            text += &format!("    x = torch.relu(x * {i}) + torch.tanh(x)\n");
        }
        text += "    return x\n";
    }
    text.into_bytes()
}

fn endless(kind: EngineKind, threads: usize) {
    let source = "
def spin(x, n: int):
    while n > 0:
        x = x + 1
    return x

def forward(x, n: int, out: List[Tensor]):
    future = torch.jit.fork(spin, x, n)
    out.append(x)
    return torch.jit.wait(future)
";
    let options = EngineOptions::default().kind(kind).threads(threads);
    let mut engine = model(source).engine(&options).unwrap();
    let out = || Value::List(ListValue::new(types::TENSOR, Vec::new()));
    let x = || Value::from(Tensor::full(DType::Float, &[2], 1.0.into()).unwrap());
    for _ in 0..2 {
        let (check, calls) = at_call(2);
        let start = Instant::now();
        let ended = interruptible(check, || engine.call("forward", &[x(), Value::Int(1), out()]));
        let Err(CallError::Failed(error)) = ended else {
            panic!("the call is endless")
        };
        assert!(matches!(error, Error::Interrupted) && error.class() == ErrorClass::Interrupted);
        assert!(error.exceeded().is_none() && error.to_string() == "interrupted");
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert!(start.elapsed() < Duration::from_secs(20));
        let result = engine.call("forward", &[x(), Value::Int(0), out()]).unwrap();
        assert_eq!(result.as_tensor().unwrap().to_f64_vec(), [1.0, 1.0]);
    }
}

#[test]
fn an_interpreted_loop() {
    for threads in [1, 3] {
        endless(EngineKind::Interpreter, threads);
    }
}

#[test]
fn loading() {
    let session = Session::new();
    let load = || session.load_bytes(Path::new("long.py"), long_source(200));
    let (check, _) = at_call(1);
    let start = Instant::now();
    let ended = interruptible(check, load);
    assert!(matches!(ended, Err(Error::Interrupted)));
    let interrupted = start.elapsed();
    let start = Instant::now();
    assert!(load().is_ok());
    assert!(
        interrupted < start.elapsed(),
        "{interrupted:?} of {:?}",
        start.elapsed()
    );
}

#[test]
fn passes_on_threads() {
    let model = model(&String::from_utf8(long_source(100)).unwrap());
    for threads in [1, 3] {
        let options = PassOptions::default().threads(threads);
        let (check, _) = at_call(1);
        let ended = interruptible(check, || {
            model.run_passes("repeat(canonicalize,cse,dce,peephole)", &options)
        });
        assert!(matches!(ended, Err(Error::Interrupted)));
    }
}

#[test]
fn freezing() {
    // Folding evaluates everything that depends on the weight alone.
    let mut source = "
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.ones(200, 200)

    def forward(self, x):
        y = self.w
"
    .to_owned();
    for _ in 0..300 {
        source += "        y = torch.tanh(y.mm(self.w) * 0.001).exp()\n";
    }
    let mut model = model(&(source + "        return x + y\n"));
    model.eval();
    let freeze = || model.freeze(&FreezeOptions::default());
    let (check, _) = at_call(1);
    let start = Instant::now();
    assert!(matches!(interruptible(check, freeze), Err(Error::Interrupted)));
    let interrupted = start.elapsed();
    let start = Instant::now();
    assert!(freeze().is_ok());
    assert!(
        interrupted < start.elapsed(),
        "{interrupted:?} of {:?}",
        start.elapsed()
    );
}

#[test]
fn work_that_ends_in_time_is_not_interrupted() {
    let mut engine = model("def forward(x: int): return x + 1\n")
        .engine(&EngineOptions::default().kind(EngineKind::Interpreter))
        .unwrap();
    let (check, calls) = at_call(1);
    let result = interruptible(check, || engine.call("forward", &[Value::Int(1)]));
    assert_eq!((result.unwrap().as_int(), calls.load(Ordering::Relaxed)), (Some(2), 0));
}

/// The check may call the engine that it interrupts, as handlers of signals may.
#[test]
fn the_check_may_call_the_engine() {
    let engine = model("def forward(n: int):\n    x = 0\n    while n > 0:\n        x += 1\n    return x\n")
        .engine(&EngineOptions::default().kind(EngineKind::Interpreter))
        .unwrap();
    let inner = std::sync::Mutex::new(engine.share());
    let mut outer = engine.share();
    let check = move || inner.lock().unwrap().call("forward", &[Value::Int(0)]).is_ok();
    let ended = interruptible(check, || outer.call("forward", &[Value::Int(1)]));
    assert!(matches!(ended, Err(CallError::Failed(Error::Interrupted))));
}

#[cfg(feature = "codegen")]
mod native {
    use super::*;

    fn x() -> Value {
        Tensor::full(DType::Float, &[64], 0.25.into()).unwrap().into()
    }

    fn call(engine: &mut frazil::Engine) -> Result<Vec<f64>, CallError> {
        Ok(engine.call("forward", &[x()])?.as_tensor().unwrap().to_f64_vec())
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).map_or_else(|_| Vec::new(), Iterator::collect);
        entries.into_iter().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn compiling() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("code");
        let model = model(&many_kernels(40));
        let expected = call(
            &mut model
                .engine(&EngineOptions::default().kind(EngineKind::Interpreter))
                .unwrap(),
        );
        let expected = expected.unwrap();
        for options in [
            EngineOptions::default(),
            EngineOptions::default().cache_dir(Some(folder.clone())),
        ] {
            let mut engine = model.engine(&options).unwrap();
            let mut other = engine.share();
            let (check, _) = at_call(2);
            let ended = interruptible(check, || call(&mut engine));
            assert!(matches!(ended, Err(CallError::Failed(Error::Interrupted))));
            assert!(engine.notes().is_empty(), "{:?}", engine.notes());
            let is_method = |file: &PathBuf| file.extension().is_some_and(|ext| ext == "method");
            assert!(!files(&folder).iter().any(is_method));
            let result = call(&mut other).unwrap();
            assert!(
                (result[0] - expected[0]).abs() < 1e-2 * expected[0].abs().max(1.0),
                "{result:?}, {expected:?}"
            );
            assert!(engine.notes()[0].contains("compiled in"), "{:?}", engine.notes());
            assert_eq!(call(&mut engine).unwrap(), result);
        }
    }

    /// One thread compiles, another waits for it and is interrupted.
    #[test]
    fn waiting_for_another_thread_that_compiles() {
        let engine = model(&many_kernels(40)).engine(&EngineOptions::default()).unwrap();
        let results = thread::scope(|scope| {
            let waiting: Vec<_> = [usize::MAX, 3, usize::MAX]
                .into_iter()
                .map(|count| {
                    let mut handle = engine.share();
                    scope.spawn(move || {
                        let (check, _) = at_call(count);
                        interruptible(check, || call(&mut handle))
                    })
                })
                .collect();
            let ended = waiting.into_iter().map(|thread| thread.join().unwrap());
            ended.collect::<Vec<_>>()
        });
        assert!(matches!(results[1], Err(CallError::Failed(Error::Interrupted))));
        assert_eq!(results[0].as_ref().unwrap(), results[2].as_ref().unwrap());
        assert_eq!(engine.notes().len(), 1, "{:?}", engine.notes());
    }

    #[test]
    fn segments_and_parts() {
        let source = "
def forward(x):
    while bool(x.sum() > -1e30):
        x = torch.tanh(x) + 1
    return x
";
        let mut engine = model(source).engine(&EngineOptions::default()).unwrap();
        let (check, _) = at_call(3);
        let ended = interruptible(check, || call(&mut engine));
        assert!(matches!(ended, Err(CallError::Failed(Error::Interrupted))));
        let minus = Value::from(Tensor::full(DType::Float, &[64], (-1e32).into()).unwrap());
        let result = engine.call("forward", &[minus]).unwrap();
        assert!(result.as_tensor().unwrap().to_f64_vec().iter().all(|x| *x < -1e31));
        endless(EngineKind::Native, 1);
        endless(EngineKind::Native, 3);
    }
}
