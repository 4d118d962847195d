//! TorchScript source: any text is functions that verify, or an error.

use frazil_torchscript::{LoadOptions, compile_source};

/// Compiles `text`.
///
/// # Panics
/// When what was compiled does not verify.
pub fn run(text: &str) {
    let (ctx, catalogue) = super::catalogue();
    match compile_source("input.py", text, &LoadOptions::new(&ctx, &catalogue)) {
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
