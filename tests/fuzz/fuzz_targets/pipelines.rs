//! Pipelines of passes on programs: the IR verifies after each pass.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| frazil_fuzz::pipelines::run(input));
