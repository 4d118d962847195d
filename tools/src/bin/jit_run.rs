//! The `jit-run` program, which also contains all other tools; see [`frazil_tools::multicall`].

fn main() {
    frazil_tools::leave(frazil_tools::multicall::main("jit-run"))
}
