//! Recorded cases: calls of a model with their arguments and PyTorch's results.
//!
//! Tests of all crates use this one, and `jit-run --calls` reads and writes the same files:
//!
//! - [`value`] reads and writes values as JSON, whose tensors are inline or in a `.safetensors` file ([`tensors`]).
//! - [`compare`] compares two results.
//! - [`bits`] compares two computations of one result inside of this compiler, and [`random`] makes their operands.
//! - [`case`] finds the cases below a folder.
//! - [`workspace`] locates the repository's files, the tools, and the large corpus.

pub mod bits;
pub mod case;
pub mod compare;
mod error;
pub mod random;
pub mod tensors;
pub mod value;
pub mod workspace;

pub use error::RecordedError;
