//! `jit-opt`, `jit-run` and `jit-reduce` in one program; see [`frazil_tools::multicall`].

fn main() {
    frazil_tools::leave(frazil_tools::multicall::main(env!("CARGO_BIN_NAME")))
}
