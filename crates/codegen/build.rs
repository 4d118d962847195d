//! Checks that LLVM and MLIR 22 are installed, makes their libraries be linked statically, and compiles the runtime that is part of compiled libraries.
//! Passes the crate a hash of its sources and those of the planner. Cached objects are marked with this hash, because other sources may compile the same
//! kernel to other code.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const LLVM_MAJOR: &str = "22";

fn main() {
    println!("cargo::rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    println!("cargo::rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    check_llvm();
    link_statically(&["libstdc++.a", "libz.a", "libzstd.a", "libffi.a"]);
    if let Err(message) = compile_runtime() {
        println!("cargo::error=compiling the runtime of compiled libraries: {message}");
    }
    let mut hasher = DefaultHasher::new();
    // The planner chooses what the emitters read: tiles, tasks, parameters of machines.
    let hashed = ["src", "../planner/src"].iter().try_for_each(|sources| {
        println!("cargo::rerun-if-changed={sources}");
        hash(Path::new(sources), &mut hasher)
    });
    match hashed {
        Ok(()) => println!("cargo::rustc-env=FRAZIL_CODEGEN_SOURCES={:016x}", hasher.finish()),
        Err(e) => println!("cargo::error=reading the crate's sources: {e}"),
    }
}

/// Adds the names and contents of all files at `path` to the hash.
fn hash(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    path.hash(hasher);
    if path.is_file() {
        std::fs::read(path)?.hash(hasher);
        return Ok(());
    }
    let mut entries = std::fs::read_dir(path)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| hash(entry, hasher))
}

/// Prints a readable message if LLVM is missing, in place of the message of the binding generators.
fn check_llvm() {
    let hint = "run tools/setup.sh to install LLVM and MLIR 22";
    for variable in ["LLVM_SYS_221_PREFIX", "MLIR_SYS_220_PREFIX"] {
        let Some(prefix) = std::env::var_os(variable).map(PathBuf::from) else {
            println!("cargo::error={variable} is not set (.cargo/config.toml sets it); {hint}");
            continue;
        };
        let output = Command::new(prefix.join("bin/llvm-config")).arg("--version").output();
        let version = output
            .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
            .unwrap_or_default();
        if version.split('.').next() != Some(LLVM_MAJOR) {
            let found = if version.is_empty() { "none".to_owned() } else { version };
            println!(
                "cargo::error=LLVM {LLVM_MAJOR} is needed in {}, found {found}; {hint}",
                prefix.display()
            );
        } else if !prefix.join("include/mlir-c/IR.h").exists() {
            println!("cargo::error=MLIR's headers are not in {}; {hint}", prefix.display());
        }
    }
}

/// Compiles `crates/rt` without the standard library to `OUT_DIR/frazil_rt.o`.
fn compile_runtime() -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).map_err(|e| format!("{name}: {e}"));
    let sources = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../rt/src");
    println!("cargo::rerun-if-changed={}", sources.display());
    let object = Path::new(&variable("OUT_DIR")?).join("frazil_rt.o");
    let status = Command::new(variable("RUSTC")?)
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "--crate-name=frazil_rt_standalone",
            "--emit=obj",
        ])
        .args([
            "-Copt-level=3",
            "-Cpanic=abort",
            "-Crelocation-model=pic",
            "-Ccodegen-units=1",
            "-Cdebuginfo=0",
        ])
        .arg(format!("--target={}", variable("TARGET")?))
        .arg("-o")
        .arg(&object)
        .arg(sources.join("standalone.rs"))
        .status()
        .map_err(|e| e.to_string())?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("rustc ended with {status}"))
    }
}

/// Adds a search path with the static versions of these libraries, if the system has them, so that they are linked in place of the shared ones. Other systems
/// may lack the shared libraries, the loader need not search for them, and the addresses of the C++ library's tables that LLVM takes are link-time constants.
fn link_statically(libraries: &[&str]) {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let Some(folder) = std::env::var_os("OUT_DIR").map(|out| PathBuf::from(out).join("static")) else {
        return;
    };
    if std::fs::create_dir_all(&folder).is_err() {
        return;
    }
    for library in libraries {
        let found = Command::new("cc").arg(format!("-print-file-name={library}")).output();
        let path = found.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
        // The compiler prints the name of an unknown library unchanged.
        if let Ok(path) = path
            && Path::new(&path).is_absolute()
        {
            let _ = std::fs::copy(path, folder.join(library));
        }
    }
    println!("cargo::rustc-link-search=native={}", folder.display());
}
