//! Tensors, values, operator entries and the reference interpreter.

mod access;
pub mod element;
pub mod eval;
pub mod expr;
pub mod lanes;
pub mod layout;
pub mod scalar;
pub mod storage;
pub mod structured;
pub mod tensor;

pub use scalar::Scalar;
pub use storage::Storage;
pub use tensor::{Tensor, TensorError};
