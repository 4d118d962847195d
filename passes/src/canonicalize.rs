//! Names and order that depend on nothing but what a graph computes: `canonicalize`.
//!
//! Values that have no name of their own are numbered anew in the order of the graph, and results of branches stand in the order in which they are first used.
//! Two graphs that differ in nothing else come out as one text. With `keep-names=false` all names go.
//!
//! **Sound** for any graph: names mean nothing, and operands and results are moved together.
//!
//! **Not done.** What loops carry keeps its order: PyTorch numbers it too, but a loop's operands are what people look for.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support;
use crate::support::retype::all_values;
use frazil_ir::{Graph, NodeId, ValueId, symbols};

/// How the pass is named.
pub static INFO: PassInfo = PassInfo {
    name: "canonicalize",
    summary: "Renumbers values without names, and orders the results of branches by their use.",
    before: "graph(%x : Tensor, %c : bool):
  %9 : Tensor = aten::relu(%x)
  %7 : Tensor, %5 : Tensor = prim::If(%c)
    block0():
      -> (%x, %9)
    block1():
      -> (%9, %x)
  return (%5, %7)
",
    after: "graph(%x : Tensor, %c : bool):
  %2 : Tensor = aten::relu(%x)
  %3 : Tensor, %4 : Tensor = prim::If(%c)
    block0():
      -> (%2, %x)
    block1():
      -> (%x, %2)
  return (%3, %4)
",
    options: &[OptionInfo {
        name: "keep-names",
        kind: OptionKind::Bool,
        default: "true",
        doc: "Keep names that are not numbers.",
    }],
    build: |options| {
        AnyPass::graph(Canonicalize {
            keep_names: options.bool("keep-names"),
        })
    },
};

/// See the [module documentation](self).
#[derive(Clone, Copy, Debug)]
pub struct Canonicalize {
    /// Keep names that are no numbers.
    pub keep_names: bool,
}

impl Default for Canonicalize {
    fn default() -> Self {
        Canonicalize { keep_names: true }
    }
}

impl GraphPass for Canonicalize {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        for node in graph.all_nodes() {
            if graph.kind(node) == symbols::PRIM_IF {
                order_by_use(graph, node, cx);
            }
        }
        for value in all_values(graph) {
            let nameless = graph.value_name(value).is_some_and(|name| {
                let text = name.display(graph.ctx()).to_string();
                !self.keep_names || text.bytes().all(|c| c.is_ascii_digit())
            });
            if nameless && cx.rewrite("names dropped") {
                graph.clear_value_name(value);
            }
        }
        Ok(())
    }
}

/// Puts the results of a branch in the order of their first uses; those that nobody uses last.
fn order_by_use(graph: &mut Graph, branch: NodeId, cx: &mut PassContext<'_>) {
    let outputs = graph.node_outputs(branch).to_vec();
    let mut order: Vec<usize> = (0..outputs.len()).collect();
    order.sort_by(|&a, &b| first_use(graph, outputs[a], outputs[b]).then(a.cmp(&b)));
    if order.is_sorted() || !cx.rewrite("branches ordered") {
        return;
    }
    graph.permute_outputs(branch, &order);
    for block in graph.node_blocks(branch).to_vec() {
        let results: Vec<ValueId> = graph.results(block).collect();
        let moved: Vec<ValueId> = order.iter().filter_map(|i| results.get(*i).copied()).collect();
        graph.set_results(block, &moved);
    }
}

/// Which of two values is used first.
fn first_use(graph: &Graph, a: ValueId, b: ValueId) -> std::cmp::Ordering {
    use std::cmp::Ordering;
    let first = |v: ValueId| {
        graph.uses(v).min_by(|x, y| {
            let by_place = graph.compare(x.user, y.user).unwrap_or(Ordering::Equal);
            by_place.then(x.index.cmp(&y.index))
        })
    };
    match (first(a), first(b)) {
        (Some(x), Some(y)) => {
            let by_place = graph.compare(x.user, y.user).unwrap_or(Ordering::Equal);
            by_place.then(x.index.cmp(&y.index))
        }
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}
