//! Measurement of latency: warm-up runs, then as many runs as fit into a given time.

use serde_json::json;
use std::time::{Duration, Instant};

/// The results of a measurement.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// One duration per run.
    pub runs: Vec<Duration>,
    /// Duration of compilation, from the module in memory to executable code.
    pub compile: Duration,
}

/// Number of unmeasured runs before the measurement.
const WARM_UP: usize = 5;
/// Minimum number of measured runs. Runs are also repeated for at least [`LEAST_TIME`].
const LEAST_RUNS: usize = 15;
/// Minimum duration of a measurement. At least [`LEAST_RUNS`] runs are measured.
const LEAST_TIME: Duration = Duration::from_millis(1500);
/// Maximum number of measured runs. More do not make the results more precise.
const MOST_RUNS: usize = 20_000;

/// Minimum number of measured runs each time that it is the program's turn, after one run that warms up the caches.
const LEAST_RUNS_OF_A_TURN: usize = 3;

/// Measures the duration of `run`, after warm-up runs. `compile` is stored in the result.
///
/// # Errors
/// The error of the first run that fails.
pub fn measure<E>(compile: Duration, mut run: impl FnMut() -> Result<(), E>) -> Result<Measurement, E> {
    for _ in 0..WARM_UP {
        run()?;
    }
    let runs = timed(LEAST_RUNS, LEAST_TIME, &mut run)?;
    Ok(Measurement { runs, compile })
}

/// Measures `run` for `time`, alternating with other programs.
///
/// # Errors
/// The error of the first run that fails.
pub fn measure_turn<E>(
    compile: Duration,
    time: Duration,
    mut run: impl FnMut() -> Result<(), E>,
) -> Result<Measurement, E> {
    run()?;
    let runs = timed(LEAST_RUNS_OF_A_TURN, time, &mut run)?;
    Ok(Measurement { runs, compile })
}

fn timed<E>(least: usize, time: Duration, run: &mut impl FnMut() -> Result<(), E>) -> Result<Vec<Duration>, E> {
    let mut runs = Vec::new();
    let start = Instant::now();
    while runs.len() < least || (start.elapsed() < time && runs.len() < MOST_RUNS) {
        let begin = Instant::now();
        run()?;
        runs.push(begin.elapsed());
    }
    Ok(runs)
}

impl Measurement {
    /// Returns the median duration of a run, in milliseconds.
    pub fn median_ms(&self) -> f64 {
        let mut sorted = self.runs.clone();
        sorted.sort();
        let middle = sorted.len() / 2;
        match (sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
            (Some(a), Some(b)) if sorted.len().is_multiple_of(2) => (ms(*a) + ms(*b)) / 2.0,
            (_, Some(b)) => ms(*b),
            _ => 0.0,
        }
    }

    /// Returns the duration of the fastest run, in milliseconds.
    pub fn min_ms(&self) -> f64 {
        self.runs.iter().min().map_or(0.0, |d| ms(*d))
    }

    /// Returns the measurement as one line of JSON.
    pub fn json(&self) -> String {
        json!({
            "median_ms": round(self.median_ms()),
            "min_ms": round(self.min_ms()),
            "compile_ms": round(ms(self.compile)),
            "peak_rss_mb": round(peak_rss_mb()),
        })
        .to_string()
    }

    /// Returns the measurement as a line of text.
    pub fn text(&self) -> String {
        format!(
            "median {:.3} ms, minimum {:.3} ms of {} runs; compiled in {:.0} ms; peak memory {:.0} MB",
            self.median_ms(),
            self.min_ms(),
            self.runs.len(),
            ms(self.compile),
            peak_rss_mb()
        )
    }
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

fn round(x: f64) -> f64 {
    (x * 1e4).round() / 1e4
}

/// Returns the peak memory of this process in MB; 0 if the system does not report it.
fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib: f64 = line
        .and_then(|l| l.trim().strip_suffix("kB")?.trim().parse().ok())
        .unwrap_or(0.0);
    kib / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        let of = |ms: &[u64]| Measurement {
            runs: ms.iter().map(|n| Duration::from_millis(*n)).collect(),
            compile: Duration::ZERO,
        };
        assert_eq!(of(&[9, 1, 3]).median_ms(), 3.0);
        assert_eq!(of(&[4, 1, 3, 100]).median_ms(), 3.5);
        assert_eq!(of(&[4, 1, 3]).min_ms(), 1.0);
        assert_eq!(of(&[]).median_ms(), 0.0);
    }
}
