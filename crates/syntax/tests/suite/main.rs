//! Tests of the text form. One binary, since each one links everything that it tests.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod bounds;
mod corpus;
mod diagnostics;
mod document;
mod dot;
mod graphs;
mod lossless;
mod modules;
mod nesting;
mod properties;
mod tensors;
