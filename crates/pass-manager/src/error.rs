//! The error of a pipeline.

use crate::ir::Ir;
use frazil_limits::Exceeded;
use std::error::Error;
use std::fmt;

/// The reason why a pipeline stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum PassError<I: Ir> {
    /// The pass needs a module and ran on a graph.
    NeedsModule,
    /// A pass left an invalid graph, which is a bug of the pass.
    Verify {
        /// The function; empty for a bare graph.
        function: String,
        /// The errors.
        source: I::VerifyError,
    },
    /// The pass panicked, which is a bug of the pass.
    Panicked(String),
    /// The input is invalid.
    Input(Box<PassError<I>>),
    /// A pass exceeded a limit: see [`PassManager::limits`](crate::PassManager::limits).
    Exceeded(Exceeded),
    /// The pass does not support the graph.
    Unsupported(String),
    /// An error that is specific to the IR.
    Ir(I::Error),
    /// An error within a pass of a pipeline.
    In {
        /// The pass, as named in the pipeline.
        pass: String,
        /// The reason.
        source: Box<PassError<I>>,
    },
}

impl<I: Ir> fmt::Display for PassError<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PassError::NeedsModule => f.write_str("the pass works on modules, and this is a graph without one"),
            PassError::Verify { function, source } => {
                let function = if function.is_empty() {
                    "(without a name)"
                } else {
                    function
                };
                write!(f, "in function {function}: {source}")
            }
            PassError::Panicked(message) => write!(f, "the pass panicked: {message}"),
            PassError::Input(error) => write!(f, "the input is not valid: {error}"),
            PassError::Exceeded(exceeded) => fmt::Display::fmt(exceeded, f),
            PassError::Unsupported(reason) => f.write_str(reason),
            PassError::Ir(error) => fmt::Display::fmt(error, f),
            PassError::In { pass, source } => write!(f, "pass `{pass}` failed: {source}"),
        }
    }
}

// Not derived, since `thiserror` would require of the boxed errors that this very implementation exists.
impl<I: Ir> Error for PassError<I> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            PassError::Verify { source, .. } => Some(source),
            PassError::In { source, .. } => Some(&**source),
            // Their messages are those of the inner errors.
            PassError::Exceeded(exceeded) => exceeded.source(),
            PassError::Ir(error) => error.source(),
            PassError::NeedsModule | PassError::Panicked(_) | PassError::Input(_) | PassError::Unsupported(_) => None,
        }
    }
}

impl<I: Ir> From<Exceeded> for PassError<I> {
    fn from(exceeded: Exceeded) -> PassError<I> {
        PassError::Exceeded(exceeded)
    }
}

impl<I: Ir> PassError<I> {
    /// Returns the error without the names of the passes around it.
    pub fn root(&self) -> &PassError<I> {
        let mut error = self;
        while let PassError::In { source, .. } = error {
            error = source;
        }
        error
    }

    /// Adds the name of the function whose graph the passes ran on, which they do not know if they only receive the graph.
    #[must_use]
    pub fn in_function(mut self, name: &str) -> PassError<I> {
        let mut error = &mut self;
        while let PassError::In { source, .. } | PassError::Input(source) = error {
            error = source;
        }
        if let PassError::Verify { function, .. } = error
            && function.is_empty()
        {
            name.clone_into(function);
        }
        self
    }

    /// Returns [`PassError::root`] by value.
    pub fn into_root(mut self) -> PassError<I> {
        while let PassError::In { source, .. } = self {
            self = *source;
        }
        self
    }
}
