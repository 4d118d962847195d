//! `jit-run`: runs TorchScript, natively or in the reference interpreter.

fn main() -> std::process::ExitCode {
    frazil_tools::jit_run::main()
}
