//! Many threads that load, freeze, compile and run models concurrently, and compare every result with the recorded one.
//!
//! Sessions, models, the operators of eager programs and directories of compiled code are shared by some threads and made anew by others, in a random
//! order for each thread, so that races become likely.

use frazil::eager::Ops;
use frazil::{CallError, EngineKind, EngineOptions, Model, Session, Tensor, Value};
use frazil_recorded::RecordedError;
use frazil_recorded::case::{self, Case};
use frazil_recorded::compare::{self, Tolerance};
use frazil_recorded::tensors::Tensors;
use frazil_recorded::value::{Outcome, value_from_json};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folders of models: each folder in them that contains `model.pt`, `case.json` and `tensors.safetensors` is one.
    pub models: Vec<PathBuf>,
    /// The time during which threads start new rounds.
    pub time: Duration,
    /// Number of threads.
    pub threads: usize,
    /// Seed of the random order.
    pub seed: u64,
}

/// Summary of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of rounds by kind.
    pub rounds: BTreeMap<String, usize>,
    /// Number of compared results.
    pub results: usize,
    /// The first failure of all threads, which stops them.
    pub failure: Option<String>,
}

/// A model with its recorded calls.
struct Subject {
    case: Case,
    tensors: Tensors,
    tolerance: Tolerance,
    /// The model in the session that threads share.
    shared: Model,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs until the time is over or something fails.
///
/// # Errors
/// If the models cannot be read.
pub fn run(options: &Options) -> Result<Report, Failure> {
    let session = Session::new();
    let mut subjects = Vec::new();
    for folder in &options.models {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)?
            .map(|e| Ok(e?.path()))
            .collect::<std::io::Result<_>>()?;
        entries.sort();
        for path in entries.iter().filter(|path| path.join("model.pt").is_file()) {
            subjects.push(Subject::read(&session, path)?);
        }
    }
    if subjects.is_empty() {
        return Err("there are no models".into());
    }
    let cache = tempfile::tempdir()?;
    let ops = session.eager();
    let end = Instant::now() + options.time;
    let stop = AtomicBool::new(false);
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for thread in 0..options.threads as u64 {
            let (subjects, ops, cache, stop, report) = (&subjects, &ops, cache.path(), &stop, &report);
            scope.spawn(move || {
                let mut random = Random(options.seed ^ (thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                while Instant::now() < end && !stop.load(Ordering::Relaxed) {
                    let subject = &subjects[random.below(subjects.len())];
                    let (what, outcome) = round(subject, ops, cache, &mut random);
                    let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                    *report.rounds.entry(what.to_owned()).or_default() += 1;
                    match outcome {
                        Ok(results) => report.results += results,
                        Err(e) => {
                            stop.store(true, Ordering::Relaxed);
                            report
                                .failure
                                .get_or_insert_with(|| format!("{what}, {}: {e}", subject.name()));
                        }
                    }
                }
            });
        }
    });
    Ok(report.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs one round: returns its name, and the number of correct results.
fn round(subject: &Subject, ops: &Ops, cache: &Path, random: &mut Random) -> (&'static str, Result<usize, Failure>) {
    let threads = 1 + random.below(2);
    match random.below(6) {
        0 => (
            "shared model",
            subject.calls(&subject.shared, &subject.options(threads)),
        ),
        1 => (
            "new session",
            subject
                .load()
                .and_then(|m| subject.calls(&m, &subject.options(threads))),
        ),
        2 => {
            let options = subject.options(threads).cache_dir(Some(cache.to_owned()));
            ("shared directory", subject.calls(&subject.shared, &options))
        }
        3 => {
            let options = subject.options(threads).kind(EngineKind::Interpreter);
            ("interpreter", subject.calls(&subject.shared, &options))
        }
        4 => {
            let options = subject.options(threads).fuse(false);
            ("without fusion", subject.calls(&subject.shared, &options))
        }
        _ => ("eager", eager(ops, random)),
    }
}

/// Checks sums and products that are exact in floats.
fn eager(ops: &Ops, random: &mut Random) -> Result<usize, Failure> {
    for round in 0..64 {
        let n = 1 + random.below(300);
        let x: Vec<f32> = (0..n).map(|i| (i % 50) as f32).collect();
        let var = ops.var(Tensor::from_f32(&x, &[n as i64])?);
        let y = (((&var * &var)? + round as f64)? - &var)?.relu().call()?;
        let wanted: Vec<f64> = x
            .iter()
            .map(|&x| f64::from((x * x + round as f32 - x).max(0.0)))
            .collect();
        let sum = y.sum().call()?.to_vec();
        if y.to_vec() != wanted || sum != [wanted.iter().sum::<f64>()] {
            return Err(format!("{n} elements, round {round}: {:?}", y.to_vec()).into());
        }
    }
    Ok(64)
}

impl Subject {
    fn read(session: &Session, folder: &Path) -> Result<Subject, Failure> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let case = case::model(name, folder.to_path_buf())?;
        Ok(Subject {
            tensors: case.tensors()?,
            tolerance: case.tolerance()?,
            shared: session.load(&case.model)?,
            case,
        })
    }

    fn name(&self) -> &str {
        &self.case.name
    }

    fn load(&self) -> Result<Model, Failure> {
        Ok(Session::new().load(&self.case.model)?)
    }

    fn calls_of_case(&self) -> &[Json] {
        let calls = self.case.json.get("calls").and_then(Json::as_array);
        calls.map_or(&[], Vec::as_slice)
    }

    fn method<'a>(&'a self, call: &'a Json) -> &'a str {
        let of = |json: &'a Json| json.get("method").and_then(Json::as_str);
        of(call).or(of(&self.case.json)).unwrap_or("forward")
    }

    fn options(&self, threads: usize) -> EngineOptions {
        let mut methods: Vec<String> = self.calls_of_case().iter().map(|c| self.method(c).to_owned()).collect();
        methods.sort();
        methods.dedup();
        let preserve = self.case.json.get("preserve").and_then(Json::as_array);
        let preserve = preserve.into_iter().flatten().filter_map(Json::as_str);
        EngineOptions::default()
            .threads(threads)
            .methods(methods)
            .preserve(preserve.map(str::to_owned).collect())
    }

    /// Makes all calls on a new engine of `model`.
    fn calls(&self, model: &Model, options: &EngineOptions) -> Result<usize, Failure> {
        let mut engine = model.engine(options)?;
        let wanted = self.case.expected()?;
        for (i, (call, wanted)) in self.calls_of_case().iter().zip(&wanted).enumerate() {
            let args = call.get("args").and_then(Json::as_array).into_iter().flatten();
            let args: Result<Vec<Value>, RecordedError> = args.map(|a| value_from_json(a, &self.tensors)).collect();
            let got = match engine.call(self.method(call), &args?) {
                Ok(value) => Outcome::Value(value),
                Err(CallError::Raised(text)) => Outcome::Raises { text, user: false },
                Err(e) => return Err(format!("call {i}: {e}").into()),
            };
            compare::outcomes(wanted, &got, self.tolerance).map_err(|e| format!("call {i}: {e}"))?;
        }
        Ok(wanted.len())
    }
}

/// A small generator (xorshift), whose numbers need not be of high quality.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % n.max(1)
    }
}
