//! jit_run

fn main() {}
