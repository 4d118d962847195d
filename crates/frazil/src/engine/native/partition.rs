//! Subgraph partitioning: finds clusters of neighbouring nodes that can be compiled although the method as a whole cannot. Each
//! becomes a `prim::TensorExprGroup` node with its nodes as a graph.
//!
//! A cluster is not reordered. It contains no node with effects, with data-dependent shapes or types of results, or with a value that is written. Its outputs
//! share memory with its inputs and with one another as the interpreter's results would. But inside it, native code chooses layouts: values whose memory an
//! operator observes are not outputs of clusters.

use frazil_ir::schema::Observes;
use frazil_ir::{BlockId, Graph, NodeId, TypeId, TypeKind, ValueId, symbols, types};
use frazil_passes::AliasDb;
use frazil_passes::support::effects::{Effect, effect};
use frazil_passes::support::outline::outline;
use frazil_runtime::op::Form;
use frazil_runtime::registry::Lookup;
use frazil_runtime::{Registry, Semantics, Variant};

/// Minimum number of `Role::Work` operators in a cluster. For fewer, the overhead of leaving the interpreter exceeds
/// the gain.
const LEAST_WORK: usize = 2;
/// Maximum number of nodes of a graph that is partitioned.
const MAX_NODES: usize = 100_000;

/// The role of a node in the partitioning of a graph into clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A node that cannot be in a cluster and ends it.
    Outside,
    /// A node that may be in a cluster.
    Cheap,
    /// A node that may be in a cluster, and makes compiling the cluster worthwhile.
    Work,
}

/// Returns the graph with each cluster grouped as a subgraph; `None` if there is no cluster.
pub(crate) fn partition(graph: &Graph, registry: &Registry) -> Option<Graph> {
    if graph.node_capacity() > MAX_NODES {
        return None;
    }
    let observes = |n: NodeId| registry.catalogue().properties(graph.kind(n)).observes;
    let sees = |n: &NodeId| observes(*n) > Observes::Elements;
    let seers = graph.nodes_recursive(graph.root()).into_iter().filter(sees);
    let finder = Finder {
        graph,
        registry,
        aliases: AliasDb::new(graph, registry.catalogue()),
        seen: seers.filter_map(|n| graph.operands(n).next()).collect(),
    };
    let runs = finder.runs();
    let mut out = graph.clone();
    for run in &runs {
        outline(&mut out, run, symbols::PRIM_TENSOR_EXPR_GROUP);
    }
    (!runs.is_empty()).then_some(out)
}

struct Finder<'a> {
    graph: &'a Graph,
    registry: &'a Registry,
    aliases: AliasDb,
    /// Tensors of which an operator observes more than the elements, such as strides or storage.
    seen: Vec<ValueId>,
}

