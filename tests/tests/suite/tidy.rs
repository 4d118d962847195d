//! Rules about the tree that no compiler checks. Each test lists all violations at once, with what to do.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use frazil_recorded::workspace::{files, root};

/// Files in `passes/src` that are not passes: the machinery around them.
const PASS_MACHINERY: &[&str] = &[
    "alias_db", "lib", "manager", "pipeline", "pass", "registry", "standard", "support",
];

/// Lines that a Rust file may have: one subject a file.
const MAX_LINES: usize = 700;

/// Files that may be longer: path, limit, reason.
const LONG_FILES: &[(&str, usize, &str)] = &[];

/// Where `unsafe` may stand, and why.
const UNSAFE_PLACES: &[(&str, &str)] = &[
    ("crates/arena/", "append-only memory behind shared references"),
    ("crates/capi/", "the C interface of the compiler"),
    (
        "crates/codegen/",
        "foreign functions of MLIR and LLVM, calls of compiled code",
    ),
    ("crates/python/", "memory of NumPy arrays, DLPack"),
    ("crates/rt/", "the C interface of compiled libraries"),
    ("crates/runtime/src/eval/gemm.rs", "the gemm crate takes pointers"),
    ("tests/fuzz/src/capi/", "calls of the C interface"),
    ("tests/fuzz/src/memory.rs", "an allocator that counts"),
    ("tools/src/leave.rs", "the C library's own way to end a process"),
];

/// The floors of the house. A crate depends only on crates of lower floors.
const FLOORS: &[(&str, u32)] = &[
    ("frazil-arena", 0),
    ("frazil-limits", 0),
    ("frazil-rt", 0),
    ("frazil-ir", 1),
    ("frazil-syntax", 2),
    ("frazil-torchscript", 2),
    ("frazil-runtime", 2),
    ("frazil-prim", 3),
    ("frazil-aten", 3),
    ("frazil-passes", 3),
    ("frazil-recorded", 3),
    ("frazil-codegen", 3),
    ("frazil", 4),
    ("frazil-capi", 5),
    ("frazil-python", 5),
    ("frazil-tools", 5),
    ("frazil-tests", 5),
    ("frazil-fuzz", 6),
    ("frazil-embed", 6),
];

/// Bytes of a file of an archive beyond which it is not searched: some archives claim any size.
const MAX_UNPACKED: u64 = 1 << 26;

/// What links LLVM; only `frazil-codegen` may depend on it.
const LLVM_CRATES: &[&str] = &["inkwell", "llvm-sys", "melior", "mlir-sys"];

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn with_extension(folder: &str, extension: &str) -> Vec<PathBuf> {
    files(folder)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

fn assert_none(violations: &[String], remedy: &str) {
    assert!(violations.is_empty(), "{remedy}:\n  {}\n", violations.join("\n  "));
}

#[test]
fn every_pass_has_a_lit_test_of_its_name_and_the_reverse() {
    let passes: BTreeSet<String> = with_extension("passes/src", "rs")
        .iter()
        .filter_map(|path| {
            let stem = path.file_stem()?.to_str()?;
            // A pass of several files is a folder: its mod.rs stands for it, the others are parts.
            let folder = path.parent()?.strip_prefix("passes/src").ok()?.to_str()?;
            match (folder, stem) {
                ("", stem) => Some(stem.to_owned()),
                (folder, "mod") => Some(folder.to_owned()),
                _ => None,
            }
        })
        .filter(|name| !PASS_MACHINERY.contains(&name.as_str()))
        .map(|name| name.replace('_', "-"))
        .collect();
    // Either one file, or a folder of them.
    let tests: BTreeSet<String> = files("lit-tests/passes")
        .iter()
        .filter_map(|path| {
            let below = path.strip_prefix("lit-tests/passes").ok()?;
            Some(
                Path::new(below.components().next()?.as_os_str())
                    .file_stem()?
                    .to_str()?
                    .to_owned(),
            )
        })
        .filter(|name| !name.starts_with('.'))
        .collect();
    let missing: Vec<_> = passes
        .difference(&tests)
        .map(|name| format!("lit-tests/passes/{name}.ir"))
        .collect();
    assert_none(&missing, "passes without a lit test; write");
    let stray: Vec<_> = tests
        .difference(&passes)
        .map(|name| format!("lit-tests/passes/{name}"))
        .collect();
    assert_none(
        &stray,
        "lit tests that are named after no file in passes/src; rename or move",
    );
}

#[test]
fn every_rust_file_says_what_it_is_about() {
    let mut violations = Vec::new();
    for path in with_extension("", "rs") {
        let text = read(&path);
        let first = text
            .lines()
            .find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
        if !first.is_some_and(|line| line.starts_with("//! ")) {
            violations.push(path.display().to_string());
        }
    }
    assert_none(&violations, "files that do not begin with a `//!` comment");
}

#[test]
fn no_rust_file_is_too_long() {
    let mut violations = Vec::new();
    for path in with_extension("", "rs") {
        let lines = read(&path).lines().count();
        let listed = LONG_FILES.iter().find(|(long, _, _)| Path::new(long) == path);
        let limit = listed.map_or(MAX_LINES, |(_, limit, _)| *limit);
        if lines > limit {
            violations.push(format!("{} has {lines} lines of {limit}", path.display()));
        } else if listed.is_some() && lines <= MAX_LINES {
            violations.push(format!("{} has {lines} lines: take it off the list", path.display()));
        }
    }
    assert_none(&violations, "files of more than one subject? Split them");
}

#[test]
fn unsafe_code_stays_in_its_places() {
    // Put together here so that this file does not contain what it looks for.
    let forms = ["{", "fn", "impl", "extern"].map(|after| format!("{} {after}", "unsafe"));
    let mut violations = Vec::new();
    for path in with_extension("", "rs") {
        if UNSAFE_PLACES
            .iter()
            .any(|(place, _)| path.to_string_lossy().starts_with(place))
        {
            continue;
        }
        for (index, line) in read(&path).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if forms.iter().any(|form| code.contains(form)) {
                violations.push(format!("{}:{}", path.display(), index + 1));
            }
        }
    }
    assert_none(
        &violations,
        "unsafe code outside the arena, foreign functions, compiled code and memory maps",
    );
}

