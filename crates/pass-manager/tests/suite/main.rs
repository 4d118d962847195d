//! Tests of the pass manager on a tiny IR: the manager and pipelines are independent of `frazil-ir`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod manager;
mod modules;
mod numbers;
mod observation;
mod pipeline;
