//! Canonical names and order, which depend only on the computation of a graph: `canonicalize`.
//!
//! Unnamed values are renumbered in the order of the graph, and results of branches are sorted by their first uses. Two graphs that differ in nothing else
//! become one text. With `keep-names=false` all names are removed.
//!
//! **Sound** for any graph: names have no meaning, and operands and results are permuted together.
//!
//! **Not done.** Carried values of loops keep their order: PyTorch sorts them too, but readers look for a loop's operands.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support;
use crate::support::outputs::{order_of_uses, permute};
use crate::support::retype::all_values;
use frazil_ir::{Graph, NodeId, symbols};

/// Declaration of the pass `canonicalize` for the pass registry.
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

/// The pass `canonicalize`. See the [module documentation](self).
#[derive(Clone, Copy, Debug)]
pub struct Canonicalize {
    /// Keeps the names of values that are not numbers.
    pub keep_names: bool,
}

impl Default for Canonicalize {
    fn default() -> Self {
        Canonicalize { keep_names: true }
    }
}

impl GraphPass<TorchScript> for Canonicalize {
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

/// Sorts the outputs of a branch by their first uses; unused outputs come last.
fn order_by_use(graph: &mut Graph, branch: NodeId, cx: &mut PassContext<'_>) {
    let order = order_of_uses(graph, branch);
    if !order.is_sorted() && cx.rewrite("branches ordered") {
        permute(graph, branch, &order);
    }
}
