//! Runs the commands on README.md and the pages of docs/, and compares their output with the pages.
//!
//! A block with `file=NAME` in its info string is a file. A `console` block contains commands, each after `$ `, and their output, standard
//! error first. In the output, a line `...` matches any number of lines, and `[..]` matches any text within a line. The blocks of a page
//! share a folder, in which `model.pt` is the image classifier of the fixtures.

use frazil_recorded::workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A block of code of a page.
struct Block<'a> {
    line: usize,
    info: &'a str,
    body: Vec<&'a str>,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut lines = page.lines().enumerate();
    let mut found = Vec::new();
    while let Some((number, line)) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let body = lines.by_ref().map(|(_, l)| l).take_while(|l| *l != "```").collect();
            let line = number + 1;
            found.push(Block { line, info, body });
        }
    }
    found
}

/// Returns whether `text` matches `pattern`, in which `[..]` matches any text.
fn line_matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once("[..]") else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(head) else {
        return false;
    };
    text.char_indices()
        .map(|(i, _)| i)
        .chain([text.len()])
        .any(|i| line_matches(rest, &text[i..]))
}

/// Returns whether the lines `actual` match the lines `expected`, in which `...` matches any number of lines.
fn lines_match(expected: &[&str], actual: &[&str]) -> bool {
    match expected {
        [] => actual.is_empty(),
        ["...", rest @ ..] => (0..=actual.len()).any(|i| lines_match(rest, &actual[i..])),
        [first, rest @ ..] => {
            matches!(actual, [line, others @ ..] if line_matches(first, line) && lines_match(rest, others))
        }
    }
}

fn run(command: &str, folder: &Path) -> String {
    let tools = workspace::tool("jit-opt");
    let tools = tools.parent().expect("a tool stands in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", tools.display()))
        .output()
        .expect("sh can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&output.stderr) + &text(&output.stdout);
    assert!(
        output.status.success(),
        "`{command}` ended with {}:\n{printed}",
        output.status
    );
    printed
}

/// Runs the commands of a page, and returns their number.
fn check(page: &Path) -> usize {
    let text = fs::read_to_string(workspace::root().join(page)).expect("a page");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = workspace::fixtures().join("models/residual_cnn/model.pt");
    fs::copy(model, folder.path().join("model.pt")).expect("the model can be copied");
    let mut commands = 0;
    for block in blocks(&text) {
        if let Some(name) = block
            .info
            .split_whitespace()
            .find_map(|word| word.strip_prefix("file="))
        {
            fs::write(folder.path().join(name), block.body.join("\n") + "\n").expect("a file can be written");
        }
        if block.info != "console" {
            continue;
        }
        let mut lines = block.body.iter().enumerate().peekable();
        while let Some((i, line)) = lines.next() {
            let command = line.strip_prefix("$ ").expect("a block begins with a command");
            let mut expected = Vec::new();
            while let Some((_, line)) = lines.next_if(|(_, line)| !line.starts_with("$ ")) {
                expected.push(*line);
            }
            let printed = run(command, folder.path());
            let actual: Vec<&str> = printed.lines().collect();
            assert!(
                lines_match(&expected, &actual),
                "{}:{}: `{command}` printed\n{printed}",
                page.display(),
                block.line + i + 1
            );
            commands += 1;
        }
    }
    commands
}

#[test]
fn the_commands_of_the_pages_print_what_the_pages_say() {
    let pages = workspace::files("docs")
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "md"))
        .chain([PathBuf::from("README.md")]);
    let commands: usize = pages.map(|page| check(&page)).sum();
    assert!(commands >= 18, "only {commands} commands were found");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = fs::read_to_string(workspace::root().join("docs/SUMMARY.md")).expect("the table of contents");
    for page in workspace::files("docs") {
        let name = page.strip_prefix("docs").unwrap_or(&page).display().to_string();
        let is_listed = summary.contains(&format!("]({name})"));
        assert!(
            is_listed || name == "SUMMARY.md",
            "docs/SUMMARY.md does not list {name}"
        );
    }
}

#[test]
fn patterns_match_as_described() {
    assert!(line_matches("a[..]c", "abc"));
    assert!(!line_matches("a[..]c", "abd"));
    assert!(lines_match(&["...", "x"], &["a", "b", "x"]));
    assert!(!lines_match(&["...", "x"], &["a", "x", "b"]));
    assert!(!lines_match(&["x"], &[]));
}
