//! Pages of `docs` whose code is also in a test.

use frazil_recorded::workspace::root;
use std::fs;

/// Returns the code blocks of a page in the language `language`, without their fences.
///
/// # Panics
/// If there is no such page.
pub fn blocks_of(page: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).expect("a page that can be read");
    let fence = format!("```{language}\n");
    let bodies = text.split(&fence).skip(1);
    bodies
        .filter_map(|rest| rest.split("\n```").next())
        .map(str::to_owned)
        .collect()
}

/// Checks that the page has `count` blocks of Rust, and that the test `file` contains each of them literally.
///
/// # Panics
/// If it does not.
pub fn assert_shown(page: &str, file: &str, count: usize) {
    let here = fs::read_to_string(root().join(file)).expect("the test's file");
    let blocks = blocks_of(page, "rust");
    assert_eq!(blocks.len(), count, "{page}");
    for block in blocks {
        assert!(here.contains(&block), "{page} shows something else:\n{block}");
    }
}
