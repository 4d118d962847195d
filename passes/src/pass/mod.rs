//! Passes: their traits, the context in which they run, and errors.

mod context;

use crate::freeze::error::FreezeError;
use crate::inline::error::InlineError;
use frazil_ir::verify::VerifyError;
use frazil_ir::{Graph, Module};
use frazil_limits::{Exceeded, Phase};

pub(crate) use context::CachedAliasDb;
pub use context::{Fuel, LastRewrite, PassContext};

/// A pass over one graph.
pub trait GraphPass: Send + Sync {
    /// Rewrites `graph`, which is valid before and after.
    ///
    /// # Errors
    /// If the pass fails; the graph may then be partially rewritten.
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError>;
}

/// A pass over a module.
pub trait ModulePass: Send + Sync {
    /// Rewrites `module`.
    ///
    /// # Errors
    /// If the pass fails; the module may then be partially rewritten.
    fn run(&self, module: &mut Module, cx: &mut PassContext<'_>) -> Result<(), PassError>;

    /// Runs the pass on a graph without a module. By default, this is an error.
    ///
    /// # Errors
    /// If the pass needs a module.
    fn run_on_graph(&self, _graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
        Err(PassError::NeedsModule)
    }

    /// Returns whether the pass reads values of attributes, so that objects with a pending state ([`Module::states`]) should be restored first.
    fn reads_attributes(&self) -> bool {
        false
    }

    /// Returns the phase whose time limit applies to the pass.
    fn phase(&self) -> Phase {
        Phase::Pass
    }
}

/// A pass over graphs or over modules.
pub enum AnyPass {
    /// A pass over one graph.
    Graph(Box<dyn GraphPass>),
    /// A pass over a module.
    Module(Box<dyn ModulePass>),
}

impl AnyPass {
    /// Wraps a pass over graphs.
    pub fn graph(pass: impl GraphPass + 'static) -> AnyPass {
        AnyPass::Graph(Box::new(pass))
    }

    /// Wraps a pass over modules.
    pub fn module(pass: impl ModulePass + 'static) -> AnyPass {
        AnyPass::Module(Box::new(pass))
    }
}

/// The reason why a pipeline stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// The pass needs a module, but ran on a graph.
    #[error("the pass works on modules, and this is a graph without one")]
    NeedsModule,
    /// A pass produced an invalid graph, which is a bug of the pass.
    #[error("in function {}: {source}", if function.is_empty() { "(without a name)" } else { function })]
    Verify {
        /// The name of the function; empty for a bare graph.
        function: String,
        /// The errors that the verifier reports.
        #[source]
        source: VerifyError,
    },
    /// The pass panicked, which is a bug of the pass.
    #[error("the pass panicked: {0}")]
    Panicked(String),
    /// The input is invalid.
    #[error("the input is not valid: {0}")]
    Input(Box<PassError>),
    /// A pass exceeded one of its limits: see [`PassManager::limits`].
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// The pass does not support the graph.
    #[error("{0}")]
    Unsupported(String),
    /// Inlining failed: see [`InlineError`].
    #[error(transparent)]
    Inline(#[from] InlineError),
    /// Freezing failed: see [`FreezeError`](crate::FreezeError).
    #[error(transparent)]
    Freeze(#[from] FreezeError),
    /// An error of a pass, with the name of the pass.
    #[error("pass `{pass}` failed: {source}")]
    In {
        /// The name of the pass in the pipeline.
        pass: String,
        /// The error of the pass.
        #[source]
        source: Box<PassError>,
    },
}

impl PassError {
    /// Returns the error without the names of the enclosing passes.
    pub fn root(&self) -> &PassError {
        let mut error = self;
        while let PassError::In { source, .. } = error {
            error = source;
        }
        error
    }

    /// Adds the name of the function on whose graph the passes ran, which passes on a single graph do not know.
    #[must_use]
    pub fn in_function(mut self, name: &str) -> PassError {
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

    /// Returns the error without the names of the enclosing passes, as [`PassError::root`] does.
    pub fn into_root(mut self) -> PassError {
        while let PassError::In { source, .. } = self {
            self = *source;
        }
        self
    }
}
