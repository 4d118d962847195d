//! How the tools are linked: so that a process that compiles nothing starts quickly, and touches little of the compiler that it carries.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=deferred.ld");
    let target = |key: &str| std::env::var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    if target("OS") != "linux" {
        return;
    }
    // At a fixed address: LLVM, which is linked in, has hundreds of thousands of addresses to mend otherwise, which took longer at each start
    // than everything else before the model is read.
    println!("cargo::rustc-link-arg-bins=-no-pie");
    if target("ARCH") == "x86_64" {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deferred.ld");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
    link_statically(&["libstdc++.a", "libz.a", "libzstd.a", "libffi.a"]);
}

/// Lets the linker find these libraries, where the system has them, before the shared ones of the same names: the loader need not look for them,
/// and addresses that LLVM takes of the C++ library's tables are known.
fn link_statically(libraries: &[&str]) {
    let Some(folder) = std::env::var_os("OUT_DIR").map(|out| PathBuf::from(out).join("static")) else {
        return;
    };
    if std::fs::create_dir_all(&folder).is_err() {
        return;
    }
    for library in libraries {
        let found = Command::new("cc").arg(format!("-print-file-name={library}")).output();
        let path = found.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
        // What the compiler does not know it gives back as it was given.
        if let Ok(path) = path
            && Path::new(&path).is_absolute()
        {
            let _ = std::fs::copy(path, folder.join(library));
        }
    }
    println!("cargo::rustc-link-search=native={}", folder.display());
}
