//! Keeps the library in memory once it is loaded: its threads wait for work, and handlers of signals and forks are installed, after all handles are
//! freed. Unloading it would remove their code. Loading it again gives the same library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
