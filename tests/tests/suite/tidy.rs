//! Rules about the tree that no compiler checks. Each test lists all violations at once, with a remedy.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use frazil_recorded::workspace::{files, root};

/// Files in `passes/src` that are not passes: the infrastructure for them.
const PASS_MACHINERY: &[&str] = &[
    "alias_db", "lib", "manager", "pipeline", "pass", "registry", "standard", "support",
];

/// Maximum number of lines of a Rust file, which has one subject.
const MAX_LINES: usize = 700;

/// Files that may be longer: path, limit, reason.
const LONG_FILES: &[(&str, usize, &str)] = &[];

/// Where `unsafe` is allowed, and why.
const UNSAFE_PLACES: &[(&str, &str)] = &[
    ("crates/arena/", "append-only memory behind shared references"),
    ("crates/capi/", "the C interface of the compiler"),
    ("crates/codegen/", "foreign functions of MLIR and LLVM"),
    (
        "crates/executor/",
        "calls of compiled code, mapped files, pages of the process",
    ),
    ("crates/python/", "memory of NumPy arrays, DLPack"),
    ("crates/rt/", "the C interface of compiled libraries"),
    ("crates/runtime/src/eval/gemm.rs", "the gemm crate takes pointers"),
    ("tests/fuzz/src/capi/", "calls of the C interface"),
    ("tests/fuzz/src/memory.rs", "an allocator that counts"),
    ("tools/src/leave.rs", "the C library's own way to end a process"),
];

/// Where statics with state are allowed: the beginning of a path, and the state, which belongs to the process or to a thread by its nature.
const STATIC_PLACES: &[(&str, &str)] = &[
    (
        "crates/executor/src/memory/mapped.rs",
        "mapped files, for the handler of SIGBUS",
    ),
    ("crates/executor/src/memory/deferred.rs", "LLVM's static objects"),
    (
        "crates/frazil/src/engine/code_library.rs",
        "the code library that the program contains",
    ),
    ("crates/limits/src/budget.rs", "the budget of a thread"),
    ("crates/python/src/", "objects of the Python process; its session"),
    ("crates/rt/src/gate.rs", "the gate that forks wait at"),
    (
        "crates/runtime/src/threads.rs",
        "threads for large loops of the interpreter and the compiler",
    ),
    (
        "crates/torchscript/src/source/circles.rs",
        "the containers that a thread has made while it evaluates source",
    ),
];

