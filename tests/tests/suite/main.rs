//! Tests over the whole repository. One binary, since each one links everything that it tests.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod add_a_pass;
mod add_an_operator;
mod archives;
mod build_a_compiler;
mod closed;
#[cfg(feature = "codegen")]
mod cmake;
#[cfg(feature = "codegen")]
mod control_flow;
mod frozen;
mod fuzz_targets;
mod module_text;
mod namespaces;
mod operators_page;
mod pages;
mod planted;
#[cfg(feature = "codegen")]
mod random_graphs;
mod rooms;
#[cfg(feature = "codegen")]
mod stress;
mod tensor_text;
mod tidy;
#[cfg(feature = "codegen")]
mod tools;
mod words;
