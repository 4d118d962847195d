//! Linker options of the tools: a process that compiles nothing starts quickly, and touches little of the linked compiler.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=deferred.ld");
    let target = |key: &str| std::env::var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    if target("OS") != "linux" {
        return;
    }
    // At a fixed address: LLVM, which is linked in, otherwise needs hundreds of thousands of relocations, which took longer at each start
    // than everything else before the model is read.
    println!("cargo::rustc-link-arg-bins=-no-pie");
    if target("ARCH") == "x86_64" {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deferred.ld");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
}
