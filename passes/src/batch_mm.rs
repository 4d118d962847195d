//! Batching of matmuls: `batch-mm`.
//!
//! - A tree of additions of four or more `aten::mm` becomes one `prim::MMTreeReduce`: the sum of matmuls is the matmul of the concatenations. A transposed
//!   matmul in the tree becomes the matmul of the transposed operands in reverse order.
//! - Eight or more matmuls with one common operand become one `prim::MMBatchSide` (`side`: 0 if it is the left one).
//!
//! **Sound when**
//! - the operands and results are not written;
//! - inner sums of a tree have no other use, and their factors are 1;
//! - matmuls with a common operand do not depend on each other, and can be moved together.
//!
//! As in PyTorch, the order of summation changes.

use crate::AliasDb;
use crate::dce::DeadCodeElimination;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::peephole::Peephole;
use crate::registry::PassInfo;
use crate::support;
use frazil_ir::schema::Catalogue;
use frazil_ir::{BlockId, Builder, Constant, Graph, NodeId, ValueId, types};
use std::collections::{HashMap, HashSet};

/// Declaration of the pass `batch-mm` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "batch-mm",
    summary: "Merges a sum of matmuls, or matmuls with a common operand, into one node.",
    before: "graph(%a : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %p : Tensor = aten::mm(%a, %b)
  %q : Tensor = aten::mm(%a, %a)
  %r : Tensor = aten::mm(%b, %a)
  %s : Tensor = aten::mm(%b, %b)
  %t : Tensor = aten::add(%p, %q, %1)
  %u : Tensor = aten::add(%r, %s, %1)
  %v : Tensor = aten::add(%t, %u, %1)
  return (%v)
",
    after: "graph(%a : Tensor, %b : Tensor):
  %10 : Tensor = prim::MMTreeReduce(%b, %b, %a, %a, %b, %a, %a, %b)
  return (%10)
",
    options: &[],
    build: |_| AnyPass::graph(BatchMm),
};

/// Minimum number of matmuls in a tree of additions that is replaced by one batched matmul.
const MIN_TREE: usize = 4;
/// Minimum number of matmuls with a common operand that are replaced by one batched matmul.
const MIN_SIDE: usize = 8;

/// The pass `batch-mm`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchMm;

impl GraphPass<TorchScript> for BatchMm {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        if !graph.all_nodes().iter().any(|n| is_mm(graph, *n)) {
            return Ok(());
        }
        let db = cx.alias_db(graph);
        let revision = graph.revision();
        let mut blocks = vec![graph.root()];
        for node in graph.all_nodes() {
            blocks.extend_from_slice(graph.node_blocks(node));
        }
        for &block in &blocks {
            reduce_trees(graph, block, &db, cx);
        }
        for &block in &blocks {
            batch_sides(graph, block, &db, cx);
        }
        if graph.revision() == revision {
            return Ok(());
        }
        cx.run_part(&DeadCodeElimination::default(), graph)?;
        // Transposing matmuls may have left transposes of transposes.
        let peephole = Peephole {
            disable_shape_peepholes: true,
            like_pytorch: false,
        };
        cx.run_part(&peephole, graph)
    }
}

fn is_mm(graph: &Graph, node: NodeId) -> bool {
    graph.kind_name(node) == "aten::mm" && graph.operand_count(node) == 2
}

/// A tree of additions of matmuls.
#[derive(Clone, Copy)]
struct Tree {
    leaves: usize,
    /// Whether the tree is not a part of a larger tree of additions.
    is_root: bool,
}

fn reduce_trees(graph: &mut Graph, block: BlockId, db: &AliasDb, cx: &mut PassContext<'_>) {
    let mut trees: HashMap<NodeId, Tree> = HashMap::new();
    let mut order = Vec::new();
    let leaf = Tree {
        leaves: 1,
        is_root: true,
    };
    for node in graph.nodes(block) {
        let is_transpose = graph.kind_name(node) == "aten::t";
        let is_sum = is_plain_sum(graph, node);
        if !(is_transpose || is_sum || is_mm(graph, node)) || db.node_has_writers(graph, node) {
            continue;
        }
        let tree_of = |i: usize| {
            let maker = graph.operand(node, i).and_then(|v| graph.defining_node(v))?;
            trees.get(&maker).map(|t| (maker, *t))
        };
        let tree = if is_sum {
            let (Some((l, left)), Some((r, right))) = (tree_of(0), tree_of(1)) else {
                continue;
            };
            // A sum with other uses must be computed; a sum with a single use cannot depend on another part of the
            // tree.
            let single = |n: NodeId| graph.output(n).is_some_and(|v| graph.single_use(v).is_some());
            if l == r || !left.is_root || !right.is_root || !single(l) || !single(r) {
                continue;
            }
            for n in [l, r] {
                trees.insert(
                    n,
                    Tree {
                        is_root: false,
                        ..trees[&n]
                    },
                );
            }
            Tree {
                leaves: left.leaves + right.leaves,
                is_root: true,
            }
        } else if is_transpose {
            let Some((maker, tree)) = tree_of(0).filter(|(n, _)| is_mm(graph, *n)) else {
                continue;
            };
            trees.insert(maker, Tree { is_root: false, ..tree });
            leaf
        } else {
            leaf
        };
        trees.insert(node, tree);
        order.push(node);
    }
    for node in order {
        if trees[&node].is_root && trees[&node].leaves >= MIN_TREE && cx.rewrite("trees of products reduced") {
            reduce(graph, node);
        }
    }
}

