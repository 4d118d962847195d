//! Flattening of nested concatenations: `combine-concats`.
//!
//! A concatenation that is only an element of another along the same dimension is replaced by its elements.
//!
//! **Sound when**
//! - both lists are built in the graph;
//! - they, the tensors in them, and the inner result are not written;
//! - the inner result has no other use;
//! - the dimension is the same constant in both (from the same end);
//! - all tensors have one dtype by their types. Otherwise, the inner concatenation may have rounded them. PyTorch does not check this.

use crate::AliasDb;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::rewrite::{built_list, int};
use frazil_ir::{Builder, DType, Graph, NodeId, TypeKind, ValueId, symbols};

/// Declaration of the pass `combine-concats` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "combine-concats",
    summary: "Merges nested concatenations.",
    before: "graph(%x : Float(2), %y : Float(2)):
  %0 : int = prim::Constant[value=0]()
  %a : Tensor[] = prim::ListConstruct(%x, %y)
  %b : Tensor = aten::cat(%a, %0)
  %c : Tensor[] = prim::ListConstruct(%b, %x)
  %d : Tensor = aten::cat(%c, %0)
  return (%d)
",
    after: "graph(%x : Float(2), %y : Float(2)):
  %2 : int = prim::Constant[value=0]()
  %7 : Tensor[] = prim::ListConstruct(%x, %y, %x)
  %d : Tensor = aten::cat(%7, %2)
  return (%d)
",
    options: &[],
    build: |_| AnyPass::graph(CombineConcats),
};

/// The pass `combine-concats`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct CombineConcats;

impl GraphPass<TorchScript> for CombineConcats {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let cats: Vec<NodeId> = graph.all_nodes().into_iter().filter(|n| is_cat(graph, *n)).collect();
        if cats.len() < 2 {
            return Ok(());
        }
        let db = cx.alias_db(graph);
        // Inner concatenations come first, and are complete before they are inserted into others.
        for outer in cats {
            while let Some((inner, items)) = combined(graph, outer, &db) {
                if !cx.rewrite("concatenations combined") {
                    return Ok(());
                }
                Concatenation::put(graph, outer, &items);
                let list = graph.operand(inner, 0).and_then(|v| graph.defining_node(v));
                for node in [Some(inner), list].into_iter().flatten() {
                    // A list with other uses is kept.
                    graph.erase(node);
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn is_cat(graph: &Graph, node: NodeId) -> bool {
    graph.kind_name(node) == "aten::cat"
}

/// The operands of a concatenation: a list that the graph builds. Neither the list nor its elements are written.
pub(crate) struct Concatenation {
    /// The dimension along which the tensors are concatenated.
    pub(crate) dim: i64,
    /// The concatenated tensors.
    pub(crate) items: Vec<ValueId>,
}

impl Concatenation {
    pub(crate) fn of(graph: &Graph, cat: NodeId, db: &AliasDb) -> Option<Concatenation> {
        let list = graph.operand(cat, 0)?;
        let items: Vec<ValueId> = graph.operands(built_list(graph, list)?).collect();
        let written = db.has_writers_inside(list) || items.iter().any(|v| db.has_writers(*v));
        let dim = int(graph, graph.operand(cat, 1)?)?;
        (!written).then_some(Concatenation { dim, items })
    }

    /// Returns the common dtype of the concatenated tensors, if their types state it.
    pub(crate) fn dtype(&self, graph: &Graph) -> Option<DType> {
        let dtype = |v: &ValueId| match graph.ctx().type_kind(graph.ty(*v)) {
            TypeKind::Tensor(ty) => ty.dtype,
            _ => None,
        };
        let first = dtype(self.items.first()?)?;
        self.items.iter().all(|v| dtype(v) == Some(first)).then_some(first)
    }

    /// Makes `items` the concatenated tensors of the node `cat`.
    pub(crate) fn put(graph: &mut Graph, cat: NodeId, items: &[ValueId]) {
        let Some(old) = graph.operand(cat, 0) else { return };
        let ty = graph.ty(old);
        let new = Builder::before(graph, cat).op(symbols::PRIM_LIST_CONSTRUCT, items, ty);
        graph.set_operand(cat, 0, new);
        if let Some(list) = graph.defining_node(old) {
            // A list with other uses is kept.
            graph.erase(list);
        }
    }
}

/// Finds an element of `outer` that is itself a concatenation. Returns its node, and the elements of `outer` with the element replaced by its own elements.
fn combined(graph: &Graph, outer: NodeId, db: &AliasDb) -> Option<(NodeId, Vec<ValueId>)> {
    let whole = Concatenation::of(graph, outer, db)?;
    whole.items.iter().enumerate().find_map(|(i, item)| {
        let inner = graph.defining_node(*item).filter(|n| is_cat(graph, *n))?;
        let part = Concatenation::of(graph, inner, db)?;
        if part.dim != whole.dim || db.has_writers(*item) || graph.single_use(*item).is_none() {
            return None;
        }
        let items = [&whole.items[..i], &part.items, &whole.items[i + 1..]].concat();
        let all = Concatenation { dim: whole.dim, items };
        all.dtype(graph)?;
        Some((inner, all.items))
    })
}
