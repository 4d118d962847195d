//! Rewriting with a count of rewrites. Transformations change graphs only through a [`Rewriter`].

use crate::graph::TensorGraph;
use crate::ir::TensorIr;
use frazil_pass_manager::{GraphPass, PassContext, PassError};
use std::ops::Deref;

/// Observes and bounds the rewrites of a transformation.
pub trait Listener {
    /// Counts one rewrite under the name `statistic`, such as "nests fused". Returns false if the rewrite is forbidden. The transformation then does
    /// not change the graph.
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

/// A graph with a [`Listener`] for its rewrites. Dereferences to the graph, for reading.
pub struct Rewriter<'g> {
    graph: &'g mut TensorGraph,
    listener: &'g mut dyn Listener,
}

impl<'g> Rewriter<'g> {
    /// Returns a rewriter of `graph`. Each rewrite is reported to `listener`, which can forbid it.
    pub fn new(graph: &'g mut TensorGraph, listener: &'g mut dyn Listener) -> Rewriter<'g> {
        Rewriter { graph, listener }
    }

    /// Returns the graph for one rewrite, which is counted under the name `statistic`; `None` if the listener forbids it. A transformation calls this function
    /// only when it is certain to rewrite the graph.
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
