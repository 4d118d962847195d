//! jit_opt

fn main() {}
