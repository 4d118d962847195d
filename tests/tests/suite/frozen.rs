//! Frozen modules have the node kinds and attributes of `torch.jit.freeze`, except for listed differences.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use frazil_recorded::case::read_json;
use frazil_recorded::workspace::{corpus, fixtures, root, tool};
use frazil_tests::frozen::{
    Entry, attributes_of_json, attributes_of_text, forward_of, kinds_of_json, kinds_of_text, parse, unexplained,
};

/// Returns a model's archive and its `freeze.json`. `None` if it belongs to the large corpus and that does not exist.
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

/// Returns the models with a `freeze.json`.
fn models() -> Vec<String> {
    let own = fixtures().join("models");
    let folders = [Some(own), corpus().map(|corpus| corpus.join("models"))];
    let entries = folders
        .into_iter()
        .flatten()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let names = entries
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter(|name| files(name).is_some_and(|(_, golden)| golden.exists()))
        .collect()
}

/// Checks a model's frozen module.
fn check(entry: &Entry, archive: &Path, golden: &Path) -> Result<(), String> {
    let json = read_json(golden).map_err(|error| error.to_string())?;
    let case = read_json(&archive.with_file_name("case.json")).map_err(|error| error.to_string())?;
    let preserve: Vec<&str> = case["preserve"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str())
        .collect();
    let mut theirs = kinds_of_json(&json).ok_or("no \"kinds\"")?;
    let mut command = Command::new(tool("jit-opt"));
    command
        .arg(archive)
        .args(["--freeze", "--emit=ir", "--elide-constants-larger-than=16"]);
    if !preserve.is_empty() {
        command.arg(format!("--preserve={}", preserve.join(",")));
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut ours = kinds_of_text(&forward_of(&text));
    if let Some(expected) = attributes_of_json(&json) {
        let left = attributes_of_text(&text);
        if let Some(path) = left.difference(&expected).next() {
            return Err(format!("attribute {path} is left, which PyTorch folds"));
        }
        theirs.insert("attributes".to_owned(), expected.len());
        ours.insert("attributes".to_owned(), left.len());
    }
    let found = unexplained(&theirs, &ours, entry);
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("PyTorch's count and ours:\n    {}", found.join("\n    ")))
    }
}

#[test]
fn frozen_modules_have_the_kinds_and_attributes_that_pytorch_leaves() {
    let list = root().join("tests/conformance/frozen.txt");
    let text = fs::read_to_string(&list).expect("the list is readable");
    let mut failures = Vec::new();
    let entries = parse(&text).expect("the list is well formed");
    let unlisted = models()
        .into_iter()
        .filter(|name| entries.iter().all(|entry| entry.model != *name));
    failures.extend(unlisted.map(|name| format!("{name}: not in the list")));
    for entry in entries {
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
