//! The programs of tests/fixtures/language: graphs and results are compared with PyTorch's recordings.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says on the way what it compares"
)]

use crate::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::layers_page::LayersPage;
use common::{listing, programs, without_constants, without_defaults};
use frazil::{CallError, Engine, EngineKind, EngineOptions, Loaded, Model, Session, Value};
use frazil_recorded::compare::{self, Tolerance};
use frazil_recorded::tensors::Tensors;
use frazil_recorded::value::value_from_json;
use serde_json::Value as Json;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/language")
}

/// Returns the known differences, intended or open: `TOPIC/NAME KIND  reason`, one per line.
fn differences() -> BTreeMap<String, String> {
    let random = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/generate/random_programs.txt");
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let text = read(folder().join("differences.txt")) + &read(random);
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (case, kind) = line.split_once(' ').unwrap();
            let kind = kind.split_whitespace().next().unwrap();
            (case.to_owned(), kind.to_owned())
        })
        .collect()
}

/// The difference between our outcome of a program and the recorded one.
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum Outcome {
    Same,
    /// We compile a program that PyTorch refuses.
    Accepts,
    /// We refuse a program that PyTorch compiles.
    Refuses(String),
    /// Both refuse, with different messages.
    Message(String),
    /// A result differs.
    Result(String),
    /// Results agree, graphs do not.
    Graph(String),
}

impl Outcome {
    /// Returns the name of the kind in lists of differences.
    pub fn kind(&self) -> &'static str {
        match self {
            Outcome::Same => "same",
            Outcome::Accepts => "accepts",
            Outcome::Refuses(_) => "refuses",
            Outcome::Message(_) => "message",
            Outcome::Result(_) => "result",
            Outcome::Graph(_) => "graph",
        }
    }
}

/// Returns the loaded file, or the error if the entry `f` is a function that does not compile; other functions do not count.
fn without_refusal(loaded: Loaded) -> Result<Loaded, String> {
    match &loaded {
        Loaded::Graphs(graphs) => match graphs.unit().refused.get("f") {
            Some(why) => Err(why.clone()),
            None => Ok(loaded),
        },
        Loaded::Model(_) => Ok(loaded),
    }
}

/// Compares a program with its recording. Also determines whether native code runs it as a whole, if `whole` is given and there is a compiler.
pub fn compare(source: &str, recorded: &Json, tolerance: Tolerance, whole: &mut Option<bool>) -> Outcome {
    let session = Session::new();
    let loaded = session.load_bytes(Path::new("program.py"), source.as_bytes().to_vec());
    let loaded = loaded.map_err(|e| e.to_string()).and_then(without_refusal);
    let expected = recorded.get("error").map(|error| error.as_str().unwrap());
    let loaded = match (loaded, expected) {
        (Ok(_), Some(_)) => return Outcome::Accepts,
        (Ok(loaded), None) => loaded,
        (Err(message), None) => return Outcome::Refuses(message),
        (Err(message), Some(expected)) => {
            let first = expected.lines().next().unwrap();
            return if message.contains(first) {
                Outcome::Same
            } else {
                Outcome::Message(format!("{message}\n  PyTorch: {first}"))
            };
        }
    };
    let mut model = match &loaded {
        Loaded::Model(model) => model.clone(),
        Loaded::Graphs(graphs) => graphs.to_model(),
    };
    if source.contains("# mode: train\n") {
        model.train(true);
    }
    let called = recorded["calls"].as_array().unwrap().iter();
    let called: Vec<String> = called
        .filter_map(|call| Some(call.get("method")?.as_str()?.to_owned()))
        .collect();
    let method = (!loaded.is_model()).then_some("f");
    // Without LLVM only the interpreter runs.
    let kinds = [EngineKind::Interpreter, EngineKind::Native];
    for &kind in &kinds[..if cfg!(feature = "codegen") { 2 } else { 1 }] {
        if let (EngineKind::Native, Some(whole)) = (kind, whole.as_mut()) {
            let options = EngineOptions::default().kind(kind).strict(true).methods(called.clone());
            let strict = model.engine(&options).ok();
            let difference = strict.map(|mut engine| different_results(&mut engine, method, recorded, tolerance));
            *whole = matches!(difference, Some(None));
            if *whole {
                continue;
            }
        }
        if let Some(difference) = different_results(&mut engine(&model, kind, &called), method, recorded, tolerance) {
            return Outcome::Result(format!("{kind:?}: {difference}"));
        }
    }
    for (name, text) in recorded["graphs"].as_object().unwrap() {
        let Ok(graph) = loaded.graph(name) else {
            return Outcome::Graph(format!("there is no graph `{name}`"));
        };
        let ours = without_constants(&listing::list_graph(graph));
        let theirs = without_constants(&listing::list_text(&without_defaults(text.as_str().unwrap())));
        if ours != theirs {
            let text = format!("{}\n  PyTorch:\n{}", ours.join("\n"), theirs.join("\n"));
            return Outcome::Graph(text);
        }
    }
    Outcome::Same
}

