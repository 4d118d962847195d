//! Runs the program in docs/library.md.
#![allow(clippy::print_stdout, reason = "the program prints")]

use std::path::Path;

include!("classify.in");

#[test]
fn the_program_of_the_page_runs() {
    let _alone = crate::alone();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("a file of the repository");
    let page = read("docs/library.md");
    let (_, rest) = page.split_once("```rust\n").expect("a program");
    let program = rest.split_once("```").expect("its end").0;
    assert_eq!(program, read("crates/frazil/tests/process/classify.in"));

    // No other test of this process uses relative paths.
    std::env::set_current_dir(root.join("tests/fixtures/models/residual_cnn")).expect("the folder of the model");
    main().expect("the program runs");
}
