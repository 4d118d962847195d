//! The errors of this crate, from tensors to whole programs.

mod exec;

pub use exec::{ErrorKind, ExecError, MissingOperator};

use crate::memory::OutOfMemory;
use frazil_ir::DType;
use thiserror::Error;

/// Why a tensor cannot be made or viewed so.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum TensorError {
    /// The window leaves the storage, a size is negative, or the arithmetic overflows.
    #[error(
        "sizes {sizes:?}, strides {strides:?} and offset {offset} of {dtype} do not fit a storage of {available} bytes"
    )]
    OutOfStorage {
        /// The sizes that were asked for.
        sizes: Vec<i64>,
        /// The strides that were asked for.
        strides: Vec<i64>,
        /// The offset of the first element.
        offset: i64,
        /// The element type.
        dtype: DType,
        /// Bytes of the storage.
        available: usize,
    },
    /// The number of elements does not fit an integer.
    #[error("numel: integer multiplication overflow")]
    TooManyElements,
    /// The number of bytes does not fit an integer.
    #[error("Storage size calculation overflowed with sizes={0:?}")]
    TooManyBytes(Vec<i64>),
    /// A number is outside of the range of the type that it is converted to.
    #[error("value cannot be converted to type {0} without overflow")]
    Overflow(&'static str),
    /// A size is negative.
    #[error("Trying to create tensor with negative dimension {0}: {1:?}")]
    NegativeSize(i64, Vec<i64>),
    /// The allocator refused.
    #[error(transparent)]
    OutOfMemory(OutOfMemory),
    /// The tensor would have more elements than the current thread's budget allows.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
    /// As many elements or bytes as the sizes do not ask for, or a position outside of them.
    #[error("elements or positions do not fit a tensor of sizes {0:?}")]
    Mismatch(Vec<i64>),
    /// A sparse tensor, which archives can hold and programs here cannot use.
    #[error("sparse tensors ({0}) cannot be computed with")]
    Sparse(&'static str),
    /// A tensor of the device `meta`.
    #[error("Cannot copy out of meta tensor; no data!")]
    Meta,
    /// Shapes do not broadcast.
    #[error("a tensor of sizes {from:?} does not expand to {to:?}")]
    Expand {
        /// Sizes of the source.
        from: Vec<i64>,
        /// Sizes asked for.
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
    /// A scalar was asked of a tensor that has not exactly one element.
    #[error("a Tensor with {0} elements cannot be converted to Scalar")]
    NotOneElement(i64),
}

impl From<OutOfMemory> for TensorError {
    fn from(error: OutOfMemory) -> TensorError {
        TensorError::OutOfMemory(error)
    }
}

/// Why an evaluation failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvalError {
    /// An integer was divided by zero.
    #[error("ZeroDivisionError")]
    DivisionByZero,
    /// The expression applies a function to a dtype on which it is not defined.
    #[error("{0} is not defined on this dtype")]
    Undefined(String),
    /// An index names no element.
    #[error("{0}")]
    OutOfRange(String),
    /// The program does not fit its arguments, or is inconsistent. A bug of the entry that made it.
    #[error("malformed tensor program: {0}")]
    Malformed(&'static str),
    /// A result could not be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// Why an operator gave no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpError {
    /// An argument is not what the operator takes.
    #[error("{operator}: argument '{name}' has to be {expected}")]
    Argument {
        /// The operator with its overload.
        operator: String,
        /// The argument.
        name: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// PyTorch raises an exception here too; the text says why.
    #[error("{0}")]
    Raised(String),
    /// PyTorch computes this and we do not (yet).
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The evaluation failed.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// A tensor could not be made or viewed.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl From<OutOfMemory> for OpError {
    fn from(error: OutOfMemory) -> OpError {
        OpError::Tensor(error.into())
    }
}

impl OpError {
    /// An exception with this text.
    pub fn raised(text: impl Into<String>) -> OpError {
        OpError::Raised(text.into())
    }

    /// True when the operator is missing something that PyTorch has, as opposed to raising as PyTorch does.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            OpError::Unsupported(_) | OpError::Eval(EvalError::Malformed(_) | EvalError::Undefined(_))
        )
    }
}