/// Tolerance for one operator.
pub const OPERATOR: Tolerance = Tolerance::new(1e-5, 1e-5);

/// The accumulated rounding error of a whole random program.
const PROGRAM: Tolerance = Tolerance::new(2e-4, 2e-4).with_half(5e-2);

/// Returns a recorded value; its tensors are inline.
pub fn value(json: &Json) -> Value {
    value_from_json(json, &Tensors::default()).unwrap()
}

/// Returns the first call whose result or exception differs from PyTorch's recording.
fn different_results(
    engine: &mut Engine,
    method: Option<&str>,
    recorded: &Json,
    tolerance: Tolerance,
) -> Option<String> {
    for call in recorded["calls"].as_array().unwrap() {
        let args: Vec<_> = call["args"].as_array().unwrap().iter().map(value).collect();
        let method = call.get("method").map_or(method, |method| method.as_str());
        let result = match method {
            Some(method) => engine.call(method, &args),
            None => engine.call_module(&args),
        };
        let difference = different_result(&result, call, tolerance);
        // The recordings are those of eager mode if the executor of TorchScript differs.
        let as_eager = |eager| different_result(&result, eager, tolerance).is_none();
        if difference.is_some() && !call.get("eager").is_some_and(as_eager) {
            return difference;
        }
    }
    None
}

/// Returns the difference between the outcome of a call and the recorded one.
fn different_result(result: &Result<Value, CallError>, recorded: &Json, tolerance: Tolerance) -> Option<String> {
    let raises = recorded.get("raises").map(|r| r.as_str().unwrap());
    match (result, raises) {
        (Ok(got), None) => compare::values(&value(&recorded["result"]), got, tolerance)
            .err()
            .map(|difference| format!("{difference}\n  {got:?}\n  PyTorch: {}", recorded["result"])),
        (Ok(got), Some(raises)) => Some(format!("{got:?}\n  PyTorch raises {raises}")),
        (Err(e), None) => Some(format!("raises {e}\n  PyTorch: {}", recorded["result"])),
        // PyTorch's name of the class varies; only the message is compared.
        (Err(e), Some(raises)) => {
            let message = raises.split_once(": ").map_or("", |(_, message)| message);
            // For random programs only the fact that they raise is compared.
            (tolerance == OPERATOR && !e.to_string().contains(message))
                .then(|| format!("raises {e}\n  PyTorch raises {raises}"))
        }
    }
}

