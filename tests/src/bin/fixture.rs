//! Reads recorded cases for a shell script, `tools/demo.sh`.
//!
//! ```text
//! fixture compare CASE_FOLDER OUT_FOLDER   compare what `jit-run --out OUT_FOLDER` wrote with what PyTorch computed
//! fixture raw CASE_FOLDER KEY FILE         write a tensor's elements, little-endian in row-major order, to a file
//! ```

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use frazil_recorded::case;
use frazil_recorded::compare::{largest_difference, outcomes};
use frazil_recorded::tensors::Tensors;
use frazil_recorded::value::Outcome;
use frazil_tests::runner::results;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["compare", case, out] => compare(Path::new(case), Path::new(out)),
        ["raw", case, key, file] => raw(Path::new(case), key, Path::new(file)),
        _ => Err("usage: fixture compare CASE_FOLDER OUT_FOLDER | fixture raw CASE_FOLDER KEY FILE".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("fixture: {message}");
            ExitCode::FAILURE
        }
    }
}

fn compare(case: &Path, out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let case = case::model(case.display().to_string(), case.to_path_buf())?;
    let tolerance = case.tolerance()?;
    let (expected, results) = (case.expected()?, results(out)?);
    if expected.len() != results.len() {
        return Err(format!("{} results of {} calls", results.len(), expected.len()).into());
    }
    for (call, (want, got)) in expected.iter().zip(&results).enumerate() {
        outcomes(want, got, tolerance).map_err(|mismatch| format!("call {call}: {mismatch}"))?;
        if let (Outcome::Value(want), Outcome::Value(got)) = (want, got) {
            println!(
                "call {call} agrees with PyTorch; largest difference {:.1e}",
                largest_difference(want, got)
            );
        } else {
            println!("call {call} raises, as in PyTorch");
        }
    }
    Ok(())
}

fn raw(case: &Path, key: &str, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let tensor = Tensors::open(&case.join("tensors.safetensors"))?.get(key)?;
    Ok(fs::write(file, tensor.to_bytes()?)?)
}