/// Returns whether `node` is the addition `a + b` of tensors, with the factor 1.
fn is_plain_sum(graph: &Graph, node: NodeId) -> bool {
    let factor = graph.operand(node, 2).and_then(|v| graph.constant(v));
    graph.kind_name(node) == "aten::add"
        && graph.operand_count(node) == 3
        && graph.operands(node).take(2).all(|v| graph.ctx().is_tensor(graph.ty(v)))
        && factor.and_then(|c| c.as_float()) == Some(1.0)
}

fn reduce(graph: &mut Graph, root: NodeId) {
    let ctx = graph.ctx().clone();
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    let mut work = vec![root];
    while let Some(node) = work.pop() {
        let operands: Vec<ValueId> = graph.operands(node).collect();
        let makers = operands.iter().filter_map(|v| graph.defining_node(*v));
        if is_mm(graph, node) {
            lefts.push(operands[0]);
            rights.push(operands[1]);
        } else if graph.kind_name(node) == "aten::t" {
            let Some(product) = makers.into_iter().next() else {
                return;
            };
            let (Some(a), Some(b)) = (graph.operand(product, 0), graph.operand(product, 1)) else {
                return;
            };
            let t = ctx.symbol("aten::t");
            let mut builder = Builder::before(graph, product);
            let (a, b) = (builder.op(t, &[a], types::TENSOR), builder.op(t, &[b], types::TENSOR));
            lefts.push(b);
            rights.push(a);
        } else {
            work.extend(makers.take(2));
        }
    }
    let Some(output) = graph.output(root) else { return };
    let all: Vec<ValueId> = lefts.into_iter().chain(rights).collect();
    let sum = Builder::before(graph, root).op(ctx.symbol("prim::MMTreeReduce"), &all, types::TENSOR);
    graph.replace_all_uses_with(output, sum);
}

fn batch_sides(graph: &mut Graph, block: BlockId, db: &AliasDb, cx: &mut PassContext<'_>) {
    let mut considered: HashSet<(ValueId, usize)> = HashSet::new();
    for node in graph.nodes(block).collect::<Vec<_>>() {
        if !graph.is_alive(node) || !is_mm(graph, node) || db.node_has_writers(graph, node) {
            continue;
        }
        for side in [0, 1] {
            let Some(common) = graph.operand(node, side) else {
                continue;
            };
            if !considered.insert((common, side)) {
                continue;
            }
            let products = independent(graph, block, common, side, db, cx.operators().catalogue());
            if products.len() >= MIN_SIDE && cx.rewrite("products batched") {
                batch(graph, &products, common, side, db, cx.operators().catalogue());
            }
        }
    }
}

/// Returns the matmuls of `block` that have the operand `common` only on `side` and do not depend on each other, in order.
fn independent(
    graph: &Graph,
    block: BlockId,
    common: ValueId,
    side: usize,
    db: &AliasDb,
    catalogue: &Catalogue,
) -> Vec<NodeId> {
    let mut all: Vec<NodeId> = graph
        .uses(common)
        .filter(|u| u.index == side && graph.parent(u.user) == Some(block) && is_mm(graph, u.user))
        .map(|u| u.user)
        .filter(|n| graph.operand(*n, 1 - side) != Some(common) && !db.node_has_writers(graph, *n))
        .collect();
    all.sort_by(|a, b| graph.compare(*a, *b).unwrap_or(std::cmp::Ordering::Equal));
    if all.len() < MIN_SIDE {
        return Vec::new();
    }
    let Some(&first) = all.first() else { return all };
    // All are moved before the first; those that cannot be moved are left out. Matmuls write nothing, so the moves do
    // not interfere.
    let mut tried = graph.clone();
    all.retain(|n| *n == first || db.move_before_topologically_valid(&mut tried, *n, first, catalogue));
    all
}

fn batch(graph: &mut Graph, products: &[NodeId], common: ValueId, side: usize, db: &AliasDb, catalogue: &Catalogue) {
    let ctx = graph.ctx().clone();
    let Some(&first) = products.first() else { return };
    for &n in &products[1..] {
        db.move_before_topologically_valid(graph, n, first, catalogue);
    }
    let others = products.iter().filter_map(|n| graph.operand(*n, 1 - side));
    let operands: Vec<ValueId> = std::iter::once(common).chain(others).collect();
    let output_types = vec![types::TENSOR; products.len()];
    let batched = Builder::before(graph, first).node(ctx.symbol("prim::MMBatchSide"), &operands, &output_types);
    graph.set_attribute(batched, ctx.symbol("side"), Constant::Int(side as i64));
    for (&n, new) in products.iter().zip(graph.node_outputs(batched).to_vec()) {
        if let Some(old) = graph.output(n) {
            graph.replace_all_uses_with(old, new);
        }
        graph.erase(n);
    }
}
