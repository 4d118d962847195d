//! Compiles and runs models from many threads at once and checks each result:
//!
//! ```text
//! cargo run --release --example stress -- --seconds 60 [--threads 8] [--seed 1] [--models FOLDER]...
//! ```
//!
//! A folder holds a folder for each model with `model.pt`, `case.json` and `tensors.safetensors`; without one the repository's fixtures are taken. Exit status
//! is 1 when a result was wrong.

use clap::Parser;
use frazil_tests::stress::{Options, run};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

#[derive(Parser)]
struct Arguments {
    /// How long threads begin something new
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    #[arg(long, default_value_t = 8)]
    threads: usize,
    /// Where the order of things starts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A folder of models with recorded calls
    #[arg(long)]
    models: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models");
    let options = Options {
        models: if arguments.models.is_empty() {
            vec![fixtures]
        } else {
            arguments.models
        },
        time: Duration::from_secs(arguments.seconds),
        threads: arguments.threads,
        seed: arguments.seed,
    };
    match run(&options) {
        Ok(report) => {
            for (what, rounds) in &report.rounds {
                println!("{what}: {rounds}");
            }
            println!("{} results compared", report.results);
            if let Some(failure) = report.failure {
                eprintln!("stress: {failure}");
                return ExitCode::FAILURE;
            }
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("stress: {e}");
            ExitCode::FAILURE
        }
    }
}
