//! Tests of the facade. One binary, since each one links everything that it tests.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod aliasing;
mod arguments;
mod changing_shapes;
mod checkpoints;
mod code_cache;
mod code_library;
mod common;
mod composition;
mod construct;
mod contexts;
mod conversions;
mod damaged_cache;
mod deep;
mod eager;
mod foreign;
mod forks;
mod handles;
mod interruption;
mod language;
mod layers_page;
mod layouts;
mod methods;
mod modes;
mod named_results;
mod pytorch_names;
mod random;
#[cfg(feature = "codegen")]
mod ranges;
mod refusals;
mod rolled_loops;
mod scalars;
mod script_module;
mod segments;
mod shared_cache;
mod shared_memory;
mod states;
mod submodules;
mod switches;
mod toplevel;
mod torch_pages;
mod trace;
mod truncated;
mod tuning;
mod views_in_place;
mod warnings;
