//! `docs/build-a-compiler.md` shows the code of `tests/embed`.

use frazil_recorded::workspace::root;
use frazil_tests::pages::blocks_of;

#[test]
fn the_page_shows_the_code_of_the_embedded_compiler() {
    let read = |name: &str| std::fs::read_to_string(root().join("tests/embed/src").join(name)).expect("a source file");
    let code = read("main.rs") + &read("dialect.rs");
    let blocks = blocks_of("docs/build-a-compiler.md", "rust");
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        assert!(code.contains(&block), "the page shows something else:\n{block}");
    }
}
