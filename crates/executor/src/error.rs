//! Errors of loading compiled functions.

use crate::link::LinkError;
use frazil_runtime::memory::OutOfMemory;

/// Error of loading a compiled function.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The code could not be loaded into the process.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The package is inconsistent.
    #[error("the plan is not valid: {0}")]
    InvalidPlan(String),
    /// The system refused memory or threads.
    #[error("out of memory or threads while preparing the compiled function")]
    Resources,
    /// The system refused memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}
