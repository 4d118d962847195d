//! Reasons for not compiling an operator.

use crate::error::LowerError;

/// Reason for not specialising an operator.
pub(super) enum Refusal {
    /// An error that ends the whole compilation.
    Fatal(LowerError),
    /// A reason that is added to the list of unsupported operators.
    Reason(String),
}

impl From<LowerError> for Refusal {
    fn from(e: LowerError) -> Refusal {
        Refusal::Fatal(e)
    }
}

impl From<&str> for Refusal {
    fn from(reason: &str) -> Refusal {
        Refusal::Reason(reason.to_owned())
    }
}

/// Reason for refusing computations on views with the negative bit, which may only be returned, or viewed again.
pub(super) const READS_NEGATIVES: &str = "native code does not read or write through a view of negatives";
