//! Folding of dictionaries that are built in the graph: `peephole-dict-idioms`.
//!
//! Folds the value at a constant key, and the number of entries, of a dictionary that a `prim::DictConstruct` builds.
//!
//! **Sound when** the dictionary is not written and its keys are distinct constants of one type (integers, floats, strings, bools). Access with a missing
//! key is kept and raises; so are dictionaries with a NaN key, which equals no key.

use crate::AliasDb;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::rewrite::{Replacement, built_by, rewrite_nodes};
use frazil_ir::{Constant, Graph, NodeId, ValueId, symbols};
use std::collections::HashMap;

/// Declaration of the pass `peephole-dict-idioms` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "peephole-dict-idioms",
    summary: "Evaluates lengths, elements and similar operators on dictionaries that are built in the graph.",
    before: "graph(%a : int, %b : int):
  %0 : str = prim::Constant[value=\"a\"]()
  %1 : str = prim::Constant[value=\"b\"]()
  %d : Dict(str, int) = prim::DictConstruct(%0, %a, %1, %b)
  %v : int = aten::__getitem__(%d, %1)
  return (%v)
",
    after: "graph(%a : int, %b : int):
  %2 : str = prim::Constant[value=\"a\"]()
  %3 : str = prim::Constant[value=\"b\"]()
  %d : Dict(str, int) = prim::DictConstruct(%2, %a, %3, %b)
  return (%b)
",
    options: &[],
    build: |_| AnyPass::graph(PeepholeDictIdioms),
};

/// The pass `peephole-dict-idioms`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct PeepholeDictIdioms;

/// The constant key of a dictionary entry.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    Int(i64),
    Float(u64),
    Bool(bool),
    Str(std::sync::Arc<str>),
}

impl GraphPass<TorchScript> for PeepholeDictIdioms {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let db = cx.alias_db(graph);
        let mut known: HashMap<NodeId, Option<HashMap<Key, ValueId>>> = HashMap::new();
        rewrite_nodes(graph, cx, "dictionary operations replaced", |g, n| {
            rewrite(g, n, &db, &mut known)
        });
        Ok(())
    }
}

fn rewrite(
    graph: &Graph,
    node: NodeId,
    db: &AliasDb,
    known: &mut HashMap<NodeId, Option<HashMap<Key, ValueId>>>,
) -> Option<Replacement> {
    let dict = graph.operand(node, 0)?;
    let construct = built_by(graph, dict, symbols::PRIM_DICT_CONSTRUCT).filter(|_| !db.has_writers(dict))?;
    let asks = graph.kind_name(node);
    if asks != "aten::len" && asks != "aten::__getitem__" {
        return None;
    }
    let entries = known
        .entry(construct)
        .or_insert_with(|| entries(graph, construct))
        .as_ref()?;
    if asks == "aten::len" {
        return Some(Replacement::Constant(Constant::Int(entries.len() as i64)));
    }
    let value = entries.get(&key(graph, graph.operand(node, 1)?)?)?;
    Some(Replacement::Value(*value))
}

/// Returns the values of the entries by key, if all keys are constant and distinct.
fn entries(graph: &Graph, construct: NodeId) -> Option<HashMap<Key, ValueId>> {
    let operands: Vec<ValueId> = graph.operands(construct).collect();
    let mut entries = HashMap::new();
    for entry in operands.chunks(2) {
        let &[k, value] = entry else { return None };
        if entries.insert(key(graph, k)?, value).is_some() {
            return None;
        }
    }
    Some(entries)
}

fn key(graph: &Graph, value: ValueId) -> Option<Key> {
    Some(match graph.constant(value)? {
        Constant::Int(i) => Key::Int(i),
        // Zeros of either sign are one key.
        Constant::Float(f) if !f.is_nan() => Key::Float((f + 0.0).to_bits()),
        Constant::Bool(b) => Key::Bool(b),
        Constant::Str(s) => Key::Str(s),
        _ => return None,
    })
}
