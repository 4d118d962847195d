//! The `jit-run` program, which contains all other tools too; see [`frazil_tools::multicall`].

fn main() {
    frazil_tools::leave(frazil_tools::multicall::main("jit-run"))
}