/// Files that quote names of operators, how many, and why. Code generation and the facade know operators by their entries; a pass
/// names those that its rewrite is about.
const OPERATOR_NAMES: &[(&str, usize, &str)] = &[
    (
        "crates/frazil/src/eager/arithmetic.rs",
        13,
        "Rust's operators on tensors, by their names in PyTorch",
    ),
    (
        "crates/frazil/src/eager/index.rs",
        8,
        "Python's indexing, by the operators that PyTorch makes of it",
    ),
    (
        "crates/frazil/src/eager/recorder.rs",
        1,
        "the nodes that PyTorch's tracer adds: sizes",
    ),
    (
        "crates/frazil/src/eager/start.rs",
        1,
        "the size of a dimension as a tensor, which traces record",
    ),
    (
        "crates/frazil/src/source_trace/mod.rs",
        2,
        "the nodes that PyTorch's tracer adds or leaves out",
    ),
    (
        "crates/frazil/src/source_trace/sizes.rs",
        9,
        "functions of sizes and of lists of sizes, which a trace records as nodes on numbers",
    ),
    ("passes/src/batch_mm.rs", 7, "trees of `mm`, `t` and `add`"),
    ("passes/src/combine_concats.rs", 1, "`cat` of `cat`"),
    (
        "passes/src/concat_frozen_linear.rs",
        3,
        "`linear` of one operand, and its slices",
    ),
    (
        "passes/src/constant_propagation.rs",
        1,
        "`hash`, whose value is Python's own",
    ),
    ("passes/src/decompose_ops.rs", 3, "`addmm` as `mm` and `add`"),
    (
        "passes/src/eliminate_no_ops.rs",
        3,
        "`detach`; tests of identity, which see it",
    ),
    (
        "passes/src/fold_frozen_conv_add_or_sub.rs",
        3,
        "`add` and `sub` after a convolution",
    ),
    (
        "passes/src/fold_frozen_conv_bn.rs",
        1,
        "`batch_norm` after a convolution",
    ),
    (
        "passes/src/fold_frozen_conv_mul_or_div.rs",
        3,
        "`mul` and `div` after a convolution",
    ),
    (
        "passes/src/fold_frozen_linear_bn.rs",
        1,
        "`batch_norm` after a linear layer",
    ),
    ("passes/src/freeze/attributes.rs", 2, "tests of identity with None"),
    ("passes/src/fuse_addmm.rs", 4, "`add` of `mm`"),
    (
        "passes/src/fuse_frozen_conv_add_relu.rs",
        3,
        "`relu` of `add` of a convolution",
    ),
    ("passes/src/fuse_linear.rs", 2, "patterns of `linear`"),
    ("passes/src/loop_unrolling.rs", 4, "arithmetic of trip counts"),
    ("passes/src/lower_all_tuples.rs", 1, "`format`, which prints tuples"),
    (
        "passes/src/normalize_ops.rs",
        6,
        "identity of bools as `eq`, `rsub` as `sub`",
    ),
    ("passes/src/peel_loops.rs", 5, "arithmetic of trip counts"),
    ("passes/src/peephole.rs", 34, "rewrites of single operators"),
    (
        "passes/src/peephole_alias_sensitive.rs",
        7,
        "neutral operands of arithmetic",
    ),
    (
        "passes/src/peephole_dict_idioms.rs",
        3,
        "`len` and `__getitem__` of new dictionaries",
    ),
    ("passes/src/peephole_list_idioms.rs", 6, "operators on new lists"),
    (
        "passes/src/peephole_non_tensor.rs",
        34,
        "rewrites of operators on numbers",
    ),
    ("passes/src/remove_dropout.rs", 8, "the dropouts"),
    ("passes/src/remove_expands.rs", 1, "implicit `expand`"),
    ("passes/src/remove_list_mutation.rs", 5, "writes to lists"),
    (
        "passes/src/remove_tensor_mutation.rs",
        33,
        "in-place operators whose functional form has another name or dtype",
    ),
    ("passes/src/support/fold.rs", 19, "layers that are folded"),
    (
        "passes/src/support/operators.rs",
        2,
        "text of tensors, which is PyTorch's at run time",
    ),
    (
        "passes/src/support/rank.rs",
        2,
        "`flatten` and `linear`, whose ranks depend on values of operands",
    ),
    ("passes/src/support/refine.rs", 4, "comparisons with None"),
    (
        "passes/src/transpose_frozen_linear.rs",
        3,
        "`linear` as `matmul` and `add`",
    ),
    ("passes/src/use_variadic_op.rs", 4, "the operators with variadic forms"),
];

/// The layer of each crate. A crate depends only on crates of lower layers.
const FLOORS: &[(&str, u32)] = &[
    ("frazil-arena", 0),
    ("frazil-limits", 0),
    ("frazil-rt", 0),
    ("frazil-ir", 1),
    ("frazil-pass-manager", 1),
    ("frazil-syntax", 2),
    ("frazil-runtime", 2),
    ("frazil-prim", 3),
    ("frazil-passes", 3),
    ("frazil-recorded", 3),
    ("frazil-tensor-ir", 3),
    ("frazil-executor", 4),
    ("frazil-torchscript", 4),
    ("frazil-aten", 5),
    ("frazil-planner", 5),
    ("frazil-codegen", 6),
    ("frazil", 7),
    ("frazil-capi", 8),
    ("frazil-python", 8),
    ("frazil-tools", 8),
    ("frazil-tests", 8),
    ("frazil-fuzz", 9),
    ("frazil-embed", 9),
    ("frazil-public-interface", 9),
];

/// Maximum size in bytes of a file of an archive that is searched: some archives claim any size.
const MAX_UNPACKED: u64 = 1 << 26;

