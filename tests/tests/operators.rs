//! Operators in the interpreter, in this process: thousands of recorded cases in a minute.
//!
//! Runs the cases of `tests/fixtures/operators`, all of which must pass, in the interpreter and natively, and of the folder in `FRAZIL_CASES`
//! (`tests/generate/fixtures/make_operators.py` makes such folders), whose differences are listed. Arguments: parts of case names, and
//! `--engine=native`, which runs natively only: as recorded, with unaligned inputs, and, comparing both engines, with inputs that contain NaN and
//! infinities; with `--target=x86-64-v3` in the code for another processor, with `--threads=2` on several threads, with `--static-shapes=0` in code
//! whose sizes are arguments.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use frazil::{CallError, Engine, EngineKind, EngineOptions, FusionStrategy, Session};
use frazil_ir::DType;
use frazil_recorded::case::{self, Case};
use frazil_recorded::compare;
use frazil_recorded::tensors::Tensors;
use frazil_recorded::value::{Outcome, value_from_json};
use frazil_recorded::workspace;
use frazil_runtime::value::Value;
use half::{bf16, f16};
use serde_json::Value as Json;

fn main() -> ExitCode {
    let filters: Vec<String> = env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let given = |option: &str| env::args().find_map(|a| Some(a.strip_prefix(option)?.to_owned()));
    let mut options = EngineOptions::default().kind(match given("--engine=") {
        Some(engine) if engine == "native" => EngineKind::Native,
        _ => EngineKind::Interpreter,
    });
    if let Some(target) = given("--target=") {
        options.compile.target_cpu = target;
    }
    if let Some(threads) = given("--threads=").and_then(|n| n.parse().ok()) {
        options.compile.threads = threads;
    }
    if let Some(static_shapes) = given("--static-shapes=").and_then(|n| n.parse().ok()) {
        options.fusion_strategy = FusionStrategy { static_shapes };
    }
    let fixtures = workspace::fixtures().join("operators");
    let named = |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str()));
    let mut own = run_folder(&fixtures, &named, &options);
    if cfg!(feature = "codegen") && options.kind == EngineKind::Interpreter && filters.is_empty() {
        let native = options.clone().kind(EngineKind::Native);
        let more = run_folder(&fixtures, &|_| true, &native);
        println!("natively: {} of {} cases pass", more.passed, more.passed + more.failed);
        own.passed += more.passed;
        own.failed += more.failed;
    }
    let mut failed = own.failed;
    println!("fixtures: {} of {} cases pass", own.passed, own.passed + own.failed);
    if let Some(folder) = env::var_os("FRAZIL_CASES") {
        let more = run_folder(Path::new(&folder), &named, &options);
        println!(
            "{}: {} of {} cases pass",
            Path::new(&folder).display(),
            more.passed,
            more.passed + more.failed
        );
        if options.kind == EngineKind::Native {
            println!("{} of them native as a whole", more.whole);
        }
        failed += more.failed;
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {verdict}. {} passed; {failed} failed", own.passed);
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    /// Number of cases that ran without the interpreter.
    whole: usize,
}

/// Cases that do not run natively, with the reason.
const NOT_NATIVELY: &[(&str, &str)] = &[(
    "nn.functional.ctc_loss/",
    "its loops ask for elements, and compiling them one answer after the other takes many minutes",
)];

/// Runs the cases below a folder for which `chosen` returns true and prints, for each reason, the failing cases.
fn run_folder(folder: &Path, chosen: &dyn Fn(&str) -> bool, options: &EngineOptions) -> Tally {
    let failure = || Tally {
        failed: 1,
        ..Tally::default()
    };
    let mut cases = match case::operators(folder) {
        Ok(cases) => cases,
        Err(error) => {
            println!("{error}");
            return failure();
        }
    };
    let native = options.kind == EngineKind::Native;
    cases.retain(|c| chosen(&c.name) && !(native && NOT_NATIVELY.iter().any(|(name, _)| c.name.starts_with(name))));
    let session = Session::new();
    if let Err(mistake) = session.registry().check_composites() {
        println!("{mistake}");
        return failure();
    }
    let (next, whole) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures: Mutex<BTreeMap<String, Vec<&str>>> = Mutex::default();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut file = (Default::default(), Tensors::default());
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if file.0 != case.folder
                        && let Ok(tensors) = case.tensors()
                    {
                        file = (case.folder.clone(), tensors);
                    }
                    let outcome = catch_unwind(AssertUnwindSafe(|| run(&session, case, &file.1, options)));
                    let reason = match outcome {
                        Ok(Ok(native)) => {
                            whole.fetch_add(usize::from(native), Ordering::Relaxed);
                            continue;
                        }
                        Ok(Err(reason)) => reason,
                        Err(_) => "a panic".to_owned(),
                    };
                    let mut failures = failures.lock().expect("no panic holds the lock");
                    failures.entry(reason).or_default().push(&case.name);
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic holds the lock");
    let failed = failures.values().map(Vec::len).sum();
    for (reason, names) in failures {
        println!("{reason}: {}", names.join(" "));
    }
    Tally {
        passed: cases.len() - failed,
        failed,
        whole: whole.into_inner(),
    }
}

