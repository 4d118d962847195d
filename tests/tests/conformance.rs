//! Recorded cases on both engines against what real PyTorch computed.
//!
//! `tests/conformance` lists what is expected to pass; a listed case that does not pass is a failure. What passes and is not
//! listed is reported, so that the list can grow. Cases of the large corpus run where `FRAZIL_CORPUS` names it.
//!
//! Arguments: parts of case names to select; `--suite=fixtures|models|ops`, `--engine=interp|native`; `--why` says why cases
//! that are not listed fail; `--bless` adds what passes to the lists.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use frazil_tests::case::{self, Case};
use frazil_tests::expectations::Expectations;
use frazil_tests::runner::{self, Engine, Failure};
use frazil_tests::workspace;

/// The longest that one case may take, on a slow machine with unoptimised code.
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
    why: bool,
    bless: bool,
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
                ("--why", _) => options.why = true,
                ("--bless", _) => options.bless = true,
                // What `cargo test` passes to every test.
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

fn run_suites(options: &Options) -> Result<Tally, String> {
    let mut tally = Tally::default();
    for suite in suites(options)? {
        let path = list_path(suite.name);
        let mut expectations = Expectations::read(&path)?;
        let names: BTreeSet<&str> = suite.cases.iter().map(|case| case.name.as_str()).collect();
        for name in expectations.unknown(&names) {
            println!(
                "{}: `{name}` is listed in {} but there is no such case",
                suite.name,
                path.display()
            );
            tally.failed += 1;
        }
        for engine in Engine::ALL {
            if options.engine.is_none_or(|only| only == engine) {
                run_suite(&suite, engine, &mut expectations, options, &mut tally)?;
            }
        }
        if options.bless {
            fs::write(&path, expectations.print()).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(tally)
}

fn list_path(suite: &str) -> PathBuf {
    workspace::root()
        .join("tests/conformance")
        .join(suite)
        .with_extension("txt")
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
        println!("conformance: FRAZIL_CORPUS is not set, so only the repository's own fixtures are run");
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

/// Runs a suite on one engine, says what is to be said, and counts the listed cases.
fn run_suite(
    suite: &Suite,
    engine: Engine,
    expectations: &mut Expectations,
    options: &Options,
    tally: &mut Tally,
) -> Result<(), String> {
    let label = format!("{}/{}", suite.name, engine.name());
    let cases: Vec<&Case> = suite.cases.iter().filter(|case| options.selects(&case.name)).collect();
    let start = Instant::now();
    let failures = run_cases(&cases, engine, &label);

    let mut passing = BTreeSet::new();
    let mut unlisted = Vec::new();
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let (mut passed, mut failed) = (0, 0);
    for (case, failure) in cases.iter().zip(failures) {
        let name = case.name.as_str();
        match (failure, expectations.covers(name, engine)) {
            (None, listed) => {
                passing.insert(name);
                if listed {
                    passed += 1;
                } else {
                    unlisted.push(name);
                }
            }
            (Some(failure), true) => {
                println!("{label}: FAILED {name}: {failure}");
                failed += 1;
            }
            (Some(failure), false) => reasons.entry(failure.to_string()).or_default().push(name),
        }
    }
    println!(
        "{label}: {} of {} pass, {} listed, {failed} listed fail, {:.1} s",
        passing.len(),
        cases.len(),
        passed + failed,
        start.elapsed().as_secs_f64()
    );
    if options.why || !options.filters.is_empty() {
        let mut reasons: Vec<_> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
        for (reason, names) in reasons {
            println!("{label}: {} not listed: {reason}: {}", names.len(), names.join(" "));
        }
    }
    if options.bless {
        let all = suite.cases.iter().map(|case| case.name.as_str()).collect();
        expectations.add(engine, &passing, &all);
    } else if !unlisted.is_empty() {
        println!(
            "{label}: passing, not listed (--bless adds them): {}",
            unlisted.join(" ")
        );
    }
    tally.passed += passed;
    tally.failed += failed;
    Ok(())
}

/// Runs cases on all cores; gives why each failed, in their order.
fn run_cases(cases: &[&Case], engine: Engine, label: &str) -> Vec<Option<Failure>> {
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
                        // A lost progress line harms nobody.
                        let _ = write!(
                            io::stderr(),
                            "\r\x1b[K{label} {}/{} {}",
                            index + 1,
                            cases.len(),
                            case.name
                        );
                    }
                    if let Err(failure) = runner::run(case, engine, &jit_run, LIMIT) {
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
