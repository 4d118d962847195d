//! Rewriting with a count of rewrites. Transformations change graphs only through a [`Rewriter`].

use crate::graph::TensorGraph;
use crate::ir::TensorIr;
use frazil_pass_manager::{GraphPass, PassContext, PassError};
use std::ops::Deref;

/// Observes and bounds the rewrites of a transformation.
pub trait Listener {
    /// Counts one rewrite as `statistic` ("nests fused"). Returns false if no further rewrite may be done: the transformation then leaves the graph
    /// as it is.
    fn rewrite(&mut self, statistic: &'static str) -> bool;
}

/// A listener that allows all rewrites.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Listener for AllowAll {
    fn rewrite(&mut self, _statistic: &'static str) -> bool {
        true
    }
}

/// A graph that is rewritten. It dereferences to the graph for reading.
pub struct Rewriter<'g> {
    graph: &'g mut TensorGraph,
    listener: &'g mut dyn Listener,
}

impl<'g> Rewriter<'g> {
    /// Returns a rewriter of `graph`, whose rewrites `listener` counts.
    pub fn new(graph: &'g mut TensorGraph, listener: &'g mut dyn Listener) -> Rewriter<'g> {
        Rewriter { graph, listener }
    }

    /// Returns the graph for one rewrite, which is counted as `statistic`; `None` if it may not be done. A transformation calls this once it is
    /// certain that it will rewrite.
    pub fn rewrite(&mut self, statistic: &'static str) -> Option<&mut TensorGraph> {
        self.listener.rewrite(statistic).then_some(&mut *self.graph)
    }
}

impl Deref for Rewriter<'_> {
    type Target = TensorGraph;

    fn deref(&self) -> &TensorGraph {
        self.graph
    }
}

impl Listener for PassContext<'_, TensorIr> {
    fn rewrite(&mut self, statistic: &'static str) -> bool {
        PassContext::rewrite(self, statistic)
    }
}

/// A transformation as a pass.
pub(crate) struct Transformation(pub fn(&mut Rewriter<'_>));

impl GraphPass<TensorIr> for Transformation {
    fn run(&self, graph: &mut TensorGraph, cx: &mut PassContext<'_, TensorIr>) -> Result<(), PassError<TensorIr>> {
        (self.0)(&mut Rewriter::new(graph, cx));
        Ok(())
    }
}