/// Runs a case's calls on one instance of its model. Returns whether it ran without the interpreter, or the reason why it fails.
fn run(session: &Session, case: &Case, tensors: &Tensors, options: &EngineOptions) -> Result<bool, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let mut model = session.load(&case.model).map_err(|e| text(&e))?;
    // A new module is in training mode, which freezing refuses.
    model.eval();
    let method = |json: &Json| Some(json.get("method")?.as_str()?.to_owned());
    let own = method(&case.json).unwrap_or_else(|| "forward".to_owned());
    let calls = case.json["calls"].as_array();
    let calls = || calls.into_iter().flatten();
    let native = options.kind == EngineKind::Native;
    // Further engines find the first one's code there.
    let folder = native.then(tempfile::tempdir).transpose().map_err(|e| text(&e))?;
    let new = |kind| {
        let options = options
            .clone()
            .kind(kind)
            .methods(calls().filter_map(method).chain([own.clone()]).collect())
            .cache_dir(folder.as_ref().map(|f| f.path().to_owned()));
        model.engine(&options).map_err(|e| text(&e))
    };
    let mut engine = new(options.kind)?;
    let tolerance = case.tolerance().map_err(|e| text(&e))?;
    for (n, call) in calls().enumerate() {
        let want = Outcome::from_json(&call["result"], tensors).map_err(|e| text(&e))?;
        // New arguments for each call, which may change them.
        let args = || -> Result<Vec<Value>, String> {
            let args = call["args"].as_array().into_iter().flatten();
            args.map(|json| value_from_json(json, tensors).map_err(|e| text(&e)))
                .collect()
        };
        let changed = |change: &dyn Fn(Value) -> Result<Value, String>| -> Result<Vec<Value>, String> {
            args()?.into_iter().map(change).collect()
        };
        let method = method(call).unwrap_or_else(|| own.clone());
        let got = outcome(&mut engine, &method, &args()?)?;
        compare::outcomes(&want, &got, tolerance).map_err(|mismatch| format!("call {n}: {mismatch}"))?;
        if native && n == 0 && matches!(want, Outcome::Value(_)) {
            // Changes of the module's own state: only the first call starts with the original.
            let got = outcome(&mut new(options.kind)?, &method, &changed(&unaligned)?)?;
            compare::outcomes(&want, &got, tolerance).map_err(|mismatch| format!("call {n}, unaligned: {mismatch}"))?;
            for step in SALT {
                if args()?.iter().any(|a| salt(a, step).is_some()) {
                    let salted = || changed(&|a| Ok(salt(&a, step).unwrap_or(a)));
                    let want = outcome(&mut new(EngineKind::Interpreter)?, &method, &salted()?)?;
                    let got = outcome(&mut new(options.kind)?, &method, &salted()?)?;
                    compare::outcomes(&want, &got, tolerance)
                        .map_err(|mismatch| format!("call {n} with NaN and infinities: {mismatch}"))?;
                }
            }
        }
    }
    let interpreted = |note: &String| note.contains("runs in the interpreter");
    let is_whole = native && !engine.notes().iter().any(interpreted);
    // The interpreter repeats calls that raise; subgraphs of methods that it runs have code of their own.
    let raises = calls().any(|call| call["result"].get("raises").is_some());
    let constant = engine.kernel_counts().with_constant_sizes;
    if is_whole && !raises && options.fusion_strategy.static_shapes == 0 && constant > 0 {
        return Err(format!("{constant} kernels with constant sizes"));
    }
    Ok(is_whole)
}

/// Returns the outcome of a call of `method`.
fn outcome(engine: &mut Engine, method: &str, args: &[Value]) -> Result<Outcome, String> {
    match engine.call(method, args) {
        Ok(value) => Ok(Outcome::Value(value)),
        Err(CallError::Raised(text)) => Ok(Outcome::Raises { text, user: false }),
        Err(CallError::Failed(error)) => Err(first_lines(&error.to_string())),
    }
}

/// One in this number of elements of inputs is made special: many, and so few that most results keep their values.
const SALT: [usize; 2] = [5, 211];

/// Returns a tensor of floats with every `step`th of its elements NaN, infinite, or the negative zero; `None` for other values.
fn salt(value: &Value, step: usize) -> Option<Value> {
    let Value::Tensor(tensor) = value else {
        return None;
    };
    let tensor = tensor.get();
    let special = [f64::NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY];
    let element = |x: f64| match tensor.dtype() {
        DType::Float => Some((x as f32).to_le_bytes().to_vec()),
        DType::Double => Some(x.to_le_bytes().to_vec()),
        DType::Half => Some(f16::from_f64(x).to_le_bytes().to_vec()),
        DType::BFloat16 => Some(bf16::from_f64(x).to_le_bytes().to_vec()),
        _ => None,
    };
    let width = element(0.0)?.len();
    let mut data = tensor.to_bytes().ok()?;
    // The first index depends on the size.
    let places = (data.len() / width % step..data.len() / width).step_by(step);
    for (place, x) in places.zip(special.into_iter().cycle()) {
        data[place * width..][..width].copy_from_slice(&element(x)?);
    }
    let salted = frazil_runtime::Tensor::from_bytes(tensor.dtype(), tensor.sizes(), &data);
    Some(salted.ok()?.into())
}

/// Returns the first two lines of a message: for a list, its title and its first entry without its place.
fn first_lines(message: &str) -> String {
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    let second = lines.next().unwrap_or_default();
    format!("{first} {}", second.split(" at ").next().unwrap_or_default().trim())
}

/// Returns the same value, with tensors one element beyond an aligned address.
fn unaligned(value: Value) -> Result<Value, String> {
    let Value::Tensor(tensor) = &value else {
        return Ok(value);
    };
    let tensor = tensor.get();
    let text = |e: frazil_runtime::TensorError| e.to_string();
    let memory = frazil_runtime::Tensor::zeros(tensor.dtype(), &[tensor.numel() + 1]).map_err(text)?;
    let moved = memory.as_strided(tensor.sizes(), tensor.strides(), 1).map_err(text)?;
    moved.copy_(&tensor).map_err(text)?;
    Ok(moved.into())
}