/// Crates that link LLVM; only `frazil-codegen` may depend on them.
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
            // A pass of several files is a folder: its mod.rs represents it, the others are parts.
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
fn every_pass_of_the_tensor_ir_has_a_lit_test_of_its_name() {
    let passes = with_extension("crates/tensor-ir/src/transform", "rs");
    let names = passes.iter().filter_map(|path| {
        let below = path.strip_prefix("crates/tensor-ir/src/transform").ok()?;
        let name = Path::new(below.components().next()?.as_os_str())
            .file_stem()?
            .to_str()?;
        (!["mod", "rewriter"].contains(&name)).then(|| name.replace('_', "-"))
    });
    let names: BTreeSet<String> = names.collect();
    let missing: Vec<String> = names
        .iter()
        .map(|name| format!("lit-tests/tensors/{name}.tensors"))
        .filter(|path| !root().join(path).exists())
        .collect();
    assert_none(&missing, "transformations without a lit test; write");
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
    // Composed here, so that this file does not contain the searched text.
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
fn statics_with_state_are_in_few_places() {
    /// Parts of the names of types whose values change.
    const CHANGEABLE: [&str; 6] = ["Atomic", "Cell", "Lazy", "Lock", "Mutex", "Once"];
    let folders = ["crates", "dialects", "passes", "tools"];
    let sources = folders.map(|folder| with_extension(folder, "rs")).concat();
    let mut counted = BTreeSet::new();
    let mut violations = Vec::new();
    for path in sources {
        let name = path.to_string_lossy();
        if name.contains("/tests/") || name.ends_with("/tests.rs") {
            continue;
        }
        let text = read(&path);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (index, line) in code.lines().enumerate() {
            let code = line.trim_start();
            let declared = code.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
            let is_static = declared
                .strip_prefix("static ")
                .and_then(|rest| rest.split_once(": "))
                .is_some_and(|(name, ty)| name.starts_with("mut ") || CHANGEABLE.iter().any(|part| ty.contains(part)));
            if !is_static {
                continue;
            }
            match STATIC_PLACES.iter().find(|(place, _)| name.starts_with(place)) {
                Some((place, _)) => counted.extend([*place]),
                None => violations.push(format!("{name}:{}", index + 1)),
            }
        }
    }
    let stale = STATIC_PLACES.iter().filter(|(place, _)| !counted.contains(place));
    violations.extend(stale.map(|(place, _)| format!("{place}: listed, but has none")));
    assert_none(
        &violations,
        "nothing is global; keep the state in a session or an engine",
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

/// Returns the names in the `[dependencies]` table of a manifest.
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
    // Composed here, so that this file does not contain the searched text.
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

/// Facts about operators belong to their entries. Another list of names would have to be kept equal to them.
#[test]
fn operators_are_named_where_it_is_about_them() {
    let mut violations = Vec::new();
    let mut counted = BTreeSet::new();
    for path in [
        "crates/codegen/src",
        "crates/planner/src",
        "crates/executor/src",
        "crates/frazil/src",
        "passes/src",
    ]
    .map(|f| with_extension(f, "rs"))
    .concat()
    {
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        let text = read(&path);
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let forms = ["\"aten::", "\"prim::", "symbols::ATEN_"];
        let names = |line: &str| -> usize { forms.iter().map(|form| line.matches(form).count()).sum() };
        let found: usize = lines.map(names).sum();
        let path = path.display().to_string();
        let listed = OPERATOR_NAMES.iter().find(|(file, ..)| *file == path);
        let (_, allowed, _) = listed.copied().unwrap_or_default();
        if found != allowed {
            violations.push(format!("{path}: {found} names of operators, and {allowed} are listed"));
        }
        counted.insert(path);
    }
    let stale = OPERATOR_NAMES.iter().filter(|(file, ..)| !counted.contains(*file));
    violations.extend(stale.map(|(file, ..)| format!("{file}: listed, but there is no such file")));
    assert_none(
        &violations,
        "state what the code asks for in the operators' entries, or correct the list in tidy.rs",
    );
}

#[test]
fn files_that_the_pages_name_exist() {
    // The lit test of the page's own pass.
    const EXAMPLE: &str = "lit-tests/passes/fuse-relu.ir";
    let folders = ["crates/", "passes/", "dialects/", "tools/", "lit-tests/"];
    let mut violations = Vec::new();
    for page in with_extension("", "md")
        .into_iter()
        .filter(|page| !page.ends_with("CHANGELOG.md"))
    {
        let text = read(&page);
        // Every other part is between backquotes.
        for name in text.split('`').skip(1).step_by(2) {
            let is_path = folders.iter().any(|folder| name.starts_with(folder))
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
            if is_path && name != EXAMPLE && !root().join(name).exists() {
                violations.push(format!("{}: {name}", page.display()));
            }
        }
    }
    assert_none(&violations, "pages that name files which do not exist");
}
