//! Comparison of the cost model's choices with measurements.

use super::measure::{Trial, forms};
use crate::backend::CompileError;
use crate::options::BackendOptions;
use frazil_planner::plan::Plan;
use frazil_planner::plan::listing::kernel_line;
use frazil_planner::tune::measured_kernel;
use std::collections::BTreeSet;
use std::time::Duration;

/// Rounds of measurements of all variants of a kernel. Variants alternate, so that a disturbance of the machine affects
/// all of them.
const ROUNDS: usize = 5;
/// Time of a variant in a round.
const TIME: Duration = Duration::from_millis(8);

/// A measured variant of a kernel.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its algorithm, tile and tasks.
    pub description: String,
    /// Seconds of a call; infinite if it cannot be measured.
    pub seconds: f64,
}

/// The variants of one kernel that selection considers, and their times.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The kernel's family and sizes.
    pub kernel: String,
    /// The variant that the cost model chooses.
    pub chosen: Variant,
    /// The variants that the cost model does not choose.
    pub others: Vec<Variant>,
}

impl Comparison {
    /// Returns the fastest variant.
    pub fn best(&self) -> &Variant {
        let variants = [&self.chosen].into_iter().chain(&self.others);
        variants
            .min_by(|a, b| a.seconds.total_cmp(&b.seconds))
            .unwrap_or(&self.chosen)
    }

    /// Returns the time of the chosen variant divided by that of the fastest: at least 1.
    pub fn ratio(&self) -> f64 {
        self.chosen.seconds / self.best().seconds
    }
}

/// Comparisons for several kernels, one for each distinct kernel.
#[derive(Clone, Debug, Default)]
pub struct Comparisons {
    known: BTreeSet<String>,
    rows: Vec<Comparison>,
}

impl Comparisons {
    /// Measures the kernels of `plan` that have variants and are not measured yet, on this machine.
    ///
    /// # Errors
    /// If a kernel cannot be compiled.
    pub fn measure(&mut self, plan: &Plan, options: &BackendOptions) -> Result<(), CompileError> {
        for spec in &plan.kernels {
            let Some((bare, key)) = measured_kernel(&**spec, &options.target, options.threads) else {
                continue;
            };
            if !self.known.insert(key) {
                continue;
            }
            let mut trials = Vec::new();
            for variant in forms(&bare, options.target.machine) {
                frazil_limits::check()?;
                let description = variant.variants().map_or_else(String::new, |v| v.variant());
                trials.push((description, Trial::new(&variant, options)?, f64::INFINITY));
            }
            for _ in 0..ROUNDS {
                for (_, trial, seconds) in &mut trials {
                    if let Some(trial) = trial {
                        *seconds = seconds.min(trial.seconds(TIME));
                    }
                }
            }
            let mut variants = trials
                .into_iter()
                .map(|(description, _, seconds)| Variant { description, seconds });
            if let Some(chosen) = variants.next().filter(|v| v.seconds.is_finite()) {
                let line = kernel_line(&bare);
                self.rows.push(Comparison {
                    kernel: line.split(", tile ").next().unwrap_or_default().to_owned(),
                    chosen,
                    others: variants.collect(),
                });
            }
        }
        Ok(())
    }

    /// Returns the comparisons, in the order of measurement.
    pub fn rows(&self) -> &[Comparison] {
        &self.rows
    }

    /// Returns the number of kernels whose chosen variant takes more than `ratio` times as long as the fastest.
    pub fn slower_than(&self, ratio: f64) -> usize {
        self.rows.iter().filter(|r| r.ratio() > ratio).count()
    }
}
