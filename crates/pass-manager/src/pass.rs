//! The traits of passes.

use crate::context::PassContext;
use crate::error::PassError;
use crate::ir::Ir;
use frazil_limits::Phase;

/// A pass over one graph.
pub trait GraphPass<I: Ir>: Send + Sync {
    /// Rewrites `graph`. A valid graph must be valid afterwards.
    ///
    /// # Errors
    /// If the pass fails; the graph may then be partially rewritten.
    fn run(&self, graph: &mut I::Graph, cx: &mut PassContext<'_, I>) -> Result<(), PassError<I>>;
}

/// A pass over a module.
pub trait ModulePass<I: Ir>: Send + Sync {
    /// Rewrites `module`. A valid module must be valid afterwards.
    ///
    /// # Errors
    /// If the pass fails; the module may then be partially rewritten.
    fn run(&self, module: &mut I::Module, cx: &mut PassContext<'_, I>) -> Result<(), PassError<I>>;

    /// Runs the pass on a graph that belongs to no module. The default implementation returns an error.
    ///
    /// # Errors
    /// [`PassError::NeedsModule`] if the pass needs a module; otherwise the errors of [`run`](Self::run).
    fn run_on_graph(&self, _graph: &mut I::Graph, _cx: &mut PassContext<'_, I>) -> Result<(), PassError<I>> {
        Err(PassError::NeedsModule)
    }

    /// Returns whether the pass reads the values of the module's attributes. A caller that restores such values on demand restores them before it runs the pass.
    fn reads_attributes(&self) -> bool {
        false
    }

    /// Returns the phase whose time limit applies to the pass.
    fn phase(&self) -> Phase {
        Phase::Pass
    }
}

/// A pass over graphs, or a pass over modules.
pub enum AnyPass<I: Ir> {
    /// A pass over one graph.
    Graph(Box<dyn GraphPass<I>>),
    /// A pass over a module.
    Module(Box<dyn ModulePass<I>>),
}

impl<I: Ir> AnyPass<I> {
    /// Wraps a pass over graphs.
    pub fn graph(pass: impl GraphPass<I> + 'static) -> AnyPass<I> {
        AnyPass::Graph(Box::new(pass))
    }

    /// Wraps a pass over modules.
    pub fn module(pass: impl ModulePass<I> + 'static) -> AnyPass<I> {
        AnyPass::Module(Box::new(pass))
    }
}
