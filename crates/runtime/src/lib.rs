//! Tensors, values, operator entries and the reference interpreter.
#![cfg_attr(
    not(feature = "fast"),
    allow(dead_code, reason = "some accesses to elements are for fast evaluation alone")
)]

mod access;
pub mod args;
pub mod build;
pub mod call;
pub mod element;
pub mod elements;
pub mod eval;
pub mod export;
pub mod expr;
pub mod format;
pub mod gather;
mod gradients;
pub mod import;
mod instance_of;
pub mod interp;
pub mod lanes;
pub mod layout;
pub mod marks;
pub mod memory;
pub mod op;
pub mod pointwise;
mod prepared;
pub mod promote;
pub mod python_repr;
pub mod registry;
pub mod scalar;
mod signature;
mod simd;
pub mod storage;
pub mod structured;
pub mod sym;
pub mod tensor;
mod tensor_error;
#[cfg(feature = "threads")]
pub mod threads;
#[cfg(not(feature = "threads"))]
#[path = "one_thread.rs"]
pub mod threads;
pub mod value;

pub use instance_of::is_instance;
pub use op::{Form, OpError, Operator, Semantics, Variant};
pub use registry::Registry;
pub use scalar::Scalar;
pub use signature::Signature;
pub use storage::Storage;
pub use tensor::{Tensor, TensorError};
pub use value::Value;
