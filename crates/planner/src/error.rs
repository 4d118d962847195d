//! Errors of planning.

use frazil_runtime::memory::OutOfMemory;
use std::fmt;
use thiserror::Error;

/// An operator, or a use of one, that cannot be compiled, with its location in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The operator's name, such as `aten::nonzero`.
    pub operator: String,
    /// The reason, with the expected condition.
    pub reason: String,
    /// `file:line:column` of the Python source, if known.
    pub source: Option<String>,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operator, self.reason)?;
        match &self.source {
            Some(at) => write!(f, " (at {at})"),
            None => Ok(()),
        }
    }
}

/// Error of lowering a graph to a plan.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum LowerError {
    /// The inputs given do not match the graph's.
    #[error("the graph takes {expected} inputs, {given} were described")]
    InputCount {
        /// Number of inputs of the graph.
        expected: usize,
        /// Number of described inputs.
        given: usize,
    },
    /// All operators of the graph that cannot be compiled.
    #[error("these operators cannot be compiled:{}", list(.0))]
    Unsupported(Vec<Unsupported>),
    /// The program raises an exception on these input shapes, whatever the data.
    #[error("the program raises an exception on these shapes: {message}")]
    Raises {
        /// The exception's text.
        message: String,
    },
    /// Loops of the program have too many iterations to be unrolled.
    #[error("the program takes more than {steps} steps on these shapes; its loops are unrolled")]
    TooLong {
        /// The maximum number of steps.
        steps: usize,
    },
    /// A result of the graph is not a tensor, or a tuple or list of tensors.
    #[error("result {index} of the graph is not a tensor")]
    Result {
        /// Index of the result.
        index: usize,
    },
    /// The control flow depends on elements that the program computes; [`crate::specialise::segments`] compiles the part before.
    #[error("the control flow depends on the result of {operator}")]
    Waits {
        /// The operator whose result depends on elements.
        operator: String,
    },
    /// A tensor is too large to address.
    #[error("a tensor of sizes {sizes:?} is too large")]
    TooLarge {
        /// The sizes of the tensor.
        sizes: Vec<i64>,
    },
    /// The system refused memory for constants.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A limit was exceeded meanwhile, or the work was interrupted.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
    /// A tensor program is inconsistent. A bug of the operator's entry.
    #[error("malformed tensor program: {0}")]
    Malformed(String),
}

fn list(all: &[Unsupported]) -> String {
    all.iter().map(|u| format!("\n  {u}")).collect()
}
