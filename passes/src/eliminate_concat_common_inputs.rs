//! Concatenations that begin or end with another: `eliminate-concat-common-inputs`.
//!
//! `cat([a, b, c])` after `ab = cat([a, b])` along the same dimension becomes `cat([ab, c])`, and so at the end.
//!
//! **Sound when**
//! - both lists are built in the graph;
//! - they, the tensors in them, and the first result are not written;
//! - the node of the first result always runs before the second;
//! - all tensors have one dtype by their types. Otherwise, elements might be rounded twice.
//!
//! **Not done.** As in PyTorch, common parts in the middle; also empty parts, and parts of one tensor, which save nothing.

use crate::AliasDb;
use crate::combine_concats::{Concatenation, is_cat};
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use frazil_ir::{Graph, NodeId, ValueId};

/// Declaration of the pass `eliminate-concat-common-inputs` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "eliminate-concat-common-inputs",
    summary: "Reuses an earlier concatenation that is the beginning or end of another one.",
    before: "graph(%x : Float(2), %y : Float(2), %z : Float(2)):
  %0 : int = prim::Constant[value=0]()
  %a : Tensor[] = prim::ListConstruct(%x, %y)
  %b : Tensor = aten::cat(%a, %0)
  %c : Tensor[] = prim::ListConstruct(%x, %y, %z)
  %d : Tensor = aten::cat(%c, %0)
  return (%b, %d)
",
    after: "graph(%x : Float(2), %y : Float(2), %z : Float(2)):
  %3 : int = prim::Constant[value=0]()
  %a : Tensor[] = prim::ListConstruct(%x, %y)
  %b : Tensor = aten::cat(%a, %3)
  %8 : Tensor[] = prim::ListConstruct(%b, %z)
  %d : Tensor = aten::cat(%8, %3)
  return (%b, %d)
",
    options: &[],
    build: |_| AnyPass::graph(EliminateConcatCommonInputs),
};

/// The pass `eliminate-concat-common-inputs`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct EliminateConcatCommonInputs;

/// Maximum number of earlier concatenations with which a concatenation is compared.
const MAX_EARLIER: usize = 64;

impl GraphPass<TorchScript> for EliminateConcatCommonInputs {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let db = cx.alias_db(graph);
        let all: Vec<(NodeId, Concatenation)> = graph
            .all_nodes()
            .into_iter()
            .filter(|n| is_cat(graph, *n))
            .filter_map(|n| Some((n, Concatenation::of(graph, n, &db)?)))
            .collect();
        for (i, (node, cat)) in all.iter().enumerate() {
            let earlier = all[..i].iter().rev().take(MAX_EARLIER);
            // The longest part saves most.
            let best = earlier
                .filter_map(|(first, part)| {
                    with_part(graph, &db, cat, *first, part)
                        .filter(|_| graph.output(*first).is_some_and(|v| graph.dominates(v, *node)))
                })
                .min_by_key(Vec::len);
            if let Some(items) = best {
                if !cx.rewrite("concatenations shortened") {
                    break;
                }
                Concatenation::put(graph, *node, &items);
            }
        }
        Ok(())
    }
}

/// Returns the elements of `cat`, with its first or last elements replaced by the result of `first`; `None` if they do
/// not match.
fn with_part(
    graph: &Graph,
    db: &AliasDb,
    cat: &Concatenation,
    first: NodeId,
    part: &Concatenation,
) -> Option<Vec<ValueId>> {
    let result = graph.output(first)?;
    if part.dim != cat.dim || part.items.len() < 2 || db.has_writers(result) {
        return None;
    }
    let one_dtype = cat.dtype(graph).is_some() && cat.dtype(graph) == part.dtype(graph);
    let items = if let Some(rest) = cat.items.strip_prefix(part.items.as_slice()) {
        [&[result], rest].concat()
    } else {
        let rest = cat.items.strip_suffix(part.items.as_slice())?;
        [rest, &[result]].concat()
    };
    one_dtype.then_some(items)
}
