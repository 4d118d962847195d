//! Compares the C header with the declarations. `FRAZIL_BLESS=1` writes it.

use std::path::Path;

#[test]
fn the_header_is_that_of_the_declarations() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("cbindgen.toml");
    config.header = Some(beginning(folder));
    let bindings = cbindgen::Builder::new()
        .with_crate(folder)
        .with_config(config)
        .generate();
    let mut made = Vec::new();
    bindings.expect("bindings").write(&mut made);
    let made = String::from_utf8(made).expect("text");
    let path = folder.join("include/frazil.h");
    if std::env::var_os("FRAZIL_BLESS").is_some() {
        std::fs::write(&path, &made).expect("the header can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == there,
        "include/frazil.h is out of date: FRAZIL_BLESS=1 cargo test -p frazil-capi --test header"
    );
}

/// Returns the crate's documentation as a comment.
fn beginning(folder: &Path) -> String {
    let source = std::fs::read_to_string(folder.join("src/lib.rs")).expect("src/lib.rs");
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let said: Vec<String> = lines.map(|line| format!("//{line}")).collect();
    format!("{}\n//\n// Made by cbindgen; see crates/capi.", said.join("\n"))
}
