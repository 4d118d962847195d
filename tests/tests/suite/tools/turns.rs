//! Tests `jit-run --bench --turns`, which programs use for alternating measurements.

use frazil_recorded::workspace::tool;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Returns the output of jit-run for `lines` on standard input.
fn answers(lines: &str) -> Output {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/models/residual_cnn/model.pt");
    let mut process = Command::new(tool("jit-run"))
        .args([model, "--input", "ones:1x3x32x32", "--bench", "--turns"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

#[test]
fn each_line_is_answered() {
    let output = answers("0\n0.01\n");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for line in lines {
        let of = |key: &str| line[key].as_f64().unwrap();
        assert!(
            of("min_ms") > 0.0 && of("min_ms") <= of("median_ms") && of("peak_rss_mb") > 1.0,
            "{line}"
        );
    }
    assert!(output.status.success());
}

#[test]
fn what_is_no_number_of_seconds_is_an_error() {
    for wrong in ["soon", "-1", "nan", "1e300"] {
        let output = answers(&format!("0\n{wrong}\n"));
        let (out, errors) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        assert_eq!(
            (out.lines().count(), output.status.code()),
            (1, Some(1)),
            "{out}{errors}"
        );
        assert!(
            errors.contains(&format!("expected a number of seconds, found `{wrong}`")),
            "{errors}"
        );
    }
}
