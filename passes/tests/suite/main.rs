//! Tests of passes and freezing. One binary, since each one links everything that it tests.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod alias_db;
mod common;
mod declarations;
mod deep_nests;
mod folding;
mod folding_properties;
mod freeze_again;
mod freeze_modules;
mod freezing;
mod freezing_random;
mod properties;
