//! Replacement of in-place operators: `remove-inplace-ops`.
//!
//! `y.add_(x)` becomes `y = y.add(x)`, with a conversion back if `x` may promote the dtype. Unlike [`remove-tensor-mutation`](crate::remove_tensor_mutation),
//! which requires that the tensor has no uses before the write, this pass handles tensors that have been read. Earlier reads keep the old tensor.
//!
//! **Sound when**
//! - the tensor is new: its node creates it, in the block in which it is written;
//! - none of its uses, at any depth, stores it or returns something that shares its memory; only results of the graph may be the tensor itself.
//!
//! Uses after the write then get the new tensor.
//!
//! PyTorch's pass of this name serves exporters: it assumes that no tensor has other references, including inputs of the graph and views, and handles seven
//! operators. Here a write is kept if it would be observable.

use crate::AliasDb;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::remove_tensor_mutation::{Functional, functional_form, is_inplace, is_new, make_functional};
use crate::support;
use frazil_ir::schema::Catalogue;
use frazil_ir::{Attribute, AttributeValue, Graph, NodeId, ValueId, symbols};
use std::collections::HashMap;

/// Declaration of the pass `remove-inplace-ops` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "remove-inplace-ops",
    summary: "Replaces in-place operators on tensors that the graph creates, even if the tensor has been read before.",
    before: "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::relu(%x)
  %z : Tensor = aten::neg(%y)
  %a : Tensor = aten::add_(%y, %1, %1)
  return (%y, %z)
",
    after: "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::relu(%x)
  %z : Tensor = aten::neg(%y)
  %7 : Tensor = aten::add(%y, %1, %1)
  return (%7, %z)
",
    options: &[],
    build: |_| AnyPass::graph(RemoveInplaceOps),
};

/// The pass `remove-inplace-ops`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveInplaceOps;

impl GraphPass<TorchScript> for RemoveInplaceOps {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let writes: Vec<NodeId> = graph
            .all_nodes()
            .into_iter()
            .filter(|n| is_inplace(graph, *n))
            .collect();
        if writes.is_empty() {
            return Ok(());
        }
        let mut tensors = Tensors {
            db: (*cx.alias_db(graph)).clone(),
            known_as: HashMap::new(),
            alone: HashMap::new(),
        };
        for node in writes {
            let Some((tensor, functional)) = tensors.rewritable(graph, node, cx.operators().catalogue()) else {
                continue;
            };
            if !cx.rewrite("in-place operators replaced") {
                break;
            }
            let new = make_functional(graph, node, &functional, tensor);
            let original = tensors.original(tensor);
            tensors.known_as.insert(new, original);
            tensors.db.copy_value(original, new);
        }
        Ok(())
    }
}

struct Tensors {
    /// The alias information, updated as tensors are created. A view of a created tensor is not a new tensor.
    db: AliasDb,
    /// For each tensor that this pass has created, the original tensor.
    known_as: HashMap<ValueId, ValueId>,
    /// For each tensor, whether its memory is reachable only through the tensor itself; see [`stays_alone`].
    alone: HashMap<ValueId, bool>,
}

impl Tensors {
    fn original(&self, tensor: ValueId) -> ValueId {
        self.known_as.get(&tensor).copied().unwrap_or(tensor)
    }

    /// Returns the tensor that `node` writes, and its functional variant, if the difference is not observable.
    fn rewritable(&mut self, graph: &Graph, node: NodeId, catalogue: &Catalogue) -> Option<(ValueId, Functional)> {
        let tensor = graph.operand(node, 0)?;
        let functional = functional_form(graph, node, catalogue)?;
        // The same tensor may be another operand of the write.
        if graph.defining_block(tensor) != graph.parent(node) || graph.operands(node).skip(1).any(|v| v == tensor) {
            return None;
        }
        let original = self.original(tensor);
        let alone = match self.alone.get(&original) {
            Some(known) => *known,
            None => is_new(graph, original, &self.db, catalogue) && stays_alone(graph, original, &self.db, catalogue),
        };
        self.alone.insert(original, alone);
        alone.then_some((tensor, functional))
    }
}

/// Returns true if every use of the tensor only reads it or writes to it, and nothing but a result of the graph stores
/// it.
fn stays_alone(graph: &Graph, tensor: ValueId, db: &AliasDb, catalogue: &Catalogue) -> bool {
    // The result of a write is the same tensor.
    let mut names = vec![tensor];
    let mut next = 0;
    while let Some(&name) = names.get(next) {
        next += 1;
        for u in graph.uses(name) {
            let write = is_inplace(graph, u.user) && functional_form(graph, u.user, catalogue).is_some();
            let harmless = match graph.kind(u.user) {
                symbols::PRIM_RETURN => graph.parent(u.user) == Some(graph.root()),
                _ if write && u.index == 0 => {
                    names.extend_from_slice(graph.node_outputs(u.user));
                    true
                }
                _ => (write || !db.is_mutable(u.user)) && reads(graph, u.user, tensor, db),
            };
            if !harmless {
                return false;
            }
        }
    }
    true
}

/// Returns true if no result of `user` shares memory with the tensor, and `user` does not store it.
fn reads(graph: &Graph, user: NodeId, tensor: ValueId, db: &AliasDb) -> bool {
    let graphs = |a: &Attribute| matches!(a.value, AttributeValue::Graph(_) | AttributeValue::Graphs(_));
    graph.node_blocks(user).is_empty()
        && !graph.attributes(user).iter().any(graphs)
        && !graph
            .node_outputs(user)
            .iter()
            .any(|o| db.may_contain_alias(*o, tensor))
}
