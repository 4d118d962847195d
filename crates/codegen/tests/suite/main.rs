//! Tests of code generation: kernels, lowering, libraries. One binary, since each one links everything that it tests.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod added_family;
mod common;
mod conv;
mod functions;
mod gemm;
mod image_sizes;
mod indirect;
mod library;
mod loops;
mod lowering;
mod preparation;
mod processes;
mod simplifying;
mod sizes;
mod specialise;
mod spills;
mod targets;
mod windows;
