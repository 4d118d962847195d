//! `jit-run`: runs models.

use crate::bench::{Measurement, measure, measure_turn};
use crate::case::Case;
use crate::literal::Literal;
use crate::npy::npy_bytes;
use crate::progress::Progress;
use crate::streams::{self, OutputFolder, print_line};
use crate::{Failure, print_failure, tracing_to_stderr, tuning_file};
use clap::{Parser, ValueEnum};
use frazil::runtime::python_repr::repr;
use frazil::{CallError, Engine, EngineKind, EngineOptions, FusionStrategy, Limits, Model, Session, Value};
use frazil_limits::parse_bytes;
use frazil_recorded::RecordedError;
use frazil_recorded::tensors::Tensors;
use frazil_recorded::value::{Results, value_from_json};
use serde::Deserialize;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Inputs and results are written as in Python:
  jit-run model.pt --input zeros:1x3x224x224
  jit-run model.pt --input image.npy --input 3 --input '\"text\"' --input '[1, 2.5]' --input '{\"a\": ones:2:int64}'
  jit-run model.pt --method=encoder.forward --input 'tensor([[1., 2.]])'
docs/jit-run.md describes these, and the files of --calls.";

/// Runs a TorchScript model (.pt, .ir, or .py source), natively or in the reference interpreter.
#[derive(Parser, Debug)]
#[command(name = "jit-run", version, max_term_width = 110, after_help = EXAMPLES)]
struct Options {
    /// The model
    #[arg(required_unless_present = "serve")]
    model: Option<PathBuf>,
    /// The method to call; a method of a submodule has a dotted path (encoder.forward), and the path of a submodule (encoder) calls that with its hooks. By default the
    /// module is called, which runs `forward` with the module's hooks, or the only function of a source file
    #[arg(long)]
    method: Option<String>,
    /// Put the module into evaluation mode first. By default, a module in training mode runs in training mode, with dropout and batch statistics
    #[arg(long)]
    eval: bool,
    /// native freezes the model and compiles it for the shapes of the inputs; interp runs it in the interpreter, as does FRAZIL_JIT=0 or PYTORCH_JIT=0 in the environment
    #[arg(long, value_enum, default_value_t = EngineName::Native)]
    engine: EngineName,
    /// Stop with an error where the input needs more than this: `untrusted` for the limits for untrusted input, and NAME=VALUE: memory (bytes, K, M, G),
    /// nodes, load-time, freeze-time, pass-time, compile-time, call-time (seconds), repetitions, elements
    #[arg(long, value_name = "LIMITS")]
    limits: Option<Limits>,
    /// Number of threads of a run
    #[arg(long, default_value_t = 1, value_name = "N")]
    threads: usize,
    /// Disable the fusion of loop nests, except of pointwise ones
    #[arg(long)]
    no_fusion: bool,
    /// static:N, optionally followed by ,dynamic:M: the first N shapes of a method's arguments get code of their own, and up to M further shapes share code,
    /// whose sizes are arguments
    #[arg(long, value_name = "STRATEGY", default_value = "static:2", value_parser = strategy)]
    fusion_strategy: Strategy,
    /// Fail if a method cannot be compiled, instead of running it in the interpreter
    #[arg(long)]
    strict: bool,
    /// An argument of the call; repeat the option for each. A .npy file, zeros:1x3x224x224[:dtype], ones:..., or a literal (3, 2.5, '"text"', true, None,
    /// '[1, 2]', '(1, 2)', '{"a": zeros:2}', 'tensor([1., 2.])')
    #[arg(long = "input", value_name = "VALUE", allow_hyphen_values = true)]
    inputs: Vec<Literal>,
    /// Write the tensors of the result to DIR/output_0.npy, ...
    #[arg(long, value_name = "DIR")]
    save_output: Option<PathBuf>,
    /// Make the calls of this case, in order, on one instance. docs/jit-run.md describes the format
    #[arg(long, value_name = "CASE.json", conflicts_with = "inputs")]
    calls: Option<PathBuf>,
    /// Write the case's results to DIR/results.json and DIR/tensors.safetensors
    #[arg(long, value_name = "DIR", requires = "calls")]
    out: Option<PathBuf>,
    /// Measure latency on the first call's inputs
    #[arg(long)]
    bench: bool,
    /// With --calls: measure each call, in order, planning and compilation included
    #[arg(long, requires = "calls", conflicts_with_all = ["bench", "profile"])]
    time_calls: bool,
    /// With --bench or --time-calls: print a last line of JSON
    #[arg(long)]
    json: bool,
    /// With --bench: for each line of standard input, a number of seconds, measure for this time and print a line of JSON. Use it to measure several programs
    /// in alternation
    #[arg(long, requires = "bench", conflicts_with = "json")]
    turns: bool,
    /// Profile the first call: print a row for each kernel
    #[arg(long, conflicts_with = "bench")]
    profile: bool,
    /// With --profile: write the steps of one run to this file, for Perfetto or Chrome's trace viewer
    #[arg(long, value_name = "FILE.json", requires = "profile")]
    trace: Option<PathBuf>,
    /// Keep compiled code in this directory, for the next start
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Maximum size of that directory in bytes, or with K, M or G. Beyond it, the files that have not been used for the longest time are deleted. Default: 2G
    #[arg(long, value_name = "BYTES", requires = "cache_dir", value_parser = size)]
    cache_size: Option<u64>,
    /// Use the kernels of this code library, which frazil-codes made, in place of compiling them
    #[cfg(feature = "codegen")]
    #[arg(long, value_name = "FILE")]
    code_library: Option<PathBuf>,
    /// Measure variants of kernels on this processor, and use the fastest. Results are kept in MODEL.tune, and not measured again
    #[arg(long)]
    tune: bool,
    /// Print what was compiled, how long it took, and what the interpreter runs
    #[arg(long)]
    timing: bool,
    /// Read jobs from standard input, one {"model", "calls", "out"} a line; run each, and print {"done": STATUS}
    #[arg(long, conflicts_with_all = ["model", "calls", "bench", "tune"])]
    serve: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum EngineName {
    Native,
    Interp,
}

/// A call to be run: method and arguments.
struct Call {
    /// The name of the method; `None` for a call of the module itself.
    method: Option<String>,
    args: Vec<Value>,
    named: Vec<(String, Value)>,
}

impl Call {
    /// Returns the name of the method that must exist for the call.
    fn method_name(&self) -> &str {
        self.method.as_deref().unwrap_or("forward")
    }

