//! The errors of this crate, from tensors to whole programs.

mod exec;

pub use exec::{ErrorKind, ExecError, MissingOperator};

use crate::memory::OutOfMemory;
use frazil_ir::DType;
use thiserror::Error;

/// The reason why a tensor or view cannot be created.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum TensorError {
    /// The elements are not within the storage, a size is negative, or the arithmetic overflows.
    #[error(
        "sizes {sizes:?}, strides {strides:?} and offset {offset} of {dtype} do not fit a storage of {available} bytes"
    )]
    OutOfStorage {
        /// The requested sizes, in elements.
        sizes: Vec<i64>,
        /// The requested strides, in elements.
        strides: Vec<i64>,
        /// The offset of the first element, in elements.
        offset: i64,
        /// The element type.
        dtype: DType,
        /// Size of the storage in bytes.
        available: usize,
    },
    /// The number of elements overflows an integer.
    #[error("numel: integer multiplication overflow")]
    TooManyElements,
    /// The number of bytes overflows an integer.
    #[error("Storage size calculation overflowed with sizes={0:?}")]
    TooManyBytes(Vec<i64>),
    /// A number is outside of the range of the type that it is converted to.
    #[error("value cannot be converted to type {0} without overflow")]
    Overflow(&'static str),
    /// A size is negative.
    #[error("Trying to create tensor with negative dimension {0}: {1:?}")]
    NegativeSize(i64, Vec<i64>),
    /// Memory could not be allocated.
    #[error(transparent)]
    OutOfMemory(OutOfMemory),
    /// The tensor would have more elements than the current thread's budget allows.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
    /// The number of elements or bytes differs from what the sizes require, or a position is outside of the sizes.
    #[error("elements or positions do not fit a tensor of sizes {0:?}")]
    Mismatch(Vec<i64>),
    /// The tensor is sparse. Archives may contain sparse tensors, but no operator here supports them.
    #[error("sparse tensors ({0}) cannot be computed with")]
    Sparse(&'static str),
    /// The tensor has the device `meta`, so it has no elements.
    #[error("Cannot copy out of meta tensor; no data!")]
    Meta,
    /// A tensor of sizes `from` cannot be broadcast to the sizes `to`.
    #[error("a tensor of sizes {from:?} does not expand to {to:?}")]
    Expand {
        /// Sizes of the tensor that is broadcast.
        from: Vec<i64>,
        /// Requested sizes.
        to: Vec<i64>,
    },
    /// Several elements of the written tensor share memory.
    #[error(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
    )]
    Overlap,
    /// The written tensor and an operand share some elements.
    #[error(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
    )]
    PartialOverlap,
    /// A scalar was read from a tensor that does not have exactly one element.
    #[error("a Tensor with {0} elements cannot be converted to Scalar")]
    NotOneElement(i64),
}

impl From<OutOfMemory> for TensorError {
    fn from(error: OutOfMemory) -> TensorError {
        TensorError::OutOfMemory(error)
    }
}

/// The reason why an evaluation failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvalError {
    /// An integer was divided by zero.
    #[error("ZeroDivisionError")]
    DivisionByZero,
    /// The expression applies a function to a dtype on which it is not defined.
    #[error("{0} is not defined on this dtype")]
    Undefined(String),
    /// An index is out of range.
    #[error("{0}")]
    OutOfRange(String),
    /// The tensor program is inconsistent, or does not match the shapes or dtypes of its arguments. This is a bug in the implementation of the operator.
    #[error("malformed tensor program: {0}")]
    Malformed(&'static str),
    /// A result could not be created.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// The reason why an operator returned no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpError {
    /// An argument has a type or value that the operator does not accept.
    #[error("{operator}: argument '{name}' has to be {expected}")]
    Argument {
        /// The operator with its overload.
        operator: String,
        /// The name of the argument.
        name: String,
        /// The expected type or value.
        expected: &'static str,
    },
    /// The call raises an exception, in PyTorch too. The text is the exception's message.
    #[error("{0}")]
    Raised(String),
    /// PyTorch supports these arguments; this implementation does not (yet).
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The evaluation failed.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// A tensor or view could not be created.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl From<OutOfMemory> for OpError {
    fn from(error: OutOfMemory) -> OpError {
        OpError::Tensor(error.into())
    }
}

impl OpError {
    /// Returns [`OpError::Raised`] with the message `text`.
    pub fn raised(text: impl Into<String>) -> OpError {
        OpError::Raised(text.into())
    }

    /// Returns true if PyTorch supports the call and this implementation does not; false if PyTorch raises an exception, too.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            OpError::Unsupported(_) | OpError::Eval(EvalError::Malformed(_) | EvalError::Undefined(_))
        )
    }
}
