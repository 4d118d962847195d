//! Words that this project no longer uses, in Rust files and pages. The terms of the field replace them.

use std::fs;
use std::path::Path;

use frazil_recorded::workspace::{files, root};

/// A retired word: its spelling in the list of the test, and its replacement. In a spelling, `_` stands for a space, a hyphen, an underscore or nothing
/// between words, and the comparison ignores case; so one entry covers identifiers and phrases. A word also matches as a part of an identifier, but not
/// within another word.
const RETIRED: &[(&str, &str)] = &[
    ("truth_value", "bool"),
    ("truth_values", "bools"),
    ("stretch", "segment"),
    ("stretches", "segments"),
    ("course", "segmented execution"),
    ("courses", "segmented execution"),
    ("host_program", "runtime call; of an embedder: host process"),
    ("host_call", "runtime call"),
    ("host_calls", "runtime calls"),
    ("host_operator", "scalar operator, container operator"),
    ("host_operators", "scalar operators, container operators"),
    ("host_kernel", "runtime call"),
    ("give_back", "return, release"),
    ("gives_back", "returns, releases"),
    ("gave_back", "returned, released"),
    ("given_back", "returned, released"),
    ("giving_back", "returning, releasing"),
    ("to_and_fro", "serpentine (alternating) order"),
    ("own_pages", "huge pages"),
    ("kept_rows", "multi-output producer fusion"),
    ("rows_at_hand", "values kept in registers or in L1"),
    ("what_is_told", "diagnostics, remarks"),
    ("situation", "call signature"),
    ("situations", "call signatures"),
    ("lattice", "strided output"),
    ("lattices", "strided outputs"),
    ("going_over", "iterating over"),
    ("give_themselves", "return their operand (`returns_self`)"),
    ("gives_itself", "returns its operand"),
    ("matrix_product", "matmul"),
    ("matrix_products", "matmuls"),
    ("nobody", "no other ...; unused; or the passive voice"),
    ("somebody", "the caller, another thread, ...; or the passive voice"),
    ("anybody", "any caller, any thread, ...; or the passive voice"),
    ("everybody", "all users, all threads, ..."),
    ("whoever", "the caller, the thread that ..."),
    ("strangers", "untrusted input"),
];

/// Places where retired words may still be: the beginning of a path, the words (none for all), and the reason.
const EXCEPTIONS: &[(&str, &[&str], &str)] = &[("CHANGELOG.md", &[], "tells the old words to those who learned them")];

#[test]
fn retired_words_are_not_used() {
    let mut violations = Vec::new();
    for path in files("") {
        let name = path.to_string_lossy();
        let is_text = path.extension().is_some_and(|found| found == "rs" || found == "md");
        if !is_text || name == "tests/tests/suite/words.rs" {
            continue;
        }
        let text = fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (line, word, replacement) in retired_in(&text) {
            if !is_excepted(&path, word) {
                violations.push(format!("{name}:{line}: {word} (use: {replacement})"));
            }
        }
    }
    assert!(
        violations.is_empty(),
        "words that the field does not use; replace them:\n  {}\n",
        violations.join("\n  ")
    );
}

fn is_excepted(path: &Path, word: &str) -> bool {
    let name = path.to_string_lossy();
    EXCEPTIONS
        .iter()
        .any(|(start, words, _)| name.starts_with(start) && (words.is_empty() || words.contains(&word)))
}

/// Returns the retired words in a text, with their lines, from 1, and their replacements.
fn retired_in(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words = words_of(line);
        for (spelling, replacement) in RETIRED {
            let wanted: Vec<&str> = spelling.split('_').collect();
            if words.windows(wanted.len()).any(|window| window == wanted) {
                found.push((index + 1, *spelling, *replacement));
            }
        }
    }
    found
}

/// Returns the words of a line in lower case. An identifier is split at underscores, and before capitals. An empty word stands for a character that
/// ends a phrase: `self.host.call()` is not a host call.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in line.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        } else if !" _-".contains(c) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[test]
fn retired_words_are_found_in_identifiers_and_phrases() {
    let found = |text| {
        retired_in(text)
            .into_iter()
            .map(|(line, word, _)| (line, word))
            .collect::<Vec<_>>()
    };
    assert_eq!(found("a\nlet truth_value = 1;"), [(2, "truth_value")]);
    assert_eq!(found("struct HostCall;"), [(1, "host_call")]);
    assert_eq!(
        found("A truth-value, as HOST_PROGRAM."),
        [(1, "truth_value"), (1, "host_program")]
    );
    assert_eq!(found("of course"), [(1, "course")]);
    assert_eq!(found("a resource, outstretched"), []);
    assert_eq!(found("self.host.call(the truth, values)"), []);
}

/// An exception that is no longer necessary hides new occurrences.
#[test]
fn each_exception_is_necessary() {
    let unnecessary: Vec<&str> = EXCEPTIONS
        .iter()
        .filter(|(start, words, _)| {
            !files("").iter().any(|path| {
                path.to_string_lossy().starts_with(start)
                    && fs::read_to_string(root().join(path)).is_ok_and(|text| {
                        let found = retired_in(&text);
                        found
                            .iter()
                            .any(|(_, word, _)| words.is_empty() || words.contains(word))
                    })
            })
        })
        .map(|(start, _, _)| *start)
        .collect();
    assert_eq!(unnecessary, [""; 0], "exceptions without occurrences; remove them");
}
