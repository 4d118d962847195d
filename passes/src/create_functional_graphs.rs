//! Extraction of functional subgraphs: `create-functional-graphs`.
//!
//! A group consists of six or more nodes of one block that write nothing, and whose results are neither written nor referenced from outside. It becomes one
//! `prim::FunctionalGraph`, in which a compiler may freely replace tensors by copies. Nodes are moved next to each other if the nodes in between do not prevent
//! it. A branch or a loop is functional if all nodes in it are; otherwise its blocks are searched.
//!
//! **Sound when** a group can run once in place of its nodes, with the same operands. So it contains no node that has effects or draws random numbers, and the
//! alias analysis must allow the moves.
//!
//! PyTorch's pass also accepts nodes with effects and random ones, and keeps their order.

use crate::AliasDb;
use crate::constant_pooling::ConstantPooling;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::effects::{Effect, effect};
use crate::support::outline::outline;
use frazil_ir::schema::Catalogue;
use frazil_ir::{BlockId, Graph, NodeId, symbols};
use std::collections::HashSet;

/// Declaration of the pass `create-functional-graphs` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "create-functional-graphs",
    summary: "Groups nodes without side effects whose values are not written.",
    before: "graph(%x : Tensor):
  %a : Tensor = aten::sin(%x)
  %b : Tensor = aten::cos(%a)
  %c : Tensor = aten::sin(%b)
  %d : Tensor = aten::cos(%c)
  %e : Tensor = aten::sin(%d)
  %f : Tensor = aten::cos(%e)
  %y : Tensor = aten::relu(%f)
  return (%y)
",
    after: "graph(%x : Tensor):
  %0 : Tensor = prim::FunctionalGraph_0(%x)
  %y : Tensor = aten::relu(%0)
  return (%y)
with prim::FunctionalGraph_0 = graph(%0 : Tensor):
  %a : Tensor = aten::sin(%0)
  %b : Tensor = aten::cos(%a)
  %c : Tensor = aten::sin(%b)
  %d : Tensor = aten::cos(%c)
  %e : Tensor = aten::sin(%d)
  %f : Tensor = aten::cos(%e)
  return (%f)
",
    options: &[],
    build: |_| AnyPass::graph(CreateFunctionalGraphs),
};

/// Minimum number of nodes in a functional graph, without constants.
const MIN_NODES: usize = 6;
/// Maximum number of non-functional nodes past which a node is moved to join its group.
const MAX_PASSED: usize = 256;

/// The pass `create-functional-graphs`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateFunctionalGraphs;

impl GraphPass<TorchScript> for CreateFunctionalGraphs {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let catalogue = cx.operators().catalogue();
        let db = cx.alias_db(graph);
        let other = not_functional(graph, &db, catalogue);
        let blocks = open_blocks(graph, &other);
        let runs: Vec<Vec<NodeId>> = blocks
            .into_iter()
            .flat_map(|block| gather(graph, block, &other, &db, catalogue))
            .collect();
        for run in &runs {
            if !cx.rewrite("functional graphs made") {
                break;
            }
            outline(graph, run, symbols::PRIM_FUNCTIONAL_GRAPH);
        }
        if runs.is_empty() {
            return Ok(());
        }
        cx.run_part(&ConstantPooling, graph)
    }
}

/// Returns the nodes that are not functional, and the nodes that contain such nodes. Existing functional graphs are included, so that they are not changed.
fn not_functional(graph: &Graph, db: &AliasDb, catalogue: &Catalogue) -> HashSet<NodeId> {
    let mut other = HashSet::new();
    for node in graph.all_nodes() {
        let seen = |v: &frazil_ir::ValueId| db.has_writers(*v) || db.has_writers_inside(*v) || db.escapes_scope(&[*v]);
        let by_itself = effect(graph, node, catalogue) == Effect::Pure
            && graph.kind(node) != symbols::PRIM_FUNCTIONAL_GRAPH
            && !db.is_mutable(node)
            && !graph.node_outputs(node).iter().any(seen);
        let mut next = Some(node).filter(|_| !by_itself);
        while let Some(node) = next.filter(|n| other.insert(*n)) {
            next = graph.parent(node).and_then(|block| graph.owner(block));
        }
    }
    other
}

/// Returns the outermost block, and the blocks of nodes that are not functional.
fn open_blocks(graph: &Graph, other: &HashSet<NodeId>) -> Vec<BlockId> {
    let nodes = graph.all_nodes();
    let open = nodes.into_iter().filter(|n| other.contains(n));
    std::iter::once(graph.root())
        .chain(open.flat_map(|n| graph.node_blocks(n).to_vec()))
        .collect()
}

/// Moves functional nodes of `block` next to each other. Returns runs of adjacent functional nodes with at least [`MIN_NODES`] nodes.
fn gather(
    graph: &mut Graph,
    block: BlockId,
    other: &HashSet<NodeId>,
    db: &AliasDb,
    catalogue: &Catalogue,
) -> Vec<Vec<NodeId>> {
    let nodes: Vec<NodeId> = graph.nodes(block).collect();
    // From the end: each moves down to the one that was found before it.
    let (mut front, mut passed) = (None, 0);
    for &node in nodes.iter().rev() {
        if graph.kind(node) == symbols::PRIM_CONSTANT {
            continue;
        }
        if other.contains(&node) {
            passed += 1;
            continue;
        }
        match front {
            Some(front) if 0 < passed && passed <= MAX_PASSED => {
                if !db.move_before_topologically_valid(graph, node, front, catalogue) {
                    passed = 0;
                }
            }
            _ => passed = 0,
        }
        front = Some(node);
    }
    let nodes: Vec<NodeId> = graph
        .nodes(block)
        .filter(|n| graph.kind(*n) != symbols::PRIM_CONSTANT)
        .collect();
    let runs = nodes.split(|n| other.contains(n));
    runs.filter(|run| size(graph, run) >= MIN_NODES)
        .map(<[NodeId]>::to_vec)
        .collect()
}

/// Returns the number of nodes in `run`, including nested nodes and without constants. Counting stops at the required number.
fn size(graph: &Graph, run: &[NodeId]) -> usize {
    let within = |n: &NodeId| graph.node_blocks(*n).to_vec();
    let all = run
        .iter()
        .flat_map(|n| std::iter::once(*n).chain(within(n).into_iter().flat_map(|b| graph.walk(b))));
    all.filter(|n| graph.kind(*n) != symbols::PRIM_CONSTANT)
        .take(MIN_NODES)
        .count()
}
