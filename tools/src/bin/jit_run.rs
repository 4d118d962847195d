//! The `jit-run` program, which is every other tool too; see [`frazil_tools::multicall`].

fn main() {
    frazil_tools::leave(frazil_tools::multicall::main("jit-run"))
}
