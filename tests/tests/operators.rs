//! Operators in the interpreter, in this process: thousands of recorded cases in a minute.
//!
//! Runs the cases of `tests/fixtures/operators`, all of which have to pass, those in `graphs.native` natively too, and of the folder that
//! `FRAZIL_CASES` names (`tools/fixtures/make_operators.py` makes such folders), whose differences are listed. Arguments: parts of case names, and
//! `--engine=native`, which runs them natively: as they are, with inputs that are not aligned, and, comparing both engines, on inputs with
//! NaN and infinities in them; with `--target=x86-64-v3` in the code of another processor, with `--threads=2` on several threads.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use frazil::{CallError, Engine, EngineKind, EngineOptions, Session};
use frazil_ir::{DType, types};
use frazil_runtime::value::{ListValue, Value};
use frazil_tests::case::{self, Case};
use frazil_tests::compare;
use frazil_tests::value::{self as recorded, Outcome, Tensors};
use frazil_tests::workspace;
use half::{bf16, f16};
use safetensors::Dtype;
use serde_json::Value as Json;

fn main() -> ExitCode {
    let filters: Vec<String> = env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let given = |option: &str| env::args().find_map(|a| Some(a.strip_prefix(option)?.to_owned()));
    let mut options = EngineOptions {
        kind: match given("--engine=") {
            Some(engine) if engine == "native" => EngineKind::Native,
            _ => EngineKind::Interpreter,
        },
        ..EngineOptions::default()
    };
    if let Some(target) = given("--target=") {
        options.target_cpu = target;
    }
    if let Some(threads) = given("--threads=").and_then(|n| n.parse().ok()) {
        options.threads = threads;
    }
    let fixtures = workspace::fixtures().join("operators");
    let mut own = run_folder(&fixtures, &filters, &options);
    if cfg!(feature = "codegen") && options.kind == EngineKind::Interpreter && filters.is_empty() {
        let native = EngineOptions {
            kind: EngineKind::Native,
            ..options.clone()
        };
        let more = run_folder(&fixtures, &["graphs.native/".to_owned()], &native);
        own.passed += more.passed;
        own.failed += more.failed;
    }
    let mut failed = own.failed;
    println!("fixtures: {} of {} cases pass", own.passed, own.passed + own.failed);
    if let Some(folder) = env::var_os("FRAZIL_CASES") {
        let more = run_folder(Path::new(&folder), &filters, &options);
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
    /// How many ran without the interpreter.
    whole: usize,
}

/// Runs the cases below a folder and prints, for each reason, the cases that fail for it.
fn run_folder(folder: &Path, filters: &[String], options: &EngineOptions) -> Tally {
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
    cases.retain(|c| filters.is_empty() || filters.iter().any(|f| c.name.contains(f.as_str())));
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
                let mut file = (Default::default(), Tensors::from_bytes(Vec::new()));
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if file.0 != case.folder
                        && let Ok(tensors) = Tensors::read(&case.folder.join("tensors.safetensors"))
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

/// Runs a case's calls on one instance of its model: whether without the interpreter, or the reason why it does not pass.
fn run(session: &Session, case: &Case, tensors: &Tensors, options: &EngineOptions) -> Result<bool, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let mut model = session.load(&case.model).map_err(|e| text(&e))?;
    // Freezing refuses training mode, in which a new module is.
    model.eval();
    let method = |json: &Json| Some(json.get("method")?.as_str()?.to_owned());
    let own = method(&case.json).unwrap_or_else(|| "forward".to_owned());
    let calls = case.json["calls"].as_array();
    let calls = || calls.into_iter().flatten();
    let native = options.kind == EngineKind::Native;
    // Further engines find the first one's code there.
    let folder = native.then(tempfile::tempdir).transpose().map_err(|e| text(&e))?;
    let new = |kind| {
        let options = EngineOptions {
            kind,
            methods: calls().filter_map(method).chain([own.clone()]).collect(),
            cache_dir: folder.as_ref().map(|f| f.path().to_owned()),
            ..options.clone()
        };
        model.engine(&options).map_err(|e| text(&e))
    };
    let mut engine = new(options.kind)?;
    let tolerance = case.tolerance().map_err(|e| text(&e))?;
    for (n, call) in calls().enumerate() {
        let want = Outcome::from_json(&call["result"], tensors).map_err(|e| text(&e))?;
        let args = call["args"].as_array().into_iter().flatten();
        let args: Result<Vec<recorded::Value>, String> = args
            .map(|json| recorded::Value::from_json(json, tensors).map_err(|e| text(&e)))
            .collect();
        let args = args?;
        let method = method(call).unwrap_or_else(|| own.clone());
        let got = outcome(&mut engine, &method, &args, argument)?;
        compare::outcomes(&want, &got, tolerance).map_err(|mismatch| format!("call {n}: {mismatch}"))?;
        if native && n == 0 && matches!(want, Outcome::Value(_)) {
            // What the model changes of itself, only the first call sees as it was.
            let got = outcome(&mut new(options.kind)?, &method, &args, unaligned)?;
            compare::outcomes(&want, &got, tolerance).map_err(|mismatch| format!("call {n}, unaligned: {mismatch}"))?;
            for step in SALT {
                let salted: Vec<recorded::Value> = args.iter().map(|a| salted(a, step)).collect();
                if salted != args {
                    let want = outcome(&mut new(EngineKind::Interpreter)?, &method, &salted, argument)?;
                    let got = outcome(&mut new(options.kind)?, &method, &salted, argument)?;
                    compare::outcomes(&want, &got, tolerance)
                        .map_err(|mismatch| format!("call {n} with NaN and infinities: {mismatch}"))?;
                }
            }
        }
    }
    let interpreted = |note: &String| note.contains("runs in the interpreter");
    Ok(native && !engine.notes().iter().any(interpreted))
}

/// What a call of `method` ends in, with arguments as `argument` makes them.
fn outcome(
    engine: &mut Engine,
    method: &str,
    args: &[recorded::Value],
    argument: impl Fn(&recorded::Value) -> Result<Value, String>,
) -> Result<Outcome, String> {
    let args = args.iter().map(argument).collect::<Result<Vec<_>, _>>()?;
    match engine.call(method, &args) {
        Ok(value) => Ok(Outcome::Value(result(&value)?)),
        Err(CallError::Raised(text)) => Ok(Outcome::Raises { text, user: false }),
        Err(CallError::Failed(error)) => Err(first_lines(&error.to_string())),
    }
}

/// One in how many elements of inputs is made special: many, and so few that most results have to stay as they were.
const SALT: [usize; 2] = [5, 211];

/// A tensor of floats with every `step`th of its elements NaN, infinite, or the negative zero; other values as they are.
fn salted(value: &recorded::Value, step: usize) -> recorded::Value {
    let recorded::Value::Tensor(t) = value else {
        return value.clone();
    };
    let special = [f64::NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY];
    let element = |x: f64| match t.dtype {
        Dtype::F32 => Some((x as f32).to_le_bytes().to_vec()),
        Dtype::F64 => Some(x.to_le_bytes().to_vec()),
        Dtype::F16 => Some(f16::from_f64(x).to_le_bytes().to_vec()),
        Dtype::BF16 => Some(bf16::from_f64(x).to_le_bytes().to_vec()),
        _ => None,
    };
    let mut data = t.data.clone();
    let width = element(0.0).map_or(1, |e| e.len());
    // Beginning where the size says.
    let places = (data.len() / width % step..data.len() / width).step_by(step);
    for (place, x) in places.zip(special.into_iter().cycle()) {
        if let Some(bytes) = element(x) {
            data[place * width..][..width].copy_from_slice(&bytes);
        }
    }
    recorded::Value::Tensor(recorded::Tensor { data, ..t.clone() })
}

/// The first two lines of a message: what and, where that is a list, its first entry without its place.
fn first_lines(message: &str) -> String {
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    let second = lines.next().unwrap_or_default();
    format!("{first} {}", second.split(" at ").next().unwrap_or_default().trim())
}

const DTYPES: [(Dtype, DType); 11] = [
    (Dtype::F32, DType::Float),
    (Dtype::F64, DType::Double),
    (Dtype::F16, DType::Half),
    (Dtype::BF16, DType::BFloat16),
    (Dtype::U8, DType::Byte),
    (Dtype::I8, DType::Char),
    (Dtype::I16, DType::Short),
    (Dtype::I32, DType::Int),
    (Dtype::I64, DType::Long),
    (Dtype::BOOL, DType::Bool),
    (Dtype::C64, DType::ComplexFloat),
];

/// A recorded value as the interpreter takes it.
fn argument(value: &recorded::Value) -> Result<Value, String> {
    let items = |items: &[recorded::Value]| items.iter().map(argument).collect::<Result<Vec<_>, _>>();
    Ok(match value {
        recorded::Value::Tensor(t) => {
            let dtype = DTYPES.iter().find(|(d, _)| *d == t.dtype);
            let (_, dtype) = dtype.ok_or_else(|| format!("no dtype {}", t.dtype))?;
            let sizes: Vec<i64> = t.shape.iter().map(|&n| n as i64).collect();
            let tensor = frazil_runtime::Tensor::from_bytes(*dtype, &sizes, &t.data);
            tensor.map_err(|e| e.to_string())?.into()
        }
        recorded::Value::Int(i) => Value::Int(*i),
        recorded::Value::Float(f) => Value::Float(*f),
        recorded::Value::Bool(b) => Value::Bool(*b),
        recorded::Value::Str(s) => Value::str(s),
        recorded::Value::None => Value::None,
        recorded::Value::List(l) => Value::List(ListValue::new(types::ANY, items(l)?)),
        recorded::Value::Tuple(t) => Value::tuple(items(t)?),
        recorded::Value::Dict(_) => return Err("dicts are no arguments here".to_owned()),
    })
}

/// The same, tensors one element further in memory than anything is aligned to.
fn unaligned(value: &recorded::Value) -> Result<Value, String> {
    let Value::Tensor(tensor) = argument(value)? else {
        return argument(value);
    };
    let tensor = tensor.get();
    let text = |e: frazil_runtime::TensorError| e.to_string();
    let memory = frazil_runtime::Tensor::zeros(tensor.dtype(), &[tensor.numel() + 1]).map_err(text)?;
    let moved = memory.as_strided(tensor.sizes(), tensor.strides(), 1).map_err(text)?;
    moved.copy_(&tensor).map_err(text)?;
    Ok(moved.into())
}

/// The interpreter's value as it would be recorded.
fn result(value: &Value) -> Result<recorded::Value, String> {
    let items = |items: &[Value]| items.iter().map(result).collect::<Result<Vec<_>, _>>();
    Ok(match value {
        Value::Tensor(t) => {
            let t = t.get();
            let dtype = DTYPES.iter().find(|(_, d)| *d == t.dtype());
            let (dtype, _) = dtype.ok_or_else(|| format!("no dtype {}", t.dtype()))?;
            recorded::Value::Tensor(recorded::Tensor {
                dtype: *dtype,
                shape: t.sizes().iter().map(|&n| n as usize).collect(),
                data: t.to_bytes().map_err(|e| e.to_string())?,
            })
        }
        Value::Int(i) => recorded::Value::Int(*i),
        Value::Float(f) => recorded::Value::Float(*f),
        Value::Bool(b) => recorded::Value::Bool(*b),
        Value::Str(s) => recorded::Value::Str(s.to_string()),
        Value::None => recorded::Value::None,
        Value::List(l) => recorded::Value::List(items(&l.items())?),
        Value::Tuple(t) => recorded::Value::Tuple(items(&t.items)?),
        other => return Err(format!("a result that is not recorded: {other:?}")),
    })
}
