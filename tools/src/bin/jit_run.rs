//! `jit-run`: runs TorchScript, natively or in the reference interpreter.

fn main() {
    frazil_tools::leave(frazil_tools::jit_run::main())
}
