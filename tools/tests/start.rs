//! What a process needs that finds its code kept: little memory, as it touches nothing of the compiler.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

/// Peak memory in megabytes of a process that measures the fixture, and what it tells of its code.
fn measure(cache: &Path) -> (f64, String) {
    let model = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/fixtures/models/residual_cnn/model.pt"
    );
    let output = Command::new(env!("CARGO_BIN_EXE_jit-run"))
        .args([model, "--input", "ones:1x3x32x32", "--bench", "--json", "--timing"])
        .arg(format!("--cache-dir={}", cache.display()))
        .output()
        .unwrap();
    let (out, notes) = (output.stdout, output.stderr);
    let out = String::from_utf8(out).unwrap();
    let json: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    (json["peak_rss_mb"].as_f64().unwrap(), String::from_utf8(notes).unwrap())
}

/// The model has a quarter of a megabyte of weights.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn kept_code_needs_no_compiler() {
    let folder = tempfile::tempdir().unwrap();
    let (compiling, notes) = measure(folder.path());
    assert!(notes.contains("compiled in"), "{notes}");
    let (peak, notes) = measure(folder.path());
    assert!(notes.contains("found in"), "{notes}");
    assert!(
        peak < 24.0 && peak < compiling / 2.0,
        "{peak} MB of {compiling} MB with the compiler"
    );
}
