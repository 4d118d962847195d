//! Tensors, values, operator entries and the reference interpreter.
//!
//! The modules in the order of their dependencies; each uses only those above it:
//!
//! | module | contents |
//! | --- | --- |
//! | [`memory`] | allocation that fails with an error |
//! | `simd`, [`threads`] | vector registers and threads for large loops |
//! | [`error`] | all errors |
//! | [`scalar`] | Python numbers, type promotion |
//! | [`shape`] | sizes and strides |
//! | [`program`] | tensor programs as data: expressions, loop nests, views, gathers |
//! | [`tensor`] | storages, strided tensors, access to elements |
//! | [`value`] | values of running programs; their conversion from and to constants, and to text |
//! | [`eval`] | evaluation of programs on tensors |
//! | [`operator`] | entries of operators, the registry, calls |
//! | [`interp`] | the interpreter of graphs |
#![cfg_attr(
    not(feature = "fast"),
    allow(dead_code, reason = "some accesses to elements are for fast evaluation alone")
)]

pub mod error;
pub mod eval;
pub mod interp;
pub mod memory;
pub mod operator;
pub mod program;
pub mod scalar;
pub mod shape;
mod simd;
pub mod tensor;
#[cfg(feature = "threads")]
pub mod threads;
#[cfg(not(feature = "threads"))]
#[path = "one_thread.rs"]
pub mod threads;
pub mod value;

pub use error::{OpError, TensorError};
pub use operator::entry::{self, Entry};
pub use operator::op::{Form, Operator, Semantics, Variant};
pub use operator::registry::{self, Registry};
pub use operator::signature::Signature;
pub use operator::{args, build, call, op, pointwise};
pub use program::{expr, gather, structured, sym};
pub use scalar::{Scalar, promote};
pub use shape::layout;
pub use tensor::storage::Storage;
pub use tensor::{Tensor, element, elements, lanes, marks, storage};
pub use value::instance_of::is_instance;
pub use value::{Value, export, format, import, number, python_repr};
