//! Arithmetic on tensors that changes nothing: `peephole-alias-sensitive`.
//!
//! `x + 0`, `x - 0`, `x * 1` and `x / 1` are `x`.
//!
//! **Sound when** nobody can tell the new tensor from the old ([`AliasDb::safe_to_change_aliasing`]): nobody writes to either, and not both are known
//! outside; and when the dtype stays: with integer constants (and no division) for any tensor, otherwise only for a tensor whose type says that it is of
//! floating point. What has been made one in this run is not asked about again, since the alias information does not know of it; run the pass
//! twice for chains.
//!
//! **One exception**, which PyTorch makes too: where the type says nothing of the dtype it is taken for a number's, although a tensor of truth values
//! would be promoted by `x + 0`; with `like-pytorch=false` such operations stay.

use crate::AliasDb;
use crate::pass::{AnyPass, GraphPass, PassContext, PassError};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support;
use crate::support::rewrite::{Replacement, replace};
use frazil_ir::{DType, Graph, NodeId, TypeKind, ValueId, types};

/// How the pass is named.
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

/// See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct PeepholeAliasSensitive {
    /// Do not believe the dtypes that tensor types say.
    pub disable_shape_peepholes: bool,
    /// Take tensors of unknown dtype for numbers.
    pub like_pytorch: bool,
}

impl GraphPass for PeepholeAliasSensitive {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let db = cx.alias_db(graph);
        // What the alias information says of these, and of what they are views of, is no longer true.
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
    /// The operand that `node` gives back element by element.
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
            // The other operand, and what it is multiplied by.
            "aten::add" | "aten::sub" => &[neutral, 1.0],
            _ => &[neutral],
        };
        let is = |v: &ValueId, n: f64| graph.constant(*v).and_then(|c| c.as_float()) == Some(n);
        let neutral = numbers.len() == wanted.len() && numbers.iter().zip(wanted).all(|(v, n)| is(v, *n));
        // Minus zero plus zero is zero; nobody computes with the difference, and PyTorch has it so too.
        (keeps_dtype && neutral).then_some(tensor)
    }
}
