//! Analyses of graphs, and their cache.

use crate::context::PassContext;
use crate::ir::Ir;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

/// Facts that are computed from one graph, for example which of its values may alias. [`PassContext::analysis`] computes and caches them.
pub trait Analysis<I: Ir>: Send + Sync + Sized + 'static {
    /// Computes the facts about `graph`.
    fn compute(graph: &I::Graph, cx: &mut PassContext<'_, I>) -> Self;
}

/// The cached analyses of one graph: for each type of analysis, one analysis and the revision of the graph that it describes.
#[derive(Default)]
pub(crate) struct Analyses(HashMap<TypeId, (u64, Arc<dyn Any + Send + Sync>)>);

impl Analyses {
    /// Returns the cached analysis `A`, if it describes the revision `revision` of the graph.
    pub(crate) fn get<A: Any + Send + Sync>(&self, revision: u64) -> Option<Arc<A>> {
        let (known, analysis) = self.0.get(&TypeId::of::<A>())?;
        match *known == revision {
            true => Arc::clone(analysis).downcast().ok(),
            false => None,
        }
    }

    /// Caches the analysis `A` of the revision `revision` of the graph. It replaces a cached analysis `A` of another revision.
    pub(crate) fn insert<A: Any + Send + Sync>(&mut self, revision: u64, analysis: Arc<A>) {
        self.0.insert(TypeId::of::<A>(), (revision, analysis));
    }
}
