//! The C interface: any sequence of calls keeps its rules.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| frazil_fuzz::capi::run(input));
