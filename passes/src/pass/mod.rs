//! Passes: the traits that they implement, what a run of one can use, and its errors.

mod context;

use crate::inline::InlineError;
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
    /// When the pass cannot do its work; the graph may then be half rewritten.
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError>;
}

/// A pass over a module.
pub trait ModulePass: Send + Sync {
    /// Rewrites `module`.
    ///
    /// # Errors
    /// When the pass cannot do its work; the module may then be half rewritten.
    fn run(&self, module: &mut Module, cx: &mut PassContext<'_>) -> Result<(), PassError>;

    /// What the pass does to a graph that belongs to no module. By default that is an error.
    ///
    /// # Errors
    /// When the pass needs a module.
    fn run_on_graph(&self, _graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
        Err(PassError::NeedsModule)
    }

    /// Whether the pass reads what attributes hold, so that objects which restore themselves from a state ([`Module::states`]) should have done so.
    fn reads_attributes(&self) -> bool {
        false
    }

    /// The phase whose limit of time holds for the pass.
    fn phase(&self) -> Phase {
        Phase::Pass
    }
}

/// A pass of either kind.
pub enum AnyPass {
    /// Over one graph.
    Graph(Box<dyn GraphPass>),
    /// Over a module.
    Module(Box<dyn ModulePass>),
}

impl AnyPass {
    /// A pass over graphs.
    pub fn graph(pass: impl GraphPass + 'static) -> AnyPass {
        AnyPass::Graph(Box::new(pass))
    }

    /// A pass over modules.
    pub fn module(pass: impl ModulePass + 'static) -> AnyPass {
        AnyPass::Module(Box::new(pass))
    }
}

/// Why a pipeline stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PassError {
    /// The pass needs a module and was given a graph.
    #[error("the pass works on modules, and this is a graph without one")]
    NeedsModule,
    /// A pass left a graph that is not valid; a bug of the pass.
    #[error("in function {}: {source}", if function.is_empty() { "(without a name)" } else { function })]
    Verify {
        /// Which function; empty for a bare graph.
        function: String,
        /// What is wrong.
        #[source]
        source: VerifyError,
    },
    /// The pass panicked; a bug of the pass.
    #[error("the pass panicked: {0}")]
    Panicked(String),
    /// The IR that was given is not valid.
    #[error("the input is not valid: {0}")]
    Input(Box<PassError>),
    /// A pass would need more than it may: see [`PassManager::limits`].
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// The graph is not one that the pass can do what it promises with.
    #[error("{0}")]
    Unsupported(String),
    /// See [`InlineError`].
    #[error(transparent)]
    Inline(#[from] InlineError),
    /// See [`FreezeError`](crate::FreezeError).
    #[error(transparent)]
    Freeze(#[from] crate::FreezeError),
    /// Within a pass of a pipeline.
    #[error("pass `{pass}` failed: {source}")]
    In {
        /// The pass, as the pipeline names it.
        pass: String,
        /// Why.
        #[source]
        source: Box<PassError>,
    },
}

impl PassError {
    /// The error without the names of the passes around it.
    pub fn root(&self) -> &PassError {
        let mut error = self;
        while let PassError::In { source, .. } = error {
            error = source;
        }
        error
    }

    /// The error with the name of the function whose graph the passes ran on, which they do not know when that is all they are given.
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

    /// [`PassError::root`] by value.
    pub fn into_root(mut self) -> PassError {
        while let PassError::In { source, .. } = self {
            self = *source;
        }
        self
    }
}
