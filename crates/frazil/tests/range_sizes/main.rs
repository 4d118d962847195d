//! Libraries for large ranges of sizes. These tests take minutes in the interpreter, so `cargo test` runs them only if asked to: CONTRIBUTING.md has the command.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "../suite/ranges/check.rs"]
mod check;

use check::{ENCODER, compare_some, range};
use frazil::SizeRange;

/// Batches of 1 to 8 and lengths of 1 to 512.
fn many_batches_and_lengths() -> [SizeRange; 2] {
    [range("B", 1, 8), range("N", 1, 512)]
}

#[test]
fn all_batches_and_lengths_of_a_small_encoder() {
    let source = ENCODER.replace("Layer(16, 2)", "Layer(32, 2)");
    let shapes: [&[&str]; 2] = [&["B", "N", "32"], &["B", "N"]];
    compare_some(&source, &shapes, &many_batches_and_lengths(), usize::MAX);
}

#[test]
fn a_thousand_batches_and_lengths_of_an_encoder() {
    let source = ENCODER.replace("Layer(16, 2)", "Layer(256, 4)");
    compare_some(
        &source,
        &[&["B", "N", "256"], &["B", "N"]],
        &many_batches_and_lengths(),
        1000,
    );
}
