//! Tests of archives and the language. One binary, since each one links everything that it tests.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod archive;
mod bounds;
mod code;
mod common;
mod corpus;
mod language;
mod load;
mod nesting;
mod save;
