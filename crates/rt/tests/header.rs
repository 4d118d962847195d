//! Compares the C declarations of the runtime with those in Rust. `FRAZIL_BLESS=1` writes them.

use std::path::Path;

#[test]
fn the_header_is_that_of_the_declarations() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bindings = cbindgen::Builder::new()
        .with_src(folder.join("src/steps.rs"))
        .with_src(folder.join("src/standalone.rs"))
        .with_config(cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("cbindgen.toml"))
        .generate();
    let mut made = Vec::new();
    bindings.expect("bindings").write(&mut made);
    let made = String::from_utf8(made).expect("text");
    let path = folder.join("include/frazil_rt.h");
    if std::env::var_os("FRAZIL_BLESS").is_some() {
        std::fs::write(&path, &made).expect("the header can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == there,
        "include/frazil_rt.h is out of date: FRAZIL_BLESS=1 cargo test -p frazil-rt --test header"
    );
}
