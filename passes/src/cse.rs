//! Common subexpression elimination: `cse`.
//!
//! A node that repeats the computation of an earlier node of the same or an enclosing block is replaced by that node.
//!
//! **Sound when**
//! - both have the same kind, operands, attributes and output types;
//! - neither has an effect or draws random numbers;
//! - their operands and results, and their contents, are not written;
//! - the two results cannot be distinguished as objects ([`AliasDb::safe_to_merge`]): results that both leave the graph are not merged.
//!
//! PyTorch ignores contents of containers: it merges two reads of a list with a write to an element in between. Here they are not merged.

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::constants::has_own_identity;
use crate::support::effects::Effect;
use crate::{AliasDb, support};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use frazil_ir::{AttributeValue, Constant, Graph, NodeId, symbols};
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash, Hasher};

/// Declaration of the pass `cse` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "cse",
    summary: "Merges nodes that compute the same value (common subexpression elimination).",
    before: "graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::mul(%x, %y)
  %c : Tensor = aten::matmul(%a, %b)
  return (%c)
",
    after: "graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %c : Tensor = aten::matmul(%a, %a)
  return (%c)
",
    options: &[],
    build: |_| AnyPass::graph(CommonSubexpressionElimination),
};

/// The pass `cse`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct CommonSubexpressionElimination;

/// Maximum number of nodes with the same computation that are tried for merging. Uses of the results can prevent merging. If merging with the last few such
/// nodes fails, earlier ones are unlikely to succeed.
const MAX_TRIED: usize = 8;

