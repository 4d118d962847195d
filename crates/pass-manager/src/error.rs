//! The error of passes and pipelines.

use crate::ir::Ir;
use frazil_limits::Exceeded;
use std::error::Error;
use std::fmt;

/// The reason why a pipeline stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum PassError<I: Ir> {
    /// A pass over modules was run on a graph that belongs to no module.
    NeedsModule,
    /// Verification of a graph failed. After a pass, this is a bug of the pass; within [`PassError::Input`], the input was invalid before the first pass.
    Verify {
        /// The qualified name of the function; empty for a graph that belongs to no module.
        function: String,
        /// The error of the verifier.
        source: I::VerifyError,
    },
    /// The pass panicked, which is a bug of the pass.
    Panicked(String),
    /// The module or graph was invalid before the first pass.
    Input(Box<PassError<I>>),
    /// A pass exceeded a limit; see [`PassManager::limits`](crate::PassManager::limits).
    Exceeded(Exceeded),
    /// The pass does not support the graph.
    Unsupported(String),
    /// An error that is specific to the IR.
    Ir(I::Error),
    /// A pass of a pipeline failed.
    In {
        /// The pass and its options, as in the text of the pipeline.
        pass: String,
        /// The error of the pass.
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

// `thiserror` cannot derive this: for the boxed `source`, it would require the implementation that it derives.
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
    /// Returns the innermost error, without the [`PassError::In`] around it.
    pub fn root(&self) -> &PassError<I> {
        let mut error = self;
        while let PassError::In { source, .. } = error {
            error = source;
        }
        error
    }

    /// Sets the name of the function in [`PassError::Verify`], if it is empty. A caller that runs a pipeline on the graph of a function by itself adds the name
    /// in this way.
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

    /// Returns the innermost error by value; see [`PassError::root`].
    pub fn into_root(mut self) -> PassError<I> {
        while let PassError::In { source, .. } = self {
            self = *source;
        }
        self
    }
}
