//! `jit-opt`: reads TorchScript, runs passes, writes any stage of the way to native code.

fn main() {
    frazil_tools::leave(frazil_tools::jit_opt::main())
}
