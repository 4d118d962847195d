//! Runs random programs on both engines until the time is over:
//!
//! ```text
//! make fuzz-programs TIME=60
//! cargo run --example fuzz -- --seconds 60 [--seed 1]
//! ```
//!
//! Seeds start at the present time unless `--seed` names one. Where the engines disagree, the seed, the difference and a small program are printed, and exit
//! status is 1.

use clap::Parser;
use frazil_tests::random_graphs::check_seed;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

#[derive(Parser)]
struct Arguments {
    /// How long programs are begun
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The first seed
    #[arg(long)]
    seed: Option<u64>,
    /// How many programs at most
    #[arg(long)]
    count: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let first = arguments.seed.unwrap_or_else(|| now.map_or(1, |t| t.as_secs() * 1000));
    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    let (mut ran, mut natively, mut raised, mut failed) = (0, 0, 0, 0);
    let count = arguments.count.unwrap_or(u64::MAX);
    for seed in (first..).take_while(|seed| Instant::now() < end && seed - first < count) {
        match check_seed(seed) {
            Ok(result) => {
                natively += u64::from(result.natively);
                raised += u64::from(result.raised);
            }
            Err(what) => {
                println!("{what}");
                failed += 1;
            }
        }
        ran += 1;
    }
    println!(
        "seeds {first} to {}: {ran} programs, {natively} of them without the interpreter, {raised} raised, {failed} failed",
        first + ran
    );
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