#[test]
fn no_test_is_ignored() {
    let ignored = format!("#[{}", "ignore");
    let mut violations = Vec::new();
    for path in with_extension("", "rs") {
        for (index, line) in read(&path).lines().enumerate() {
            if line.trim_start().starts_with(&ignored) {
                violations.push(format!("{}:{}", path.display(), index + 1));
            }
        }
    }
    assert_none(
        &violations,
        "ignored tests; assert what happens today and say what should",
    );
}

#[test]
fn crates_depend_only_on_lower_floors() {
    let floor = |name: &str| {
        FLOORS
            .iter()
            .find(|(listed, _)| *listed == name)
            .map(|(_, floor)| *floor)
    };
    let mut violations = Vec::new();
    for path in files("").into_iter().filter(|path| path.ends_with("Cargo.toml")) {
        let text = read(&path);
        let Some(name) = text.lines().find_map(|line| line.strip_prefix("name = ")) else {
            continue;
        };
        let name = name.trim_matches('"');
        let Some(own) = floor(name) else {
            violations.push(format!("{name} has no floor in tests/tests/suite/tidy.rs"));
            continue;
        };
        for dependency in dependencies(&text) {
            if dependency.starts_with("frazil") && floor(dependency).is_none_or(|floor| floor >= own) {
                violations.push(format!("{name} depends on {dependency}"));
            }
            if LLVM_CRATES.contains(&dependency) && name != "frazil-codegen" {
                violations.push(format!(
                    "{name} depends on {dependency}: only frazil-codegen links LLVM"
                ));
            }
        }
    }
    assert_none(&violations, "dependencies that point upwards");
}

/// The names in the `[dependencies]` table of a manifest.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
}

#[test]
fn no_file_names_a_path_of_somebodys_machine() {
    // Put together here so that this file does not contain what it looks for.
    let places = ["work", "farm", "root", "home", "Users", "opt", "tmp", "data"].map(|place| format!("/{place}/"));
    let mut violations = Vec::new();
    let mut check = |path: String, bytes: &[u8]| {
        for at in (0..bytes.len()).filter(|at| bytes[*at] == b'/') {
            // An absolute path, not the middle of a relative one.
            let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
            let inside = before.is_ascii_alphanumeric() || b"_./-}".contains(&before);
            if let Some(place) = places.iter().find(|place| bytes[at..].starts_with(place.as_bytes()))
                && !inside
            {
                let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
                violations.push(format!("{path}:{line}: {place}"));
            }
        }
    };
    for path in files("") {
        let bytes = fs::read(root().join(&path)).expect("a readable file");
        check(path.display().to_string(), &bytes);
        // Files of archives may be compressed. Some archives are damaged on purpose.
        let Ok(mut archive) = zip::ZipArchive::new(Cursor::new(&bytes)) else {
            continue;
        };
        for index in 0..archive.len() {
            let mut unpacked = Vec::new();
            if let Ok(mut file) = archive.by_index(index)
                && file.size() < MAX_UNPACKED
                && file.read_to_end(&mut unpacked).is_ok()
            {
                let name = file.name().unwrap_or_default();
                check(format!("{}!{name}", path.display()), &unpacked);
            }
        }
    }
    assert_none(&violations, "absolute paths that exist on one machine only");
}
