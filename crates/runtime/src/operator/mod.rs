//! Operators: their entries, the registry of entries, and calls.

pub mod args;
pub mod build;
pub mod call;
pub mod op;
pub mod pointwise;
mod prepared;
pub mod registry;
pub(crate) mod signature;
