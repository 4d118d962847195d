//! Frozen graphs have the node kinds that `torch.jit.freeze` leaves, apart from listed differences.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use frazil_tests::case::read_json;
use frazil_tests::frozen::{Entry, kinds_of_json, kinds_of_text, parse, unexplained};
use frazil_tests::workspace::{corpus, fixtures, root, tool};

/// A model's archive and its `freeze.json`. `None` when it belongs to the large corpus and that is not there.
fn files(model: &str) -> Option<(PathBuf, PathBuf)> {
    let own = fixtures().join("models").join(model);
    if own.is_dir() {
        return Some((own.join("model.pt"), own.join("freeze.json")));
    }
    let corpus = corpus()?;
    Some((
        corpus.join("models").join(model).join("model.pt"),
        corpus.join("ir").join(model).join("freeze.json"),
    ))
}

/// What is wrong with a model's frozen graph.
fn check(entry: &Entry, archive: &Path, golden: &Path) -> Result<(), String> {
    let json = read_json(golden).map_err(|error| error.to_string())?;
    let theirs = kinds_of_json(&json).ok_or("no \"kinds\"")?;
    let mut command = Command::new(tool("jit-opt"));
    command
        .arg(archive)
        .args(["--freeze", "--emit=ir", "--elide-constants-larger-than=16"]);
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let ours = kinds_of_text(&String::from_utf8_lossy(&output.stdout));
    let found = unexplained(&theirs, &ours, entry);
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("PyTorch's count and ours:\n    {}", found.join("\n    ")))
    }
}

#[test]
fn frozen_graphs_have_the_kinds_that_pytorch_leaves() {
    let list = root().join("tests/conformance/frozen.txt");
    let text = fs::read_to_string(&list).expect("the list is readable");
    let mut failures = Vec::new();
    for entry in parse(&text).expect("the list is well formed") {
        if let Some((archive, golden)) = files(&entry.model)
            && let Err(problem) = check(&entry, &archive, &golden)
        {
            failures.push(format!("{}: {problem}", entry.model));
        }
    }
    assert!(
        failures.is_empty(),
        "not explained in {}:\n  {}",
        list.display(),
        failures.join("\n  ")
    );
}
