//! Dead code elimination: `dce`.
//!
//! A node is live if it has visible effects, writes to memory that a live node or code outside may read, or has a result that a live
//! node uses. All other nodes are removed, and so are unused outputs of branches and loops.
//!
//! **Sound when** a node's effects are known: a node whose operator has no schema is live. A write is live if the written memory may be known outside, may be
//! reached from a result of the graph, or may be read by a live node. Writes to memory that only dead nodes use are dead. The same applies to assignments to
//! attributes of an instance that is not known outside.
//!
//! **Not done.** As in PyTorch, a loop that may not terminate is removed if nothing in it is live. So is an operator that might fail on its operands. With
//! `side-effects=true`, nodes with visible effects are also treated as dead unless they write. That is meant for measurements, and changes the program.

use crate::alias_db::PendingWrites;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript, joins_memory};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support::effects::Effect;
use crate::{AliasDb, support};
use frazil_ir::{AttributeValue, BlockId, Definition, Graph, NodeId, ValueId, symbols};
use std::sync::Arc;

/// Declaration of the pass `dce` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "dce",
    summary: "Removes nodes whose results are unused and whose side effects cannot be observed.",
    before: "graph(%x : Tensor):
  %y : Tensor = aten::mul(%x, %x)
  return (%x)
",
    after: "graph(%x : Tensor):
  return (%x)
",
    options: &[OptionInfo {
        name: "side-effects",
        kind: OptionKind::Bool,
        default: "false",
        doc: "Remove nodes with side effects too, unless they write to live memory.",
    }],
    build: |options| {
        AnyPass::graph(DeadCodeElimination {
            remove_side_effects: options.bool("side-effects"),
        })
    },
};

const STATISTIC: &str = "nodes removed";

/// Maximum number of rounds of the pass, to limit its time.
const MAX_ROUNDS: usize = 8;

/// The pass `dce`. See the [module documentation](self).
#[derive(Clone, Debug, Default)]
pub struct DeadCodeElimination {
    /// Treats nodes with side effects as dead, unless their results are used.
    pub remove_side_effects: bool,
}

impl GraphPass<TorchScript> for DeadCodeElimination {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        drop_unused_arguments(graph);
        for _ in 0..MAX_ROUNDS {
            if !self.round(graph, cx) {
                break;
            }
        }
        Ok(())
    }
}

impl DeadCodeElimination {
    /// Removes dead nodes. Returns true if that may have separated memory that was treated as one location, so that another round may find more dead nodes.
    fn round(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> bool {
        let db = cx.alias_db(graph);
        let mut live = Liveness {
            graph,
            db: &db,
            nodes: vec![false; graph.node_capacity()],
            values: vec![false; graph.value_capacity()],
            work: Vec::new(),
            pending: PendingWrites::new(&db),
        };
        live.mark_all(cx, self.remove_side_effects);
        let Liveness { nodes, values, .. } = live;
        let all = graph.all_nodes();
        let is_dead = |n: &&NodeId| !nodes[n.as_u32() as usize];
        let again = db.has_writes() && all.iter().filter(is_dead).any(|n| joins_memory(cx, graph, *n));
        sweep(graph, &all, &nodes, &values, cx);
        again
    }
}

/// Removes the operands of forks whose parameter the forked graph does not use.
fn drop_unused_arguments(graph: &mut Graph) {
    let is_fork = |n: &NodeId| graph.kind(*n) == symbols::PRIM_FORK;
    let forks: Vec<NodeId> = graph.walk(graph.root()).filter(is_fork).collect();
    for node in forks {
        let Some(body) = graph.attribute(node, symbols::ATTR_SUBGRAPH).and_then(|a| a.as_graph()) else {
            continue;
        };
        let unused = |g: &Graph, i: usize| g.inputs().get(i).is_some_and(|v| !g.has_uses(*v));
        if body.inputs().len() != graph.operand_count(node) || !(0..body.inputs().len()).any(|i| unused(body, i)) {
            continue;
        }
        let mut body = (**body).clone();
        let root = body.root();
        for i in (0..body.inputs().len()).rev() {
            if unused(&body, i) && body.remove_parameter(root, i) {
                graph.remove_operand(node, i);
            }
        }
        graph.set_attribute(node, symbols::ATTR_SUBGRAPH, AttributeValue::Graph(Arc::new(body)));
    }
}

struct Liveness<'a> {
    graph: &'a Graph,
    db: &'a AliasDb,
    /// Liveness of nodes. Return nodes are never live; their operands are marked individually.
    nodes: Vec<bool>,
    values: Vec<bool>,
    work: Vec<ValueId>,
    /// Nodes that write to memory for which no live read has been found yet.
    pending: PendingWrites,
}

