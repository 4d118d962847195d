//! What the integration tests share: running recorded cases through the tools, expected failures, and the pages of the docs.

pub mod expected_failures;
pub mod frozen;
pub mod pages;
pub mod runner;
#[cfg(feature = "codegen")]
pub mod stress;
