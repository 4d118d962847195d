//! Text of the tensor IR: what is read prints and reads back as the same, and passes leave it valid.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &str| frazil_fuzz::tensors::run(input));
