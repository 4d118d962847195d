//! Folding of writes to new lists: `remove-list-mutation`.
//!
//! Appending to a list, inserting into it at a constant position, and setting an element of it become part of the `prim::ListConstruct` that builds it.
//!
//! **Sound when** both are in one block and the list has no uses in between. Building a list depends only on its elements, so it can move to the write.
//! An access with an index out of bounds is kept and raises.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::rewrite::{built_list, element_index, int, unused_between};
use frazil_ir::{Graph, NodeId, ValueId};

/// Declaration of the pass `remove-list-mutation` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "remove-list-mutation",
    summary: "Builds lists with the elements that are added right after their construction.",
    before: "graph(%x : Tensor, %y : Tensor):
  %l : Tensor[] = prim::ListConstruct(%x)
  %a : Tensor[] = aten::append(%l, %y)
  return (%l)
",
    after: "graph(%x : Tensor, %y : Tensor):
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  return (%l)
",
    options: &[],
    build: |_| AnyPass::graph(RemoveListMutation),
};

/// The pass `remove-list-mutation`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveListMutation;

impl GraphPass<TorchScript> for RemoveListMutation {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        for node in graph.all_nodes() {
            let Some((list, construct, items)) = written(graph, node) else {
                continue;
            };
            if !unused_between(graph, list, construct, node) {
                continue;
            }
            if !cx.rewrite("list mutations removed") {
                break;
            }
            graph.move_before(construct, node);
            graph.set_operands(construct, &items);
            for output in graph.node_outputs(node).to_vec() {
                graph.replace_all_uses_with(output, list);
            }
            graph.erase(node);
        }
        Ok(())
    }
}

/// Returns the list that `node` modifies, the node that constructs the list, and the elements of the list after the modification.
fn written(graph: &Graph, node: NodeId) -> Option<(ValueId, NodeId, Vec<ValueId>)> {
    let kind = graph.kind_name(node);
    if !matches!(kind, "aten::append" | "aten::insert" | "aten::_set_item") {
        return None;
    }
    let list = graph.operand(node, 0)?;
    let construct = built_list(graph, list)?;
    let mut items: Vec<ValueId> = graph.operands(construct).collect();
    let len = items.len();
    match kind {
        "aten::append" => items.push(graph.operand(node, 1)?),
        "aten::insert" => {
            // Beyond either end means at that end.
            let index = int(graph, graph.operand(node, 1)?)?;
            let at = match element_index(index, len) {
                Some(at) => at,
                None if index < 0 => 0,
                None => len,
            };
            items.insert(at, graph.operand(node, 2)?);
        }
        _ => {
            let at = element_index(int(graph, graph.operand(node, 1)?)?, len)?;
            items[at] = graph.operand(node, 2)?;
        }
    }
    Some((list, construct, items))
}