impl GraphPass<TorchScript> for CommonSubexpressionElimination {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let db = cx.alias_db(graph);
        let mut known = Known::default();
        // Scopes nest as blocks do: in a block, the preceding nodes of enclosing blocks are visible.
        let mut frames = vec![(graph.first(graph.root()), Vec::<(u64, NodeId)>::new())];
        while let Some((next, _)) = frames.last_mut() {
            let Some(node) = *next else {
                let done = frames.pop();
                // Nodes in a block are not visible behind it.
                for (hash, n) in done.into_iter().filter(|_| !frames.is_empty()).flat_map(|f| f.1).rev() {
                    known.forget(hash, n);
                }
                continue;
            };
            *next = graph.next(node);
            let blocks = graph.node_blocks(node);
            if !blocks.is_empty() {
                frames.extend(blocks.iter().rev().map(|b| (graph.first(*b), Vec::new())));
                continue;
            }
            if !is_candidate(graph, node, &db, cx) {
                continue;
            }
            let hash = known.hash(graph, node);
            let mergeable = |earlier: &NodeId| db.safe_to_merge(graph, *earlier, node);
            let same = known.same(graph, node, hash).take(MAX_TRIED).find(mergeable);
            match same {
                Some(_) if !cx.rewrite("nodes merged") => break,
                Some(earlier) => {
                    for i in 0..graph.node_outputs(node).len() {
                        let (from, to) = (graph.node_outputs(node)[i], graph.node_outputs(earlier)[i]);
                        graph.replace_all_uses_with(from, to);
                    }
                    graph.erase(node);
                }
                None => {
                    known.add(graph, node, hash);
                    if let Some((_, added)) = frames.last_mut() {
                        added.push((hash, node));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The visited nodes, by the value that they compute.
#[derive(Default)]
struct Known {
    hasher: DefaultHashBuilder,
    /// The last visited node of each set of nodes with the same computation.
    last: HashTable<(u64, NodeId)>,
    /// The node visited before each node, in its set of nodes with the same computation.
    before: SecondaryMap<NodeId, PackedOption<NodeId>>,
}

impl Known {
    /// Returns a hash that is equal for nodes with the same computation.
    fn hash(&self, graph: &Graph, node: NodeId) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u32(graph.kind(node).as_u32());
        graph.operands(node).for_each(|v| hasher.write_u32(v.as_u32()));
        for output in graph.node_outputs(node) {
            hasher.write_u32(graph.ty(*output).as_u32());
        }
        for a in graph.attributes(node) {
            a.name.hash(&mut hasher);
            if let AttributeValue::Constant(c) = &a.value {
                hash_constant(c, &mut hasher);
            }
        }
        hasher.finish()
    }

    /// Returns the visited nodes with the same computation as `node`, the last one first.
    fn same(&self, graph: &Graph, node: NodeId, hash: u64) -> impl Iterator<Item = NodeId> {
        let last = self.last.find(hash, |(_, other)| same(graph, *other, node));
        std::iter::successors(last.map(|l| l.1), |n| self.before[*n].expand())
    }

    fn add(&mut self, graph: &Graph, node: NodeId, hash: u64) {
        let entry = self.last.entry(hash, |(_, other)| same(graph, *other, node), |l| l.0);
        match entry {
            Entry::Occupied(mut entry) => {
                let before = std::mem::replace(&mut entry.get_mut().1, node);
                self.before[node] = before.into();
            }
            Entry::Vacant(entry) => {
                entry.insert((hash, node));
            }
        }
    }

    /// Removes `node`, which was added last.
    fn forget(&mut self, hash: u64, node: NodeId) {
        if let Ok(mut entry) = self.last.find_entry(hash, |l| l.1 == node) {
            match self.before[node].expand() {
                Some(before) => entry.get_mut().1 = before,
                None => {
                    entry.remove();
                }
            }
        }
    }
}

/// Returns true if `a` and `b` are the same computation.
fn same(graph: &Graph, a: NodeId, b: NodeId) -> bool {
    let types = |n: NodeId| graph.node_outputs(n).iter().map(|v| graph.ty(*v));
    graph.kind(a) == graph.kind(b)
        && graph.operands(a).eq(graph.operands(b))
        && types(a).eq(types(b))
        && same_attributes(graph, a, b)
}

fn is_candidate(graph: &Graph, node: NodeId, db: &AliasDb, cx: &mut PassContext<'_>) -> bool {
    // Two objects have two identities.
    if graph.kind(node) == symbols::PRIM_CREATE_OBJECT || graph.constant_of(node).is_some_and(|c| has_own_identity(&c))
    {
        return false;
    }
    let no_graphs = graph
        .attributes(node)
        .iter()
        .all(|a| !matches!(a.value, AttributeValue::Graph(_) | AttributeValue::Graphs(_)));
    no_graphs && cx.effect(graph, node) == Effect::Pure && !db.node_has_writers(graph, node)
}

/// Adds a constant to a hasher. Constants that are [the same](Constant::same) have equal hashes.
pub(crate) fn hash_constant(constant: &Constant, hasher: &mut impl Hasher) {
    std::mem::discriminant(constant).hash(hasher);
    match constant {
        Constant::Bool(b) => b.hash(hasher),
        Constant::Int(i) => i.hash(hasher),
        Constant::Float(f) => f.to_bits().hash(hasher),
        Constant::Str(s) => s.hash(hasher),
        Constant::Tensor(t) => (std::sync::Arc::as_ptr(t) as usize).hash(hasher),
        Constant::Function(name) => name.hash(hasher),
        Constant::Object(id) => id.hash(hasher),
        Constant::List(_) | Constant::Tuple(_) => {
            for item in constant.items().unwrap_or_default() {
                hash_constant(item, hasher);
            }
        }
        Constant::Enum(e) => e.name.hash(hasher),
        Constant::None | Constant::Complex(_) | Constant::Device(_) | Constant::Dict(_) => {}
    }
}

fn same_attributes(graph: &Graph, a: NodeId, b: NodeId) -> bool {
    let (a, b) = (graph.attributes(a), graph.attributes(b));
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.name == y.name && x.value.same(&y.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::schema::{Catalogue, Determinism, Properties};
    use frazil_ir::{Builder, Context, types};
    use std::sync::Arc;

    fn setting() -> (Arc<Context>, Catalogue, Graph) {
        let ctx = Arc::new(Context::new());
        let mut catalogue = Catalogue::new(ctx.clone());
        catalogue.add_lines(
            "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor\n\
             aten::relu_(Tensor(a!) self) -> Tensor(a!)\n\
             aten::t(Tensor(a) self) -> Tensor(a)\n\
             aten::cat(Tensor[] tensors, int dim=0) -> Tensor\n\
             aten::dropout(Tensor input, float p, bool train) -> Tensor\n",
        );
        let dropout = Properties {
            determinism: Determinism::RandomIf("train"),
            ..Properties::NONE
        };
        catalogue.add_properties(ctx.symbol("aten::dropout"), dropout);
        (ctx.clone(), catalogue, Graph::new(ctx))
    }

    /// Runs the pass and counts nodes of `kind`.
    fn left(g: &mut Graph, c: &Catalogue, kind: &str) -> usize {
        CommonSubexpressionElimination.run(g, &mut PassContext::new(c)).unwrap();
        g.verify(None).unwrap();
        g.all_nodes().into_iter().filter(|n| g.kind_name(*n) == kind).count()
    }

    #[test]
    fn equal_nodes_merge_also_from_inner_blocks() {
        let (ctx, c, mut g) = setting();
        let x = g.add_input(types::TENSOR);
        let cond = g.add_input(types::BOOL);
        let root = g.root();
        let mul = ctx.symbol("aten::mul");
        let mut b = Builder::at_end(&mut g, root);
        let first = b.op(mul, &[x, x], types::TENSOR);
        let branch = b.node(symbols::PRIM_IF, &[cond], &[types::TENSOR]);
        for _ in 0..2 {
            let block = b.add_block(branch);
            let again = Builder::at_end(&mut b, block).op(mul, &[x, x], types::TENSOR);
            let other = Builder::at_end(&mut b, block).op(mul, &[x, again], types::TENSOR);
            b.add_result(block, other);
        }
        let out = b.output(branch).unwrap();
        let sum = b.op(mul, &[first, out], types::TENSOR);
        b.add_result(root, sum);
        // One outside, one in each branch (which are not visible to each other), the last.
        assert_eq!(left(&mut g, &c, "aten::mul"), 4);
    }

    #[test]
    fn writes_and_randomness_keep_nodes_apart() {
        let (ctx, c, mut g) = setting();
        let x = g.add_input(types::TENSOR);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let (mul, relu, cat) = (
            ctx.symbol("aten::mul"),
            ctx.symbol("aten::relu_"),
            ctx.symbol("aten::cat"),
        );
        let zero = b.constant(0);
        let local = b.op(mul, &[x, x], types::TENSOR);
        let list = b.list(types::TENSOR, &[local]);
        let before = b.op(cat, &[list, zero], types::TENSOR);
        b.op(relu, &[local], types::TENSOR);
        let after = b.op(cat, &[list, zero], types::TENSOR);
        let (p, on) = (b.constant(0.5), b.constant(true));
        let d1 = b.op(symbols::ATEN_DROPOUT, &[x, p, on], types::TENSOR);
        let d2 = b.op(symbols::ATEN_DROPOUT, &[x, p, on], types::TENSOR);
        let s = b.op(mul, &[before, after], types::TENSOR);
        let t = b.op(mul, &[d1, d2], types::TENSOR);
        let out = b.op(mul, &[s, t], types::TENSOR);
        b.add_result(root, out);
        assert_eq!(
            left(&mut g, &c, "aten::cat"),
            2,
            "an element of the list is written in between"
        );
        assert_eq!(left(&mut g, &c, "aten::dropout"), 2);
    }

    #[test]
    fn views_of_an_input_merge_unless_both_are_returned() {
        for both in [false, true] {
            let (ctx, c, mut g) = setting();
            let x = g.add_input(types::TENSOR);
            let root = g.root();
            let mut b = Builder::at_end(&mut g, root);
            let [v, w] = [0; 2].map(|_| b.op(ctx.symbol("aten::t"), &[x], types::TENSOR));
            let out = b.op(ctx.symbol("aten::mul"), &[v, w], types::TENSOR);
            b.add_result(root, out);
            if both {
                b.add_result(root, v);
                b.add_result(root, w);
            }
            assert_eq!(left(&mut g, &c, "aten::t"), if both { 2 } else { 1 });
        }
    }

    #[test]
    fn two_results_of_the_graph_stay_two_tensors() {
        let (ctx, c, mut g) = setting();
        let x = g.add_input(types::TENSOR);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        for _ in 0..2 {
            let v = b.op(ctx.symbol("aten::mul"), &[x, x], types::TENSOR);
            b.add_result(root, v);
        }
        assert_eq!(left(&mut g, &c, "aten::mul"), 2);
    }
}
