//! TorchScript source: any text is functions that verify, or an error.

use super::memory;
use frazil_torchscript::{LoadOptions, compile_source};

/// Compiles `text`.
///
/// # Panics
/// When what was compiled does not verify, or reading takes more memory than it may.
pub fn run(text: &str) {
    let (ctx, catalogue) = super::catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    let budget = memory::reader_budget(text.len());
    match memory::within(budget, || compile_source("input.py", text, &options)) {
        Ok(unit) => {
            for (_, function) in unit.functions() {
                function
                    .graph
                    .verify(Some(&catalogue))
                    .expect("what the front end emits is well formed");
            }
        }
        Err(error) => drop(error.to_string()),
    }
}
