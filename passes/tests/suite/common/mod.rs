//! Functions that several tests use.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "no test needs all of it; test helpers may fail loudly"
)]

pub mod module;

use frazil_ir::Context;
use frazil_passes::PassRegistry;
use frazil_runtime::Registry;
use std::sync::Arc;

/// Returns the operators of both dialects.
pub fn registry() -> Arc<Registry> {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    Arc::new(registry)
}

/// A portable pseudorandom generator (xorshift*).
pub struct Dice(u64);

impl Dice {
    /// Returns a generator whose numbers depend only on the seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number from 0 to `n`, exclusive.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    /// Returns true with this probability in percent.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `items`.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Returns the number in an environment variable, by which more cases than by default can be run.
pub fn number(variable: &str, default: u64) -> u64 {
    let asked = std::env::var(variable).ok();
    asked.map_or(default, |s| s.parse().unwrap())
}

/// Passes that intentionally change results or signatures.
const NOT_FOR_RESULTS: &[&str] = &["remove-exceptions", "lower-all-tuples", "rewrite-patterns", "freeze"];

/// Returns the passes that keep results exactly, with the assumptions of PyTorch (`like-pytorch`) turned off.
pub fn exact_passes() -> Vec<String> {
    let registry = PassRegistry::standard();
    let keep = registry
        .passes()
        .map(|p| p.name)
        .filter(|n| !NOT_FOR_RESULTS.contains(n));
    keep.map(|name| match name {
        "peephole" | "constant-propagation" => format!("{name}{{like-pytorch=false}}"),
        _ => name.to_owned(),
    })
    .collect()
}
