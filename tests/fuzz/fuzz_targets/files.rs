//! Files beside models: any bytes are read or refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| frazil_fuzz::files::run(input));
