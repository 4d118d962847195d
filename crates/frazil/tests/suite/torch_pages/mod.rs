//! PyTorch's pages on TorchScript: each unit of them has a row in tests/torch-pages/rows, and the programs in the rows have PyTorch's recorded results.

mod calls;
mod containers;
mod convert;
mod files;
mod helpers;
mod members;
mod module;
mod objects;
mod rows;
mod state;
mod steps;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::programs;
use crate::language::{OPERATOR, Outcome, compare};
use serde_json::Value as Json;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/torch-pages")
}

/// A recorded program.
struct Program {
    /// `TOPIC/NAME`.
    case: String,
    source: String,
    recorded: Json,
}

/// Returns all programs, by topic and in the order of their files.
fn recorded() -> Vec<Program> {
    let mut topics: Vec<PathBuf> = std::fs::read_dir(folder().join("programs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    topics.sort();
    let mut out = Vec::new();
    for path in topics {
        let topic = path.file_stem().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(path.with_extension("json")).unwrap();
        let mut json: Json = serde_json::from_str(&text).unwrap();
        for (name, source) in programs(&std::fs::read_to_string(&path).unwrap()) {
            let recorded = json
                .as_object_mut()
                .unwrap()
                .remove(&name)
                .unwrap_or_else(|| panic!("{topic}/{name} is not recorded"));
            assert!(recorded.get("broken").is_none(), "{topic}/{name}: {recorded}");
            out.push(Program {
                case: format!("{topic}/{name}"),
                source,
                recorded,
            });
        }
        let left: Vec<_> = json.as_object().unwrap().keys().collect();
        assert!(left.is_empty(), "{topic}.json records programs that are gone: {left:?}");
    }
    out
}

/// Returns the known differences, intended or open: `TOPIC/NAME KIND  reason`, one per line.
fn differences() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder().join("differences.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let (case, kind, reason) = (words.next(), words.next(), words.next());
            assert!(
                reason.is_some_and(|reason| !reason.trim().is_empty()),
                "a difference needs a reason: {line}"
            );
            (case.unwrap().to_owned(), kind.unwrap().to_owned())
        })
        .collect()
}

/// Removes resolved differences from the list, and updates those whose kind has changed.
fn bless(outcomes: &BTreeMap<String, &'static str>) {
    let path = folder().join("differences.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let kept = text.lines().filter_map(|line| {
        let mut words = line.splitn(3, ' ');
        let (case, reason) = (words.next()?, words.nth(1).unwrap_or_default());
        match outcomes.get(case) {
            Some(&"same") => None,
            Some(kind) => Some(format!("{case} {kind} {reason}")),
            None => Some(line.to_owned()),
        }
    });
    let kept: Vec<String> = kept.collect();
    std::fs::write(&path, kept.join("\n") + "\n").unwrap();
}

/// `FRAZIL_TORCH_PAGES_SHOW=topic/name` prints the outcome of the programs whose names have this prefix. `FRAZIL_BLESS=1` corrects the list of
/// differences; new ones must be written by hand, with their reason.
#[test]
#[allow(clippy::print_stderr, reason = "shows what was asked for")]
fn programs_of_the_pages_do_what_pytorch_recorded() {
    let known = differences();
    let shown = std::env::var("FRAZIL_TORCH_PAGES_SHOW").ok();
    let mut wrong = Vec::new();
    let mut outcomes = BTreeMap::new();
    for program in recorded() {
        let case = &program.case;
        let outcome = match program.recorded.get("steps") {
            Some(_) => steps::compare(&program.source, &program.recorded),
            None => compare(&program.source, &program.recorded, OPERATOR, &mut None),
        };
        if shown.as_ref().is_some_and(|prefix| case.starts_with(prefix.as_str())) {
            eprintln!("{case} {outcome:?}\n");
        }
        let expected = known.get(case).map(String::as_str);
        if outcome.kind() != expected.unwrap_or("same") {
            let detail = match &outcome {
                Outcome::Same | Outcome::Accepts => String::new(),
                Outcome::Refuses(text) | Outcome::Message(text) | Outcome::Result(text) | Outcome::Graph(text) => {
                    text.replace('\n', "\n    ")
                }
            };
            wrong.push(format!(
                "{case} {} (expected {expected:?})\n    {detail}",
                outcome.kind()
            ));
        }
        outcomes.insert(program.case, outcome.kind());
    }
    if std::env::var_os("FRAZIL_BLESS").is_some() {
        bless(&outcomes);
    }
    let unknown: Vec<_> = known.keys().filter(|name| !outcomes.contains_key(*name)).collect();
    assert!(
        unknown.is_empty(),
        "differences of programs that are not there: {unknown:?}"
    );
    assert!(
        wrong.is_empty(),
        "{} of {} programs:\n{}",
        wrong.len(),
        outcomes.len(),
        wrong.join("\n")
    );
}
