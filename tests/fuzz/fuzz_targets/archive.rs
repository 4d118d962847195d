//! Archives: any bytes are a module or an error.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| frazil_fuzz::archive::run(input));