    fn run(&self, engine: &mut Engine) -> Result<Value, CallError> {
        let named: Vec<(&str, Value)> = self.named.iter().map(|(n, v)| (n.as_str(), v.clone())).collect();
        match &self.method {
            Some(method) => engine.call_with(method, &self.args, &named),
            None => engine.call_module_with(&self.args, &named),
        }
    }
}

/// Duration of the measurement for `--profile`.
#[cfg(feature = "codegen")]
const PROFILE_TIME: Duration = Duration::from_millis(1000);

/// Runs `jit-run` on the arguments of the process. Returns its exit status.
pub fn main() -> u8 {
    main_with(Session::new)
}

/// Runs the program with the caller's sessions, as the tool of a compiler that is built on Frazil. `session` returns a session with its operators
/// and passes; it is called once for each job.
pub fn main_with(session: impl Fn() -> Session) -> u8 {
    let options: Options = match streams::arguments() {
        Ok(options) => options,
        Err(status) => return status,
    };
    tracing_to_stderr();
    crate::leave::report_file_size();
    let result = match &options.model {
        Some(model) => run(
            &options,
            &session().with_limits(options.limits.unwrap_or_default()),
            model,
        )
        .map(Some),
        None => serve(&options, session).map(|()| None),
    };
    match result {
        Ok(used) => {
            // The process ends here: the system releases its memory at once, faster than dropping it piece by piece.
            std::mem::forget(used);
            0
        }
        Err(failure) => print_failure(&failure, options.model.as_deref().unwrap_or(Path::new("-"))),
    }
}

/// Runs the options on the model. Returns the engine, so that the caller decides when to drop it.
fn run(options: &Options, session: &Session, model: &Path) -> Result<Engine, Failure> {
    let progress = Progress::new();
    match &options.calls {
        Some(path) => run_case(options, session, model, path, options.out.as_deref(), &progress),
        None => run_inputs(options, session, model, &progress),
    }
}

/// Returns whether the environment disables compilation, for scripts that cannot change the arguments: by `FRAZIL_JIT=0` or, if that is not set, by a value of
/// PyTorch's variable that PyTorch treats as false.
fn native_code_is_off() -> bool {
    let value = |name| std::env::var(name).ok();
    match value("FRAZIL_JIT") {
        Some(value) => value == "0",
        None => {
            let value = value("PYTORCH_JIT").map(|value| value.to_lowercase());
            value.is_some_and(|value| matches!(value.as_str(), "0" | "0v" | "false" | "no"))
        }
    }
}

/// The value of `--fusion-strategy`.
#[derive(Clone, Copy, Debug)]
struct Strategy {
    shapes: FusionStrategy,
    /// Most shapes with native code.
    most: Option<usize>,
}

fn strategy(text: &str) -> Result<Strategy, String> {
    let expected = || format!("`static:N` or `static:N,dynamic:M` is expected, not `{text}`");
    let number = |part: &str, kind: &str| part.strip_prefix(kind)?.parse::<usize>().ok();
    let (first, second) = match text.split_once(',') {
        Some((first, second)) => (first, Some(second)),
        None => (text, None),
    };
    let static_shapes = number(first, "static:").ok_or_else(expected)?;
    let most = match second {
        Some(second) => {
            let dynamic = number(second, "dynamic:").ok_or_else(expected)?;
            Some(static_shapes.saturating_add(dynamic))
        }
        None => None,
    };
    Ok(Strategy {
        shapes: FusionStrategy { static_shapes },
        most,
    })
}

fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "expected a number of bytes, or one with K, M or G (2G)".to_owned())
}

