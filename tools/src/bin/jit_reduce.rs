//! The `jit-reduce` program; see [`frazil_tools::jit_reduce`].

fn main() -> std::process::ExitCode {
    frazil_tools::jit_reduce::main()
}