impl Finder<'_> {
    fn runs(&self) -> Vec<Vec<NodeId>> {
        let mut runs = Vec::new();
        let mut blocks: Vec<BlockId> = vec![self.graph.root()];
        while let Some(block) = blocks.pop() {
            let mut run = Vec::new();
            let mut work = 0;
            let mut end = |run: &mut Vec<NodeId>, work: &mut usize| {
                let nodes = std::mem::take(run);
                if std::mem::take(work) >= LEAST_WORK {
                    runs.push(nodes);
                }
            };
            for node in self.graph.nodes(block) {
                // A constant, which is copied to where it is used.
                if self.graph.kind(node) == symbols::PRIM_CONSTANT {
                    continue;
                }
                match self.role_with_blocks(node) {
                    Role::Outside => {
                        end(&mut run, &mut work);
                        blocks.extend(self.graph.node_blocks(node));
                        continue;
                    }
                    Role::Cheap => {}
                    Role::Work => work += 1,
                }
                run.push(node);
            }
            end(&mut run, &mut work);
        }
        runs
    }

    /// Returns the role of a node. A node with blocks has the role of everything in it, whether or not it is executed.
    fn role_with_blocks(&self, node: NodeId) -> Role {
        let own = self.role(node);
        let blocks = self.graph.node_blocks(node);
        let inner = blocks.iter().flat_map(|&b| self.graph.nodes_recursive(b));
        inner.fold(own, |all, n| match (all, self.role(n)) {
            (Role::Outside, _) | (_, Role::Outside) => Role::Outside,
            (Role::Cheap, Role::Cheap) => Role::Cheap,
            _ => Role::Work,
        })
    }

    fn role(&self, node: NodeId) -> Role {
        let graph = self.graph;
        let mut values = graph.operands(node).chain(graph.node_outputs(node).iter().copied());
        let written = |v: ValueId| self.aliases.has_writers(v) || self.aliases.has_writers_inside(v);
        if values.any(written) || effect(graph, node, self.registry.catalogue()) != Effect::Pure {
            return Role::Outside;
        }
        if self.is_seen_view(node) {
            return Role::Outside;
        }
        match graph.kind(node) {
            symbols::PRIM_CONSTANT
            | symbols::PRIM_IF
            | symbols::PRIM_LOOP
            | symbols::PRIM_LIST_CONSTRUCT
            | symbols::PRIM_LIST_UNPACK
            | symbols::PRIM_TUPLE_CONSTRUCT
            | symbols::PRIM_TUPLE_UNPACK
            | symbols::PRIM_TUPLE_INDEX
            | symbols::PRIM_UNCHECKED_CAST => return Role::Cheap,
            _ => {}
        }
        let Lookup::Found(op) = self.registry.lookup(graph, node) else {
            return Role::Outside;
        };
        if op.variant() != Variant::Functional {
            return Role::Outside;
        }
        let mut all = graph.operands(node).chain(graph.node_outputs(node).iter().copied());
        match op.semantics() {
            Semantics::Program(Form::View, _) => Role::Cheap,
            Semantics::Pointwise(_) | Semantics::Program(..) | Semantics::Composite(_) => Role::Work,
            Semantics::Kernel(_) if op.has_fixed_sizes() => Role::Cheap,
            Semantics::Kernel(_) if all.all(|v| self.is_plain(graph.ty(v))) => Role::Cheap,
            Semantics::Kernel(_) => Role::Outside,
        }
    }

    /// Returns whether the node returns a view of a tensor whose memory is observed.
    fn is_seen_view(&self, node: NodeId) -> bool {
        let shares = |a: ValueId, b: ValueId| self.aliases.may_contain_alias(a, b);
        let outputs = self.graph.node_outputs(node).iter();
        let mut seen = outputs.filter(|&&v| self.seen.iter().any(|&s| shares(v, s)));
        seen.any(|&v| self.graph.operands(node).any(|o| shares(o, v)))
    }

    /// Returns true for types whose values neither are nor contain tensors or objects.
    fn is_plain(&self, ty: TypeId) -> bool {
        let ctx = self.graph.ctx();
        match ctx.type_kind(ty) {
            TypeKind::Optional(e) | TypeKind::List(e) => matches!(
                ctx.type_kind(e),
                TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Str | TypeKind::Number
            ),
            _ => [
                types::INT,
                types::FLOAT,
                types::BOOL,
                types::STR,
                types::NUMBER,
                types::NONE,
                types::DEVICE,
            ]
            .contains(&ty),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::Context;
    use std::sync::Arc;

    fn registry() -> Registry {
        let mut registry = Registry::new(Arc::new(Context::new()));
        frazil_prim::register(&mut registry);
        frazil_aten::register(&mut registry);
        registry
    }

    /// Returns for each cluster the kinds of its nodes, without constants, and the kinds of the remaining nodes at the top level.
    fn parts(text: &str) -> (Vec<Vec<String>>, Vec<String>) {
        let registry = registry();
        let graph = frazil_syntax::parse_graph(registry.ctx(), text).expect("a graph").graph;
        let out = partition(&graph, &registry).unwrap_or(graph);
        out.verify(None).expect("a valid graph");
        let kinds = |g: &Graph, nodes: Vec<NodeId>| -> Vec<String> {
            let shown = nodes.into_iter().filter(|&n| g.kind(n) != symbols::PRIM_CONSTANT);
            shown.map(|n| g.kind_name(n).to_owned()).collect()
        };
        let group = |n: NodeId| out.attribute(n, symbols::ATTR_SUBGRAPH)?.as_graph();
        let inner = out.all_nodes().into_iter().filter_map(group);
        let inner = inner.map(|g| kinds(g, g.nodes(g.root()).collect())).collect();
        (inner, kinds(&out, out.nodes(out.root()).collect()))
    }

    #[test]
    fn what_needs_elements_stays_between_parts() {
        let (parts, rest) = parts(
            "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::mul(%a, %a)
  %n : Tensor = aten::nonzero(%b)
  %d : Tensor = aten::tanh(%b)
  %e : Tensor = aten::add(%d, %b, %1)
  return (%n, %e)
",
        );
        assert_eq!(
            parts,
            [vec!["aten::relu", "aten::mul"], vec!["aten::tanh", "aten::add"]]
        );
        assert_eq!(
            rest,
            ["prim::TensorExprGroup", "aten::nonzero", "prim::TensorExprGroup"]
        );
    }

    #[test]
    fn what_is_written_to_stays_outside() {
        let (parts, _) = parts(
            "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::mul(%a, %a)
  %v : Tensor = aten::t(%a)
  %w : Tensor = aten::add_(%v, %1, %1)
  %d : Tensor = aten::tanh(%b)
  %e : Tensor = aten::add(%d, %b, %1)
  return (%a, %e)
",
        );
        assert_eq!(parts, [["aten::tanh", "aten::add"]]);
    }

    #[test]
    fn views_whose_memory_is_seen_stay_outside() {
        let (parts, rest) = parts(
            "graph(%x : Tensor, %w : Tensor, %sizes : int[]):
  %0 : int = prim::Constant[value=0]()
  %m : Tensor = aten::tanh(%x)
  %a : Tensor = aten::matmul(%m, %w)
  %v : Tensor = aten::select(%a, %0, %0)
  %d : Tensor = aten::as_strided(%v, %sizes, %sizes, %0)
  %t : Tensor = aten::t(%a)
  %e : Tensor = aten::mul(%t, %d)
  %f : Tensor = aten::exp(%e)
  return (%f)
",
        );
        assert_eq!(
            parts,
            [vec!["aten::tanh", "aten::matmul"], vec!["aten::mul", "aten::exp"]]
        );
        let between = ["aten::select", "aten::as_strided", "aten::t"];
        assert_eq!(rest[1..rest.len() - 1], between);
    }

    #[test]
    fn blocks_are_searched_and_taken_whole() {
        let (parts, rest) = parts(
            "graph(%x : Tensor, %c : bool):
  %1 : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %y : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::relu(%x)
      -> (%a)
    block1():
      %b : Tensor = aten::tanh(%x)
      -> (%b)
  %s : Tensor = aten::exp(%y)
  %z : Tensor = prim::Loop(%1, %true, %s)
    block0(%i : int, %t : Tensor):
      %u : Tensor = aten::mul(%t, %t)
      %v : Tensor = aten::add(%u, %t, %i)
      %go : bool = aten::Bool(%v)
      -> (%go, %v)
  return (%z)
",
        );
        assert_eq!(parts.len(), 2);
        assert!(
            parts.contains(&vec!["prim::If".to_owned(), "aten::exp".to_owned()]),
            "{parts:?}"
        );
        assert!(
            parts.contains(&vec!["aten::mul".to_owned(), "aten::add".to_owned()]),
            "{parts:?}"
        );
        assert_eq!(rest, ["prim::TensorExprGroup", "prim::Loop"]);
    }
}