fn engine_options(options: &Options, methods: Vec<String>, preserve: Vec<String>) -> Result<EngineOptions, Failure> {
    let engine = EngineOptions::default()
        .kind(match options.engine {
            EngineName::Native if !native_code_is_off() => EngineKind::Native,
            _ => EngineKind::Interpreter,
        })
        .eval(options.eval)
        .threads(options.threads.max(1))
        .strict(options.strict)
        .methods(methods)
        .preserve(preserve)
        .cache_dir(options.cache_dir.clone())
        .cache_bytes(
            options
                .cache_size
                .unwrap_or(EngineOptions::default().compile.cache_bytes),
        )
        .fuse(!options.no_fusion)
        .fusion_strategy(options.fusion_strategy.shapes)
        .specialisations(options.fusion_strategy.most)
        .tune(options.model.as_deref().filter(|_| options.tune).map(tuning_file));
    #[cfg(feature = "codegen")]
    if let Some(path) = &options.code_library {
        return Ok(engine.code_library(Some(frazil::CodeLibrary::read(path)?)));
    }
    Ok(engine)
}

fn run_case(
    options: &Options,
    session: &Session,
    model: &Path,
    path: &Path,
    out: Option<&Path>,
    progress: &Progress,
) -> Result<Engine, Failure> {
    progress.stage("reading");
    let case = Case::read(path)?;
    let tensors = Tensors::beside(path)?;
    let mut calls = Vec::with_capacity(case.calls.len());
    for call in &case.calls {
        let method = call.method.as_ref().unwrap_or(&case.method);
        let args = call.args.iter().map(|a| value_from_json(a, &tensors));
        let named = call.kwargs.iter();
        let named = named.map(|(name, a)| Ok((name.clone(), value_from_json(a, &tensors)?)));
        calls.push(Call {
            // `forward` means a call of the module, with its hooks.
            method: Some(method).filter(|m| *m != "forward").cloned(),
            args: args.collect::<Result<_, _>>()?,
            named: named.collect::<Result<_, RecordedError>>()?,
        });
    }
    // The arguments are copies.
    drop(tensors);
    let methods = calls.iter().map(|call| call.method_name().to_owned()).collect();
    let mut engine = session.engine(model, &engine_options(options, methods, case.preserve.clone())?)?;
    progress.stage("running");
    let none_to_measure = || Failure::Other(format!("{} has no call to measure", path.display()));
    if options.bench {
        let first = calls.first().ok_or_else(none_to_measure)?;
        return bench(options, &mut engine, first, progress).map(|()| engine);
    }
    if options.profile {
        let first = calls.first().ok_or_else(none_to_measure)?;
        return profile(options, &mut engine, first, progress).map(|()| engine);
    }
    let mut results = out.map(|_| Results::default());
    let mut outcome = Ok(());
    let mut times = Vec::with_capacity(calls.len());
    for (number, call) in calls.iter().enumerate() {
        let start = Instant::now();
        let result = call.run(&mut engine);
        times.push(start.elapsed().as_secs_f64() * 1e3);
        if let Err(CallError::Raised(text)) = &result {
            streams::tell(format_args!("call {number} raised {text}\n"));
        }
        outcome = match (result, &mut results) {
            (Err(CallError::Failed(error)), _) => Err(error.into()),
            (_, None) => Ok(()),
            (Ok(value), Some(results)) => results
                .push(&value)
                .map_err(|error| Failure::Result { call: number, error }),
            (Err(CallError::Raised(text)), Some(results)) => {
                results.push_raised(&text);
                Ok(())
            }
        };
        if outcome.is_err() {
            // Results so far are still written.
            break;
        }
    }
    tell(options, &engine);
    progress.done();
    if options.time_calls {
        let text = match options.json {
            true => serde_json::json!({ "calls_ms": times }).to_string(),
            false => {
                let lines = times.iter().enumerate().map(|(i, ms)| format!("call {i}: {ms:.3} ms"));
                lines.collect::<Vec<_>>().join("\n")
            }
        };
        print_line(text)?;
    }
    if let (Some(out), Some(results)) = (out, results) {
        let (json, tensors) = results.finish()?;
        let folder = OutputFolder::create(out)?;
        folder.write_all(&[("tensors.safetensors", &tensors), ("results.json", json.as_bytes())])?;
    }
    outcome.map(|()| engine)
}

