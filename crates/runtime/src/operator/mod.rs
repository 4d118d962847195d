//! Operators: their entries, the registry of entries, and calls.

pub mod args;
pub mod build;
pub mod call;
pub mod callback;
pub mod entry;
pub mod op;
mod out;
pub mod pointwise;
mod prepared;
pub mod registry;
pub mod semantics;
pub(crate) mod signature;
