//! Why an operator is not compiled.

use crate::error::LowerError;

/// Why an operator was not run.
pub(super) enum Refusal {
    /// The whole compilation ends.
    Fatal(LowerError),
    /// The operator goes to the list.
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

/// Why a view of negatives is only returned, or viewed again.
pub(super) const READS_NEGATIVES: &str = "native code does not read or write through a view of negatives";
