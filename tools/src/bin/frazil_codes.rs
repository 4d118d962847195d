//! The `frazil-codes` program; see [`frazil_tools::codes`].

fn main() {
    frazil_tools::leave(frazil_tools::codes::main())
}