fn run_inputs(options: &Options, session: &Session, model: &Path, progress: &Progress) -> Result<Engine, Failure> {
    progress.stage("reading");
    let source = match model.extension().is_some_and(|e| e == "py") {
        true => Some(session.load(model)?),
        false => None,
    };
    let method = match (&options.method, &source) {
        (None, Some(source)) => entry(source, model)?,
        (method, _) => method.clone(),
    };
    let args = options.inputs.iter().map(Literal::value);
    let call = Call {
        method,
        args: args.collect::<Result<_, Failure>>()?,
        named: Vec::new(),
    };
    let methods = vec![call.method_name().to_owned()];
    let engine_options = engine_options(options, methods, Vec::new())?;
    let mut engine = match source {
        Some(source) => source.engine(&engine_options)?,
        None => session.engine(model, &engine_options)?,
    };
    progress.stage("running");
    if options.bench {
        return bench(options, &mut engine, &call, progress).map(|()| engine);
    }
    if options.profile {
        return profile(options, &mut engine, &call, progress).map(|()| engine);
    }
    let value = match call.run(&mut engine) {
        Ok(value) => value,
        Err(e) => return Err(raised(e)),
    };
    tell(options, &engine);
    progress.done();
    let outputs = tensors_of(&value);
    match &options.save_output {
        Some(dir) => {
            let folder = OutputFolder::create(dir)?;
            for (i, tensor) in outputs.iter().enumerate() {
                folder.write(&format!("output_{i}.npy"), &npy_bytes(tensor)?)?;
            }
        }
        None => print_line(repr(session.ctx(), &value))?,
    }
    Ok(engine)
}

/// Returns the method that runs by default: `None` for `forward`, else the only method.
///
/// # Errors
/// If there are several, which are listed with their signatures.
fn entry(source: &Model, path: &Path) -> Result<Option<String>, Failure> {
    let names = source.root().method_names();
    match names.as_slice() {
        names if names.contains(&"forward") => Ok(None),
        [only] => Ok(Some((*only).to_owned())),
        [] => Err(Failure::Other(format!(
            "{} has no method that could be called",
            path.display()
        ))),
        several => {
            let mut message = format!("{} has several functions; choose one with --method:", path.display());
            for name in several {
                message += &format!("\n  {}", source.root().signature(name)?);
            }
            Err(Failure::usage(message))
        }
    }
}

