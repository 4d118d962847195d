//! Removal of neutral arithmetic on tensors: `peephole-alias-sensitive`.
//!
//! `x + 0`, `x - 0`, `x * 1` and `x / 1` become `x`.
//!
//! **Sound when**
//! - the new tensor cannot be distinguished from the old one ([`AliasDb::safe_to_change_aliasing`]): neither is written, and at most one is known outside;
//! - the dtype does not change. With an integer constant (and no division) this holds for any tensor, otherwise only for a tensor with a floating-point dtype
//!   in its type.
//!
//! Tensors that have been merged in this run are not considered again, because the alias information is not updated; run the pass twice for chains.
//!
//! **One exception**, as in PyTorch: a tensor of unknown dtype is assumed to be numeric, although `x + 0` would promote a bool tensor. With
//! `like-pytorch=false`, such operations are kept.

use crate::AliasDb;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support;
use crate::support::rewrite::{Replacement, replace};
use frazil_ir::{DType, Graph, NodeId, TypeKind, ValueId, types};

/// Declaration of the pass `peephole-alias-sensitive` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "peephole-alias-sensitive",
    summary: "Removes additions of zero and multiplications by one where aliasing allows it.",
    before: "graph(%x : Float(2, 2)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::add(%x, %0, %1)
  %z : Tensor = aten::relu(%y)
  return (%z)
",
    after: "graph(%x : Float(2, 2)):
  %1 : int = prim::Constant[value=0]()
  %2 : int = prim::Constant[value=1]()
  %z : Tensor = aten::relu(%x)
  return (%z)
",
    options: &[
        OptionInfo {
            name: "disable-shape-peepholes",
            kind: OptionKind::Bool,
            default: "false",
            doc: "Do not rely on the dtypes in tensor types.",
        },
        OptionInfo {
            name: "like-pytorch",
            kind: OptionKind::Bool,
            default: "false",
            doc: "Assume that tensors of unknown dtype are not bool, as PyTorch does.",
        },
    ],
    build: |options| {
        AnyPass::graph(PeepholeAliasSensitive {
            disable_shape_peepholes: options.bool("disable-shape-peepholes"),
            like_pytorch: options.bool("like-pytorch"),
        })
    },
};

/// The pass `peephole-alias-sensitive`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct PeepholeAliasSensitive {
    /// Does not use the dtypes in tensor types.
    pub disable_shape_peepholes: bool,
    /// Assumes that tensors of unknown dtype are numeric, as PyTorch does.
    pub like_pytorch: bool,
}

impl GraphPass<TorchScript> for PeepholeAliasSensitive {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let db = cx.alias_db(graph);
        // The alias information of these, and of the tensors that they are views of, becomes invalid.
        let mut stale = db.location_set();
        for node in graph.all_nodes() {
            if !graph.is_alive(node) {
                continue;
            }
            let (Some(input), Some(output)) = (self.unchanged(graph, node), graph.output(node)) else {
                continue;
            };
            if !is_safe(&db, &stale, input, output) {
                continue;
            }
            if !cx.rewrite("operations without effect removed") {
                break;
            }
            db.add_to(&mut stale, input);
            db.add_to(&mut stale, output);
            replace(graph, node, Replacement::Value(input));
        }
        Ok(())
    }
}

fn is_safe(db: &AliasDb, stale: &crate::alias_db::LocationSet, input: ValueId, output: ValueId) -> bool {
    db.safe_to_change_aliasing(input, output) && !db.is_in(stale, input) && !db.is_in(stale, output)
}

impl PeepholeAliasSensitive {
    /// Returns the operand of `node` that has the same elements as the result.
    fn unchanged(&self, graph: &Graph, node: NodeId) -> Option<ValueId> {
        let neutral = match graph.kind_name(node) {
            "aten::add" | "aten::sub" => 0.0,
            "aten::mul" | "aten::div" => 1.0,
            _ => return None,
        };
        let tensor = graph.operand(node, 0)?;
        let TypeKind::Tensor(ty) = graph.ctx().type_kind(graph.ty(tensor)) else {
            return None;
        };
        let dtype = ty.dtype.filter(|_| !self.disable_shape_peepholes);
        let numbers: Vec<ValueId> = graph.operands(node).skip(1).collect();
        let whole = numbers.iter().all(|v| graph.ty(*v) == types::INT) && graph.kind_name(node) != "aten::div";
        let keeps_dtype = match dtype {
            Some(d) => d.is_floating_point() || (whole && d != DType::Bool),
            None => whole && self.like_pytorch,
        };
        let wanted: &[f64] = match graph.kind_name(node) {
            // The other operand, and its factor.
            "aten::add" | "aten::sub" => &[neutral, 1.0],
            _ => &[neutral],
        };
        let is = |v: &ValueId, n: f64| graph.constant(*v).and_then(|c| c.as_float()) == Some(n);
        let neutral = numbers.len() == wanted.len() && numbers.iter().zip(wanted).all(|(v, n)| is(v, *n));
        // Minus zero plus zero is zero; PyTorch ignores this difference too.
        (keeps_dtype && neutral).then_some(tensor)
    }
}