/// `FRAZIL_LANGUAGE=topic/name` prints all details of the programs whose names have this prefix;
/// `FRAZIL_PROGRAMS=FOLDER` runs programs that tests/generate/random_programs.py wrote to a folder instead.
#[test]
fn programs_do_what_pytorch_does() {
    let known = differences();
    let shown = std::env::var("FRAZIL_LANGUAGE").ok();
    let further = std::env::var_os("FRAZIL_PROGRAMS").map(PathBuf::from);
    let mut topics: Vec<PathBuf> = std::fs::read_dir(further.clone().unwrap_or_else(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    topics.sort();
    let mut layers = LayersPage::default();
    let mut wrong = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in topics {
        let topic = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let recorded = std::fs::read_to_string(path.with_extension("json")).unwrap();
        let recorded: Json = serde_json::from_str(&recorded).unwrap();
        for (name, source) in programs(&std::fs::read_to_string(&path).unwrap()) {
            let case = format!("{topic}/{name}");
            let recorded = recorded.get(&name).unwrap_or_else(|| panic!("{case} is not recorded"));
            if recorded.get("broken").is_some() {
                continue;
            }
            let tolerance = match topic.as_str() {
                "programs" => PROGRAM,
                _ => OPERATOR,
            };
            let is_layer = topic.starts_with("nn_");
            let mut whole = is_layer.then_some(false);
            let outcome = compare(&source, recorded, tolerance, &mut whole);
            if is_layer {
                layers.add(&topic, &name, &source, recorded, outcome.kind(), whole == Some(true));
            }
            *counts.entry(outcome.kind()).or_default() += 1;
            if shown.as_ref().is_some_and(|prefix| case.starts_with(prefix.as_str())) {
                eprintln!("{case} {outcome:?}\n");
            }
            match (&outcome, known.get(&case).map(String::as_str)) {
                (outcome, expected) if outcome.kind() == expected.unwrap_or("same") => {}
                (outcome, expected) => wrong.push(format!(
                    "{case} {} (expected {expected:?})\n  {outcome:?}",
                    outcome.kind()
                )),
            }
        }
    }
    assert!(wrong.is_empty(), "{counts:?}\n{}", wrong.join("\n"));
    if further.is_none() {
        layers.check();
    }
}

/// Returns the Python examples of a page with their line numbers.
fn examples(page: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line == "```python" {
            let body: Vec<&str> = lines.by_ref().map(|(_, l)| l).take_while(|l| *l != "```").collect();
            out.push((number + 1, body.join("\n") + "\n"));
        }
    }
    out
}

/// Returns the value of an expression of literals and tensor factories.
fn evaluated(expr: &str) -> Value {
    let text = format!("def value():\n    return {expr}\n");
    let session = Session::new();
    let Loaded::Graphs(graphs) = session.load_bytes(Path::new("value.py"), text.into()).unwrap() else {
        panic!("{expr} is no module");
    };
    engine(&graphs.to_model(), EngineKind::Interpreter, &[])
        .call("value", &[])
        .unwrap()
}

/// Returns an engine for a module that also keeps `called`, the methods of submodules that are called.
fn engine(model: &Model, kind: EngineKind, called: &[String]) -> Engine {
    let own = EngineOptions::default().methods;
    let options = EngineOptions::default()
        .kind(kind)
        .methods(own.iter().chain(called).cloned().collect());
    model.engine(&options).unwrap()
}

#[test]
fn the_examples_of_the_page_are_right() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/language.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (mut calls, mut errors) = (0, 0);
    for (line, text) in examples(&page) {
        let session = Session::new();
        let loaded = session.load_bytes(Path::new("example.py"), text.clone().into());
        let loaded = loaded.map_err(|e| e.to_string()).and_then(without_refusal);
        let checks = text.lines().filter_map(|l| l.strip_prefix("# "));
        let checks: Vec<&str> = checks.filter(|l| !l.starts_with("type:")).collect();
        assert!(!checks.is_empty(), "line {line}: the example says nothing");
        if let Some(expected) = checks[0].strip_prefix("error: ") {
            errors += 1;
            let Err(error) = loaded else {
                panic!("line {line}: this should not compile")
            };
            assert!(error.contains(expected), "line {line}: {error}");
            continue;
        }
        let model = match loaded.unwrap_or_else(|e| panic!("line {line}: {e}")) {
            Loaded::Model(model) => model,
            Loaded::Graphs(graphs) => graphs.to_model(),
        };
        let mut engine = engine(&model, EngineKind::Interpreter, &[]);
        for check in checks {
            calls += 1;
            let (name, rest) = check.split_once('(').unwrap();
            let raises = rest.split_once(") raises ");
            let (args, expected) = raises
                .or(rest.split_once(") == "))
                .unwrap_or_else(|| panic!("line {line}: {check}"));
            let args = if args.is_empty() {
                "()".to_owned()
            } else {
                format!("({args},)")
            };
            let result = engine.call(name, &evaluated(&args).items().unwrap());
            match (result, raises.is_some()) {
                (Ok(value), false) => {
                    let expected = evaluated(expected);
                    assert_eq!(format!("{value:?}"), format!("{expected:?}"), "line {line}: {check}");
                }
                (Err(error), true) => assert!(error.to_string().contains(expected), "line {line}: {error}"),
                (result, _) => panic!("line {line}: {check} gives {result:?}"),
            }
        }
    }
    assert!(calls >= 25 && errors >= 20, "only {calls} calls and {errors} errors");
}