impl Liveness<'_> {
    fn mark_all(&mut self, cx: &mut PassContext<'_>, remove_side_effects: bool) {
        let g = self.graph;
        for v in g.outputs() {
            self.mark_value(v);
        }
        for node in g.walk(g.root()) {
            if g.kind(node) == symbols::PRIM_IF || g.kind(node) == symbols::PRIM_LOOP {
                continue;
            }
            let seen = match cx.effect(g, node) {
                Effect::Pure | Effect::Random => false,
                Effect::Writes => self.is_seen(node),
                Effect::Visible => !remove_side_effects || self.db.writes_to_wildcard(node),
            };
            if seen || !self.pending.add(self.db, node) {
                self.mark_node(node);
            }
        }
        self.propagate();
    }

    fn is_seen(&self, node: NodeId) -> bool {
        !self.db.is_mutable(node) || self.db.writes_to_wildcard(node)
    }

    fn mark_value(&mut self, value: ValueId) {
        if !std::mem::replace(&mut self.values[value.as_u32() as usize], true) {
            self.work.push(value);
        }
    }

    /// Marks a node, its operands, and the nodes that contain it as live.
    fn mark_node(&mut self, node: NodeId) {
        let mut inside = Vec::new();
        self.mark_upwards(node, Some(&mut inside));
        // All nested nodes have been added already, the outermost first.
        for inner in inside {
            self.mark_upwards(inner, None);
        }
    }

    /// Marks a node, its operands, and the nodes that contain it as live. If the node is an unknown operator with blocks, it may use them in any way, so the
    /// nodes in the blocks are added to `inside`.
    fn mark_upwards(&mut self, node: NodeId, mut inside: Option<&mut Vec<NodeId>>) {
        let g = self.graph;
        let mut cursor = Some(node);
        while let Some(n) = cursor {
            if std::mem::replace(&mut self.nodes[n.as_u32() as usize], true) {
                return;
            }
            match g.kind(n) {
                // The trip count and the conditions; carried values are marked individually.
                symbols::PRIM_LOOP => {
                    g.operands(n).take(2).for_each(|v| self.mark_value(v));
                    let conditions = g.node_blocks(n).iter().filter_map(|b| g.results(*b).next());
                    conditions.for_each(|v| self.mark_value(v));
                }
                _ => g.operands(n).for_each(|v| self.mark_value(v)),
            }
            if g.kind(n) != symbols::PRIM_IF && g.kind(n) != symbols::PRIM_LOOP {
                for &block in g.node_blocks(n) {
                    g.results(block).for_each(|v| self.mark_value(v));
                    if let Some(inside) = &mut inside {
                        inside.extend(g.walk(block));
                    }
                }
            }
            cursor = g.parent(n).and_then(|b| g.owner(b));
        }
    }

    fn propagate(&mut self) {
        let g = self.graph;
        let mut needed = Vec::new();
        while let Some(value) = self.work.pop() {
            // A write is needed once a live node may read the written memory.
            self.pending.read(self.db, value, &mut needed);
            needed.drain(..).for_each(|node| self.mark_node(node));
            match g.definition(value) {
                Definition::Output(node, index) => {
                    self.mark_node(node);
                    match g.kind(node) {
                        symbols::PRIM_IF => {
                            for &block in g.node_blocks(node) {
                                self.mark_result(block, index);
                            }
                        }
                        symbols::PRIM_LOOP => self.mark_carried(node, index),
                        _ => {}
                    }
                }
                Definition::Parameter(block, index) => {
                    if let Some(owner) = g.owner(block) {
                        self.mark_node(owner);
                        if g.kind(owner) == symbols::PRIM_LOOP && index > 0 {
                            self.mark_carried(owner, index - 1);
                        }
                    }
                }
            }
        }
    }

    /// Marks carried value `index` of a loop: its initial value and the value that the body passes on.
    fn mark_carried(&mut self, node: NodeId, index: usize) {
        let g = self.graph;
        if let Some(initial) = g.operand(node, index + 2) {
            self.mark_value(initial);
        }
        for &block in g.node_blocks(node) {
            self.mark_result(block, index + 1);
        }
    }

    fn mark_result(&mut self, block: BlockId, index: usize) {
        if let Some(v) = self.graph.operand(self.graph.return_node(block), index) {
            self.mark_value(v);
        }
    }
}

