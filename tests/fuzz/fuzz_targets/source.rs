//! TorchScript source: any text is functions that verify, or an error.
#![no_main]

use frazil_torchscript::{LoadOptions, compile_source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (ctx, catalogue) = frazil_fuzz::catalogue();
    let options = LoadOptions {
        ctx: &ctx,
        catalogue: &catalogue,
    };
    match compile_source("input.py", text, &options) {
        Ok(unit) => {
            for (_, function) in unit.functions() {
                function.graph.verify(Some(&catalogue)).expect("what the front end emits is well formed");
            }
        }
        Err(error) => drop(error.to_string()),
    }
});
