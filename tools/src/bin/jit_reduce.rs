//! The `jit-reduce` program; see [`frazil_tools::jit_reduce`].

fn main() {
    frazil_tools::leave(frazil_tools::jit_reduce::main())
}
