//! Functions that the integration tests share: running recorded cases with the tools, expected failures, and the pages of the docs.

pub mod expected_failures;
pub mod frozen;
pub mod pages;
#[cfg(feature = "codegen")]
pub mod random_graphs;
pub mod runner;
#[cfg(feature = "codegen")]
pub mod stress;
