//! The interpreter: any program returns or raises.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| frazil_fuzz::interp::run(input));
