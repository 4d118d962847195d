//! The fuzz targets (`tests/fuzz`) on the repository's own files and a few mutations of each, so that they compile, and many kinds of input
//! are checked between runs of the real fuzzer.

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Number of mutations of each file.
const MUTATIONS: u64 = 12;
/// Number of sequences of calls of the C interface.
const SEQUENCES: u64 = 200;
/// Maximum size of files in bytes; larger ones are left to the fuzzer.
const MAX_BYTES: u64 = 1 << 16;

/// Returns the files below `folder` with this extension, in order.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    fn visit(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, extension, found);
            } else if path.extension().is_some_and(|e| e == extension) && entry.metadata().unwrap().len() <= MAX_BYTES {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    visit(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder),
        extension,
        &mut found,
    );
    assert!(!found.is_empty(), "no {extension} files in {folder}");
    found.sort();
    found
}

/// Returns `bytes` with some of them changed, removed, duplicated or swapped; deterministic for a `seed`.
fn mutated(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |n: usize| {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n.max(1) as u64) as usize
    };
    let mut out = bytes.to_vec();
    for _ in 0..=below(4) {
        if out.is_empty() {
            break;
        }
        let at = below(out.len());
        let end = (at + 1 + below(40)).min(out.len());
        match below(5) {
            0 => out[at] ^= 1 << below(8),
            1 => out[at] = below(256) as u8,
            2 => drop(out.drain(at..end)),
            3 => {
                let part = out[at..end].to_vec();
                let to = below(out.len());
                out.splice(to..to, part);
            }
            _ => out.truncate(at),
        }
    }
    out
}

/// Runs `target` on the files and on their mutations.
fn run(files: Vec<PathBuf>, target: impl Fn(&[u8])) {
    for (number, path) in files.iter().enumerate() {
        let bytes = fs::read(path).unwrap();
        target(&bytes);
        for mutation in 0..MUTATIONS {
            target(&mutated(&bytes, number as u64 * MUTATIONS + mutation + 1));
        }
    }
}

#[test]
fn archives_load_or_are_refused() {
    run(files("tests/fixtures", "pt"), targets::archive::run);
}

#[test]
fn sources_compile_or_are_refused() {
    run(files("lit-tests", "py"), |bytes| {
        targets::source::run(&String::from_utf8_lossy(bytes))
    });
}

#[test]
fn texts_are_read_or_refused() {
    run(files("lit-tests", "ir"), |bytes| {
        targets::text::run(&String::from_utf8_lossy(bytes))
    });
}

#[test]
fn texts_of_tensors_are_read_or_refused() {
    run(files("lit-tests", "tensors"), |bytes| {
        targets::tensors::run(&String::from_utf8_lossy(bytes))
    });
}

/// Prepends a line of bytes that select options to a program.
fn chosen(seed: u64, bytes: &[u8]) -> Vec<u8> {
    let mut line = mutated(&[b'a'; 24], seed);
    line.retain(|b| *b != b'\n');
    [&line, &b"\n"[..], bytes].concat()
}

/// Programs as source and as text.
fn programs() -> Vec<PathBuf> {
    [files("lit-tests", "py"), files("lit-tests", "ir")].concat()
}

#[test]
fn archives_come_back_as_they_were() {
    run(files("tests/fixtures", "pt"), targets::roundtrip::run);
}

#[test]
fn pipelines_keep_programs_valid() {
    let seed = Cell::new(0);
    run(programs(), |bytes| {
        seed.set(seed.get() + 1);
        targets::pipelines::run(&chosen(seed.get(), bytes));
    });
}

#[test]
fn programs_return_or_raise() {
    let seed = Cell::new(0);
    run(programs(), |bytes| {
        seed.set(seed.get() + 1);
        targets::interp::run(&chosen(seed.get(), bytes));
    });
}

#[test]
fn files_beside_models_are_read_or_refused() {
    for (kind, extension) in [(b's', "safetensors"), (b'j', "json"), (b'c', "pt"), (b'n', "npy")] {
        run(files("tests/fixtures", extension), |bytes| {
            targets::files::run(&[&[kind], bytes].concat())
        });
    }
}

/// Compiled methods with their sections in a readable form; mutations keep checksums right.
#[test]
fn compiled_methods_are_read_or_refused() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/package");
    let files: Vec<PathBuf> = fs::read_dir(seeds)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    for path in files {
        let bytes = fs::read(&path).unwrap();
        // Otherwise LLVM's linker loads it, if it is present.
        let is_loaded = targets::package::loads(&bytes);
        assert!(is_loaded || !cfg!(target_arch = "x86_64"), "{}", path.display());
        for seed in 0..MUTATIONS * 40 {
            targets::package::run(&mutated(&bytes, seed));
        }
    }
}

#[test]
fn literals_are_values_or_refused() {
    let text = b"l[{'a': (zeros:2x3:int64, ones:2), \"b\": tensor([[1, 2], [3.5, inf]], dtype=float32)}, None, 1+2j]";
    for seed in 0..MUTATIONS * 200 {
        targets::files::run(&mutated(text, seed));
    }
}

#[test]
fn calls_of_the_c_interface_keep_its_rules() {
    for seed in 0..SEQUENCES {
        let mut random = frazil_recorded::random::Random::new(seed);
        let bytes: Vec<u8> = (0..40 + random.below(300)).map(|_| random.below(256) as u8).collect();
        targets::capi::run(&bytes);
    }
}

#[test]
fn all_functions_of_the_header_are_called() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/capi/include/frazil.h");
    let header = fs::read_to_string(header).unwrap();
    let code = header.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let declared: BTreeSet<&str> = (code.match_indices("frazil_"))
        .filter_map(|(at, _)| code[at..].split_once('(').map(|(name, _)| name))
        .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
        .collect();
    let called: BTreeSet<&str> = targets::capi::functions().collect();
    assert!(declared.len() > 100, "{declared:?}");
    assert_eq!(
        declared, called,
        "tests/fuzz/src/capi/table.rs lists the functions of frazil.h"
    );
}
