//! The rows: the cases for each sentence, argument, member and example of the pages, or the reason why there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use super::{folder, recorded};

/// Maximum number of rows with a reason instead of a case, apart from training and other devices.
const MOST_REASONS: usize = 15;

/// Minimum number of programs.
const FEWEST_PROGRAMS: usize = 400;

/// Prefixes of reasons that are not counted.
const OUTSIDE: [&str; 2] = ["training: ", "devices: "];

/// A unit of a page: the page and the hash of its text.
type Unit = (String, String);

/// Returns the units that tests/generate/torch_pages.py found.
fn units() -> Vec<(Unit, String)> {
    let text = std::fs::read_to_string(folder().join("anchors.tsv")).unwrap();
    let mut out = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [page, section, kind, number, hash] = fields[..] else {
            panic!("five fields: {line}");
        };
        let place = format!("{page}:{number}: {kind} of {section}");
        out.push(((page.to_owned(), hash.to_owned()), place));
    }
    out
}

/// One row: the key in our words, and the cases or the reason.
struct Row {
    place: String,
    key: String,
    cases: Vec<String>,
    reason: Option<String>,
}

/// Returns the rows of all pages.
fn rows() -> BTreeMap<Unit, Row> {
    let mut out = BTreeMap::new();
    let mut files: Vec<_> = std::fs::read_dir(folder().join("rows"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for path in files {
        let page = format!("{}.txt", path.file_stem().unwrap().to_str().unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            let place = format!("rows/{}:{}", path.file_name().unwrap().to_str().unwrap(), number + 1);
            let fields: Vec<&str> = line.split('\t').collect();
            let [hash, key, cases] = fields[..] else {
                panic!("{place}: a hash, a key, and cases or a reason: {line}");
            };
            let reason = cases.strip_prefix("none: ").map(str::to_owned);
            let cases = match reason {
                Some(_) => Vec::new(),
                None => cases.split_whitespace().map(str::to_owned).collect(),
            };
            let row = Row {
                place: place.clone(),
                key: key.to_owned(),
                cases,
                reason,
            };
            let earlier = out.insert((page.clone(), hash.to_owned()), row);
            assert!(earlier.is_none(), "{place}: the unit has a row already");
        }
    }
    out
}

/// Returns whether `rust:FILE::NAME` names a test of this suite.
fn is_test(name: &str) -> bool {
    let Some((file, test)) = name.split_once("::") else {
        return false;
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/suite")
        .join(format!("{file}.rs"));
    std::fs::read_to_string(path).is_ok_and(|text| text.contains(&format!("fn {test}(")))
}

#[test]
fn every_unit_of_the_pages_has_a_row() {
    let (units, rows) = (units(), rows());
    let missing: Vec<String> = units
        .iter()
        .filter(|(unit, _)| !rows.contains_key(unit))
        .map(|((_, hash), place)| format!("{place} {hash}"))
        .collect();
    assert!(
        missing.is_empty(),
        "units without a row in tests/torch-pages/rows:\n{}",
        missing.join("\n")
    );
    let known: BTreeSet<&Unit> = units.iter().map(|(unit, _)| unit).collect();
    let stray: Vec<&str> = rows
        .iter()
        .filter(|(unit, _)| !known.contains(unit))
        .map(|(_, row)| row.place.as_str())
        .collect();
    assert!(stray.is_empty(), "rows of no unit: {stray:?}");
}

#[test]
fn every_row_has_cases_that_are_there_or_one_of_few_reasons() {
    let programs: BTreeSet<String> = recorded().into_iter().map(|program| program.case).collect();
    assert!(programs.len() >= FEWEST_PROGRAMS, "only {} programs", programs.len());
    let (mut wrong, mut reasons, mut named) = (Vec::new(), Vec::new(), BTreeSet::new());
    for row in rows().values() {
        if row.key.is_empty() || row.cases.is_empty() && row.reason.is_none() {
            wrong.push(format!("{}: a key, and cases or a reason", row.place));
        }
        for case in &row.cases {
            let found = match case.strip_prefix("rust:") {
                Some(test) => is_test(test),
                None => programs.contains(case),
            };
            if !found {
                wrong.push(format!("{}: there is no case `{case}`", row.place));
            }
            named.insert(case.clone());
        }
        if let Some(reason) = &row.reason
            && !OUTSIDE.iter().any(|outside| reason.starts_with(outside))
        {
            reasons.push(format!("{}: {reason}", row.place));
        }
    }
    let unused: Vec<&String> = programs.difference(&named).collect();
    assert!(unused.is_empty(), "programs that no row names: {unused:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        reasons.len() <= MOST_REASONS,
        "{} rows without a case, of at most {MOST_REASONS}:\n{}",
        reasons.len(),
        reasons.join("\n")
    );
}

/// `FRAZIL_TORCH_PAGES=FOLDER` is a folder with the pages as text, which are not part of the repository.
#[test]
fn the_list_of_units_is_that_of_the_pages() {
    let Some(pages) = std::env::var_os("FRAZIL_TORCH_PAGES") else {
        return;
    };
    let script = folder().join("../generate/torch_pages.py");
    let output = Command::new("python3")
        .arg(script)
        .arg(pages)
        .arg("--check")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
