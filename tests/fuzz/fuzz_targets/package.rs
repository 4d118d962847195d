//! Compiled methods in cache folders and tuning files: any bytes are read, or are not there.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| frazil_fuzz::package::run(input));
