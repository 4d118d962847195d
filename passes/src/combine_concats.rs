//! Concatenations of concatenations: `combine-concats`.
//!
//! A concatenation that is only an element of another along the same dimension is left out: its elements stand in its place.
//!
//! **Sound when** both lists are built in the graph and nobody writes to them, to the tensors in them, or to the inner result; the inner result has
//! no other use, and the dimension is one constant in both (from the same end).

use crate::AliasDb;
use crate::manager::{AnyPass, GraphPass, PassContext, PassError};
use crate::registry::PassInfo;
use crate::support;
use crate::support::rewrite::{built_list, int};
use frazil_ir::{Builder, Graph, NodeId, ValueId, symbols};

/// How the pass is named.
pub static INFO: PassInfo = PassInfo {
    name: "combine-concats",
    summary: "Makes one concatenation of those within one another.",
    before: "graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %a : Tensor[] = prim::ListConstruct(%x, %y)
  %b : Tensor = aten::cat(%a, %0)
  %c : Tensor[] = prim::ListConstruct(%b, %x)
  %d : Tensor = aten::cat(%c, %0)
  return (%d)
",
    after: "graph(%x : Tensor, %y : Tensor):
  %2 : int = prim::Constant[value=0]()
  %7 : Tensor[] = prim::ListConstruct(%x, %y, %x)
  %d : Tensor = aten::cat(%7, %2)
  return (%d)
",
    options: &[],
    build: |_| AnyPass::graph(CombineConcats),
};

/// See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct CombineConcats;

impl GraphPass for CombineConcats {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let cats: Vec<NodeId> = graph.all_nodes().into_iter().filter(|n| is_cat(graph, *n)).collect();
        if cats.len() < 2 {
            return Ok(());
        }
        let db = cx.alias_db(graph);
        // Inner ones stand first, and are whole by the time that they are put into others.
        for outer in cats {
            while let Some((inner, items)) = combined(graph, outer, &db) {
                if !cx.rewrite("concatenations combined") {
                    return Ok(());
                }
                put(graph, outer, inner, &items);
            }
        }
        Ok(())
    }
}

fn is_cat(graph: &Graph, node: NodeId) -> bool {
    graph.kind_name(node) == "aten::cat"
}

/// The list of a concatenation, if nobody writes to it or to what is in it.
fn list(graph: &Graph, cat: NodeId, db: &AliasDb) -> Option<NodeId> {
    let list = graph.operand(cat, 0)?;
    built_list(graph, list).filter(|n| !db.has_writers_inside(list) && !graph.operands(*n).any(|v| db.has_writers(v)))
}

/// An element of `outer` that is itself a concatenation, and all elements with those of that one in its place.
fn combined(graph: &Graph, outer: NodeId, db: &AliasDb) -> Option<(NodeId, Vec<ValueId>)> {
    let dim = int(graph, graph.operand(outer, 1)?)?;
    let items: Vec<ValueId> = graph.operands(list(graph, outer, db)?).collect();
    items.iter().enumerate().find_map(|(i, item)| {
        let inner = graph.defining_node(*item).filter(|n| is_cat(graph, *n))?;
        let same_dim = int(graph, graph.operand(inner, 1)?)? == dim;
        if !same_dim || db.has_writers(*item) || graph.single_use(*item).is_none() {
            return None;
        }
        let mut all = items[..i].to_vec();
        all.extend(graph.operands(list(graph, inner, db)?));
        all.extend_from_slice(&items[i + 1..]);
        Some((inner, all))
    })
}

fn put(graph: &mut Graph, outer: NodeId, inner: NodeId, items: &[ValueId]) {
    let Some(old) = graph.operand(outer, 0) else { return };
    let ty = graph.ty(old);
    let new = Builder::before(graph, outer).op(symbols::PRIM_LIST_CONSTRUCT, items, ty);
    graph.set_operand(outer, 0, new);
    let inner_list = graph.operand(inner, 0);
    for node in [
        graph.defining_node(old),
        Some(inner),
        inner_list.and_then(|v| graph.defining_node(v)),
    ] {
        // Those that somebody else uses stay.
        node.map(|n| graph.erase(n));
    }
}
