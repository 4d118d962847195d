//! `jit-opt`: reads TorchScript, runs passes, writes any stage of the way to native code.

fn main() -> std::process::ExitCode {
    frazil_tools::jit_opt::main()
}
