//! Shared parts of the command-line tools.

pub mod output;
pub mod shape;