/// Returns the tensors in a result, including those in tuples and lists.
fn tensors_of(value: &Value) -> Vec<frazil::Tensor> {
    match value.as_tensor() {
        Some(t) => vec![t],
        None => value.items().unwrap_or_default().iter().flat_map(tensors_of).collect(),
    }
}

fn tell(options: &Options, engine: &Engine) {
    if options.timing {
        for line in engine.notes() {
            streams::tell(format_args!("{line}\n"));
        }
    }
}

fn bench(options: &Options, engine: &mut Engine, call: &Call, progress: &Progress) -> Result<(), Failure> {
    progress.stage("measuring");
    // The first call compiles.
    call.run(engine).map_err(raised)?;
    let compile = engine.compile_time();
    let mut run = || call.run(engine).map(drop).map_err(raised);
    if options.turns {
        return turns(|time| measure_turn(compile, time, &mut run));
    }
    let measurement = measure(compile, run)?;
    tell(options, engine);
    progress.done();
    print_line(measurement.text())?;
    if options.json {
        print_line(measurement.json())?;
    }
    Ok(())
}

/// Reads durations from standard input, and measures for each of them.
fn turns(mut measure: impl FnMut(Duration) -> Result<Measurement, Failure>) -> Result<(), Failure> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| Failure::io("read", Path::new("standard input"), e))?;
        let time = line
            .trim()
            .parse()
            .ok()
            .and_then(|s| Duration::try_from_secs_f64(s).ok());
        let Some(time) = time else {
            return Err(Failure::Other(format!("expected a number of seconds, found `{line}`")));
        };
        print_line(measure(time)?.json())?;
    }
    Ok(())
}

#[cfg(not(feature = "codegen"))]
fn profile(_: &Options, _: &mut Engine, _: &Call, _: &Progress) -> Result<(), Failure> {
    Err(Failure::without_codegen())
}

#[cfg(feature = "codegen")]
fn profile(options: &Options, engine: &mut Engine, call: &Call, progress: &Progress) -> Result<(), Failure> {
    progress.stage("measuring");
    // The first call compiles.
    call.run(engine).map_err(raised)?;
    let profile = engine.profile(call.method_name(), &call.args, PROFILE_TIME)?;
    tell(options, engine);
    progress.done();
    match profile {
        Some(profile) => {
            print_line(&profile)?;
            if let Some(path) = &options.trace {
                let text = profile.chrome_trace();
                frazil::write_atomically(path, |file| file.write_all(text.as_bytes()))
                    .map_err(|e| Failure::io("write", path, e))?;
            }
        }
        None => {
            let why = "there is no profile: the method does not run natively as a whole (--strict says why)";
            return Err(Failure::Other(why.to_owned()));
        }
    }
    Ok(())
}

fn raised(e: CallError) -> Failure {
    match e {
        CallError::Raised(text) => Failure::Other(format!("the model raised: {text}")),
        CallError::Failed(error) => error.into(),
    }
}

/// A job: one line on standard input with `--serve`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    model: PathBuf,
    calls: PathBuf,
    out: PathBuf,
}

fn serve(options: &Options, session: impl Fn() -> Session) -> Result<(), Failure> {
    let progress = Progress::new();
    let stdin = std::io::stdin().lock();
    for line in stdin.lines() {
        let line = line.map_err(|e| Failure::io("read", Path::new("standard input"), e))?;
        let result = match serde_json::from_str::<Job>(&line) {
            // A session per job, so that no state is left for the next.
            Ok(job) => run_case(
                options,
                &session().with_limits(options.limits.unwrap_or_default()),
                &job.model,
                &job.calls,
                Some(&job.out),
                &progress,
            ),
            Err(e) => Err(Failure::Other(format!("not a job: {e}"))),
        };
        let answer = match result {
            Ok(_) => serde_json::json!({ "done": 0 }),
            Err(e) => serde_json::json!({ "done": 1, "error": e.to_string() }),
        };
        let mut out = std::io::stdout().lock();
        let written = writeln!(out, "{answer}").and_then(|()| out.flush());
        written.map_err(|e| Failure::io("write", Path::new("standard output"), e))?;
    }
    Ok(())
}
