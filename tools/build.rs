//! Links the tools at a fixed address: LLVM, which is linked in, has hundreds of thousands of addresses to mend otherwise, which took
//! longer at each start than everything else before the model is read.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
