//! Integration tests of the tensor IR.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod extents;
mod graphs;
mod passes;
mod text;
mod verifier;
