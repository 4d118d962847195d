//! Folding of integers that are determined by comparisons: `refine-integer-values`.
//!
//! `x == 4` may be known to hold: on the side of a branch that it selects, or after a branch whose other side raises. There, uses of `x` become the constant. A
//! branch with result `x` on one side is replaced by `x` if its result on the other side is the constant that `x` must be there.
//!
//! **Sound** because SSA values do not change: the compared value is the used one. See [`crate::support::refine`].

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::refine::{Facts, Known, Subject, walk};
use crate::support::rewrite::{built_by, int};
use frazil_ir::{Builder, Graph, InsertPoint, NodeId, ValueId, symbols, types};

/// Declaration of the pass `refine-integer-values` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "refine-integer-values",
    summary: "Replaces integers by constants in branches where a comparison determines their value.",
    before: "graph(%x : int):
  %4 : int = prim::Constant[value=4]()
  %c : bool = aten::eq(%x, %4)
  %r : int = prim::If(%c)
    block0():
      %s : int = aten::mul(%x, %x)
      -> (%s)
    block1():
      -> (%x)
  return (%r)
",
    after: "graph(%x : int):
  %1 : int = prim::Constant[value=4]()
  %c : bool = aten::eq(%x, %1)
  %r : int = prim::If(%c)
    block0():
      %4 : int = prim::Constant[value=4]()
      %s : int = aten::mul(%4, %4)
      -> (%s)
    block1():
      -> (%x)
  return (%r)
",
    options: &[],
    build: |_| AnyPass::graph(RefineIntegerValues),
};

/// The pass `refine-integer-values`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct RefineIntegerValues;

const STATISTIC: &str = "uses refined";

impl GraphPass<TorchScript> for RefineIntegerValues {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        walk(graph, &mut Integers { cx });
        Ok(())
    }
}

struct Integers<'p, 'a> {
    cx: &'p mut PassContext<'a>,
}

impl Subject for Integers<'_, '_> {
    fn of(&self, graph: &Graph, value: ValueId) -> Option<ValueId> {
        built_by(graph, value, symbols::PRIM_CONSTANT)
            .is_none()
            .then_some(value)
    }

    fn visit(&mut self, graph: &mut Graph, node: NodeId, known: &Known) {
        let mut constants: Vec<(i64, ValueId)> = Vec::new();
        for (index, operand) in graph.operands(node).enumerate().collect::<Vec<_>>() {
            if graph.ty(operand) != types::INT {
                continue;
            }
            let Some(number) = known.get(operand) else { continue };
            if !self.cx.rewrite(STATISTIC) {
                return;
            }
            let constant = match constants.iter().find(|(n, _)| *n == number) {
                Some((_, v)) => *v,
                None => {
                    let mut b = match graph.parent(node) {
                        Some(block) if graph.return_node(block) == node => Builder::new(graph, InsertPoint::End(block)),
                        _ => Builder::before(graph, node),
                    };
                    b.constant(number)
                }
            };
            constants.push((number, constant));
            graph.set_operand(node, index, constant);
        }
    }

    fn visit_branch(&mut self, graph: &mut Graph, node: NodeId, sides: &[Facts; 2]) {
        let &[then, other] = graph.node_blocks(node) else {
            return;
        };
        for (i, output) in graph.node_outputs(node).to_vec().into_iter().enumerate() {
            let (Some(a), Some(b)) = (graph.results(then).nth(i), graph.results(other).nth(i)) else {
                continue;
            };
            let alike = |value: ValueId, constant: ValueId, facts: &Facts| {
                let known = facts.get(&value).copied();
                known.is_some() && known == int(graph, constant) && graph.dominates(value, node)
            };
            // On the side with the constant, the value equals it.
            let value = if alike(a, b, &sides[1]) {
                a
            } else if alike(b, a, &sides[0]) {
                b
            } else {
                continue;
            };
            if graph.ty(output) == types::INT && graph.has_uses(output) && self.cx.rewrite(STATISTIC) {
                graph.replace_all_uses_with(output, value);
            }
        }
    }
}
