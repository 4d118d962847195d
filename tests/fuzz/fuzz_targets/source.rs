//! TorchScript source: any text is functions that verify, or an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &str| frazil_fuzz::source::run(input));
