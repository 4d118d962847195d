//! Recorded cases on both engines compared with PyTorch's results.
//!
//! Every case must pass on both engines, except for those that `tests/conformance/expected-failures.txt` lists with a reason; a listed case
//! that passes is a failure too. Cases of the large corpus run unless `FRAZIL_CORPUS` is `none`.
//!
//! Arguments: parts of case names to select; `--suite=fixtures|models|ops`, `--engine=interp|native`; `--static-shapes=N` for the number of shapes with code
//! of their own, 0 for code whose sizes are all arguments; `--strict` for cases that may not run in the interpreter.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use frazil_recorded::case::{self, Case};
use frazil_recorded::workspace;
use frazil_tests::expected_failures::ExpectedFailures;
use frazil_tests::runner::{self, Engine, Failure};

/// Time limit for one case, on a slow machine with unoptimised code.
const LIMIT: Duration = Duration::from_secs(120);

struct Suite {
    name: &'static str,
    cases: Vec<Case>,
}

#[derive(Default)]
struct Options {
    filters: Vec<String>,
    suite: Option<String>,
    engine: Option<Engine>,
    /// Further options of `jit-run`.
    more: Vec<String>,
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        for argument in arguments {
            match argument.split_once('=').unwrap_or((&argument, "")) {
                ("--suite", name) => options.suite = Some(name.to_owned()),
                ("--engine", name) => {
                    options.engine = Some(Engine::from_name(name).ok_or(format!("no engine `{name}`"))?);
                }
                ("--strict", _) => options.more.push("--strict".to_owned()),
                ("--static-shapes", count) => options.more.push(format!("--fusion-strategy=static:{count}")),
                // Arguments that `cargo test` passes to every test.
                ("-q" | "--quiet" | "--nocapture" | "--no-capture" | "--test-threads", _) => {}
                (other, _) if other.starts_with('-') => return Err(format!("no option `{other}`")),
                _ => options.filters.push(argument),
            }
        }
        Ok(options)
    }

    fn selects(&self, case: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| case.contains(filter.as_str()))
    }
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
}

fn main() -> ExitCode {
    match Options::parse(env::args().skip(1)).and_then(|options| run_suites(&options)) {
        Ok(tally) => {
            let verdict = if tally.failed == 0 { "ok" } else { "FAILED" };
            println!(
                "test result: {verdict}. {} passed; {} failed",
                tally.passed, tally.failed
            );
            if tally.failed == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(message) => {
            eprintln!("conformance: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The names of the suites; the large corpus has the last two.
const SUITES: [&str; 3] = ["fixtures", "models", "ops"];

fn run_suites(options: &Options) -> Result<Tally, String> {
    let path = workspace::root().join("tests/conformance/expected-failures.txt");
    let expected = ExpectedFailures::read(&path)?;
    let mut tally = Tally::default();
    let mut misspelt = expected.without_suite(&SUITES);
    for suite in suites(options)? {
        let names = suite.cases.iter().map(|case| case.name.as_str()).collect();
        misspelt.extend(expected.unknown(suite.name, &names));
        for engine in Engine::ALL {
            if options.engine.is_none_or(|only| only == engine) {
                run_suite(&suite, engine, &expected, options, &mut tally);
            }
        }
    }
    for name in misspelt {
        println!("{}: there is no case `{name}`", path.display());
        tally.failed += 1;
    }
    Ok(tally)
}

fn suites(options: &Options) -> Result<Vec<Suite>, String> {
    let wanted = |name: &str| options.suite.as_deref().is_none_or(|only| only == name);
    let mut suites = Vec::new();
    if wanted("fixtures") {
        let cases = case::models(&workspace::fixtures().join("models")).map_err(|error| error.to_string())?;
        suites.push(Suite {
            name: "fixtures",
            cases,
        });
    }
    let Some(corpus) = workspace::corpus() else {
        println!("conformance: FRAZIL_CORPUS=none: only the fixtures of the repository are run");
        return Ok(suites);
    };
    if wanted("models") {
        let cases = case::models(&corpus.join("models")).map_err(|error| error.to_string())?;
        suites.push(Suite { name: "models", cases });
    }
    if wanted("ops") {
        let cases = case::operators(&corpus.join("ops")).map_err(|error| error.to_string())?;
        suites.push(Suite { name: "ops", cases });
    }
    Ok(suites)
}

/// Runs the selected cases of a suite on one engine, prints those that do not end as expected, and counts.
fn run_suite(suite: &Suite, engine: Engine, expected: &ExpectedFailures, options: &Options, tally: &mut Tally) {
    let label = format!("{}/{}", suite.name, engine.name());
    let cases: Vec<&Case> = suite.cases.iter().filter(|case| options.selects(&case.name)).collect();
    let start = Instant::now();
    let failures = run_cases(&cases, engine, &options.more, &label);

    let (mut unexpected, mut expected_failures) = (0, 0);
    for (case, failure) in cases.iter().zip(failures) {
        let name = format!("{}/{}", suite.name, case.name);
        match (failure, expected.reason(&name, engine)) {
            (None, None) => {}
            (Some(_), Some(_)) => expected_failures += 1,
            (Some(failure), None) => {
                println!("{label}: FAILED {}: {failure}", case.name);
                unexpected += 1;
            }
            (None, Some(reason)) => {
                println!(
                    "{label}: FAILED {}: passes, but is listed as failing ({reason})",
                    case.name
                );
                unexpected += 1;
            }
        }
    }
    println!(
        "{label}: {} cases, {expected_failures} expected failures, {unexpected} failed, {:.1} s",
        cases.len(),
        start.elapsed().as_secs_f64()
    );
    tally.passed += cases.len() - unexpected;
    tally.failed += unexpected;
}

/// Runs cases on all cores; returns the failure of each, in their order.
fn run_cases(cases: &[&Case], engine: Engine, more: &[String], label: &str) -> Vec<Option<Failure>> {
    let jit_run = workspace::tool("jit-run");
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::from_iter(cases.iter().map(|_| None)));
    let progress = io::stderr().is_terminal();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { return };
                    if progress {
                        // A lost progress line is harmless.
                        let _ = write!(
                            io::stderr(),
                            "\r\x1b[K{label} {}/{} {}",
                            index + 1,
                            cases.len(),
                            case.name
                        );
                    }
                    if let Err(failure) = runner::run(case, engine, more, &jit_run, LIMIT) {
                        failures.lock().expect("no runner panics")[index] = Some(failure);
                    }
                }
            });
        }
    });
    if progress {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    failures.into_inner().expect("no runner panics")
}
