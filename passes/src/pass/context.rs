//! The context of passes on TorchScript: operators and alias analysis.

use super::torchscript::TorchScript;
use crate::AliasDb;
use crate::support::effects::Effect;
use crate::support::operators::Operators;
use frazil_ir::{Graph, NodeId, symbols};
use frazil_pass_manager::{Analysis, PassContext};
use std::sync::Arc;

/// Operators and alias information in the context of a pass.
pub trait PassContextExt<'a> {
    /// Returns the operators: their schemas and evaluation.
    fn operators(&self) -> &'a dyn Operators;

    /// Returns the alias information for `graph`. It is cached, and computed again if the graph has changed since.
    fn alias_db(&mut self, graph: &Graph) -> Arc<AliasDb>;

    /// Returns the side effect of `node`. It is cached for passes that query every node.
    fn effect(&mut self, graph: &Graph, node: NodeId) -> Effect;
}

impl<'a> PassContextExt<'a> for PassContext<'a, TorchScript> {
    fn operators(&self) -> &'a dyn Operators {
        self.environment
    }

    fn alias_db(&mut self, graph: &Graph) -> Arc<AliasDb> {
        self.analysis(graph)
    }

    fn effect(&mut self, graph: &Graph, node: NodeId) -> Effect {
        self.lookups.effect(self.environment.catalogue(), graph, node)
    }
}

impl Analysis<TorchScript> for AliasDb {
    fn compute(graph: &Graph, cx: &mut PassContext<'_, TorchScript>) -> AliasDb {
        AliasDb::with_overloads(graph, cx.environment.catalogue(), &mut cx.lookups)
    }
}

/// Returns true if `node` may merge memory that is separate without it: it reads contents of a container, stores into one, carries values, or is
/// unknown.
pub(crate) fn joins_memory(cx: &mut PassContext<'_, TorchScript>, graph: &Graph, node: NodeId) -> bool {
    let builds = matches!(
        graph.kind(node),
        symbols::PRIM_CONSTANT
            | symbols::PRIM_LIST_CONSTRUCT
            | symbols::PRIM_TUPLE_CONSTRUCT
            | symbols::PRIM_DICT_CONSTRUCT
    );
    !builds && !cx.lookups.of(cx.environment.catalogue(), graph, node).is_plain
}
