//! Archives: what loads is written and read again without loss.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| frazil_fuzz::roundtrip::run(input));
