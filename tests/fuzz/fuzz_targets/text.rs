//! Text of graphs and modules: what can be read prints to something that reads back as the same; the rest is an error that can be shown.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &str| frazil_fuzz::text::run(input));