/// Erases all nodes that are not live.
fn sweep(graph: &mut Graph, all: &[NodeId], nodes: &[bool], values: &[bool], cx: &mut PassContext<'_>) {
    let is_live = |n: NodeId| nodes.get(n.as_u32() as usize).copied().unwrap_or(true);
    let value_live = |v: ValueId| values.get(v.as_u32() as usize).copied().unwrap_or(true);
    let dead = all.iter().filter(|n| !is_live(**n)).count() as u64;
    if cx.fuel_left().is_some_and(|left| left < dead) {
        // Not enough fuel for all: erases the last ones, which have no uses; outputs of branches and loops are kept.
        for &node in all.iter().rev().filter(|n| !is_live(**n)) {
            let used = graph.node_outputs(node).iter().any(|v| graph.has_uses(*v));
            if graph.is_alive(node) && !used && cx.rewrite(STATISTIC) {
                graph.erase(node);
            }
        }
        return;
    }
    // Outputs of live branches and loops first, since they may be the only uses of dead nodes.
    for &node in all.iter().filter(|n| is_live(**n)) {
        let is_loop = match graph.kind(node) {
            symbols::PRIM_IF => false,
            symbols::PRIM_LOOP => true,
            _ => continue,
        };
        let shift = usize::from(is_loop);
        for index in (0..graph.node_outputs(node).len()).rev() {
            let output = graph.node_outputs(node)[index];
            let carried = is_loop
                && graph
                    .node_blocks(node)
                    .iter()
                    .any(|b| graph.parameters(*b).get(index + 1).is_some_and(|p| value_live(*p)));
            if value_live(output) || carried {
                continue;
            }
            // Remaining uses are by dead nodes or unused block results.
            for block in graph.node_blocks(node).to_vec() {
                graph.remove_result(block, index + shift);
            }
            if is_loop {
                graph.remove_operand(node, index + 2);
            }
        }
    }
    // In reverse order, users before their operands: a dead node is used only by dead nodes behind it.
    for &node in all.iter().rev() {
        if !is_live(node) && graph.is_alive(node) {
            // There is fuel for all.
            let _ = graph.erase(node) && cx.rewrite(STATISTIC);
        }
    }
    // Once their users are erased, outputs and parameters that were marked above can be removed.
    for &node in all.iter().filter(|n| is_live(**n)) {
        if !matches!(graph.kind(node), symbols::PRIM_IF | symbols::PRIM_LOOP) {
            continue;
        }
        let is_loop = graph.kind(node) == symbols::PRIM_LOOP;
        for index in (0..graph.node_outputs(node).len()).rev() {
            let wanted = graph.node_blocks(node).first().map_or(0, |b| graph.results(*b).len());
            if graph.node_outputs(node).len() + usize::from(is_loop) == wanted {
                break;
            }
            let output = graph.node_outputs(node)[index];
            let block = graph.node_blocks(node).first().copied();
            let parameter = block
                .filter(|_| is_loop)
                .and_then(|b| graph.parameters(b).get(index + 1).copied());
            if value_live(output) || parameter.is_some_and(value_live) {
                continue;
            }
            graph.remove_output(node, index);
            if let (Some(block), true) = (block, is_loop) {
                graph.remove_parameter(block, index + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::schema::Catalogue;
    use frazil_ir::{Builder, Context, types};
    use std::sync::Arc;

    fn setting() -> (Arc<Context>, Catalogue, Graph) {
        let ctx = Arc::new(Context::new());
        let mut catalogue = Catalogue::new(ctx.clone());
        catalogue.add_lines(
            "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor\n\
             aten::relu_(Tensor(a!) self) -> Tensor(a!)\n\
             aten::add.int(int a, int b) -> int\n\
             aten::warn(str message, int stacklevel=2) -> ()\n",
        );
        (ctx.clone(), catalogue, Graph::new(ctx))
    }

    fn kinds(g: &Graph) -> Vec<String> {
        g.all_nodes().into_iter().map(|n| g.kind_name(n).to_owned()).collect()
    }

    fn run(g: &mut Graph, c: &Catalogue) {
        DeadCodeElimination::default().run(g, &mut PassContext::new(c)).unwrap();
        g.verify(None).unwrap();
    }

    #[test]
    fn unused_goes_and_seen_stays() {
        let (ctx, c, mut g) = setting();
        let x = g.add_input(types::TENSOR);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let mul = ctx.symbol("aten::mul");
        let dead = b.op(mul, &[x, x], types::TENSOR);
        b.op(mul, &[dead, x], types::TENSOR);
        let text = b.constant("careful");
        let level = b.constant(2);
        b.node(symbols::ATEN_WARN, &[text, level], &[]);
        b.node(ctx.symbol("foo::unknown"), &[x], &[types::TENSOR]);
        b.add_result(root, x);
        run(&mut g, &c);
        assert_eq!(
            kinds(&g),
            ["prim::Constant", "prim::Constant", "aten::warn", "foo::unknown"]
        );
    }

    #[test]
    fn what_is_seen_goes_when_that_is_asked_for_unless_it_writes() {
        let (ctx, c, mut g) = setting();
        let x = g.add_input(types::TENSOR);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        b.node(symbols::PRIM_PRINT, &[x], &[]);
        b.node(ctx.symbol("foo::unknown"), &[x], &[]);
        b.op(ctx.symbol("aten::relu_"), &[x], types::TENSOR);
        b.add_result(root, x);
        let pass = DeadCodeElimination {
            remove_side_effects: true,
        };
        pass.run(&mut g, &mut PassContext::new(&c)).unwrap();
        assert_eq!(kinds(&g), ["foo::unknown", "aten::relu_"]);
    }

    #[test]
    fn writes_are_kept_only_if_they_may_be_read() {
        let (ctx, c, mut g) = setting();
        let x = g.add_input(types::TENSOR);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let (mul, relu) = (ctx.symbol("aten::mul"), ctx.symbol("aten::relu_"));
        let local = b.op(mul, &[x, x], types::TENSOR);
        b.op(relu, &[local], types::TENSOR);
        let read = b.op(mul, &[x, x], types::TENSOR);
        b.op(relu, &[read], types::TENSOR);
        b.op(relu, &[x], types::TENSOR);
        let out = b.op(mul, &[read, read], types::TENSOR);
        b.add_result(root, out);
        run(&mut g, &c);
        assert_eq!(
            kinds(&g),
            ["aten::mul", "aten::relu_", "aten::relu_", "aten::mul"],
            "the write to a temporary without reads was removed"
        );
    }

    #[test]
    fn loops_lose_unused_carried_values() {
        let (ctx, c, mut g) = setting();
        let n = g.add_input(types::INT);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let (one, yes) = (b.constant(1), b.constant(true));
        let node = b.node(symbols::PRIM_LOOP, &[n, yes, one, one], &[types::INT, types::INT]);
        let body = b.add_block(node);
        let params: Vec<_> = (0..3).map(|_| b.add_parameter(body, types::INT)).collect();
        let add = ctx.symbol("aten::add");
        let mut inner = Builder::at_end(&mut g, body);
        let p = inner.op(add, &[params[1], one], types::INT);
        let q = inner.op(add, &[params[2], one], types::INT);
        g.set_results(body, &[yes, p, q]);
        let out = g.node_outputs(node)[1];
        g.add_result(root, out);
        run(&mut g, &c);
        assert_eq!(g.node_outputs(node).len(), 1);
        assert_eq!(g.parameters(body).len(), 2);
        assert_eq!(g.operand_count(node), 3);
        assert_eq!(kinds(&g).iter().filter(|k| *k == "aten::add").count(), 1);
    }

    #[test]
    fn branches_without_effects_go() {
        let (_, c, mut g) = setting();
        let cond = g.add_input(types::BOOL);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let one = b.constant(1);
        let branch = b.node(symbols::PRIM_IF, &[cond], &[types::INT]);
        for _ in 0..2 {
            let block = b.add_block(branch);
            b.add_result(block, one);
        }
        run(&mut g, &c);
        assert!(kinds(&g).is_empty());
    }
}
