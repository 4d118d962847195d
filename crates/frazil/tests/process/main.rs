//! Tests that measure or change their process: its memory, its threads, its current folder.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
#![cfg(all(feature = "codegen", target_os = "linux"))]

mod library_page;
mod many_compilations;
mod status;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tests in this process run one at a time, since they measure the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
