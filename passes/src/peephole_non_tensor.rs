//! Folding of numbers, bools and None: `peephole-non-tensor`.
//!
//! - `x is None` and `x is not None` become constants if the type of `x` is None's, or excludes None; values of None's type become constants;
//! - `prim::unchecked_cast` and unwrapping an optional are removed if the operand already has the required type;
//! - a branch with results true on one side and false on the other is replaced by its condition, or the opposite, and removed if it has no other nodes; an
//!   output that is optional although neither side is gets the narrower type;
//! - `not (not a)` becomes `a`;
//! - conversions of a number to its own type, and of a number to a tensor and back, are removed;
//! - `a == a` becomes true and `a != a` false for integers, bools, strings and lists and dictionaries of them;
//! - on integers, `a + 0`, `a - 0`, `a * 1` and `a // 1` become `a`, and constants of consecutive additions are combined.
//!
//! **Sound** for any use: values of these types have no identity, and integers wrap around. With `like-pytorch`, integers are also assumed to be
//! representable as floats, so that `int(a / 1)` becomes `a`. PyTorch assumes that `x == x` is true for floats, including NaN.

use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support;
use crate::support::rewrite::{Replacement, int, replace};
use frazil_ir::types::{is_subtype, unify};
use frazil_ir::{Builder, Constant, Context, Graph, NodeId, TypeId, TypeKind, ValueId, symbols, types};

/// Declaration of the pass `peephole-non-tensor` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "peephole-non-tensor",
    summary: "Simplifies operations on numbers, bools and None.",
    before: "graph(%x : Tensor, %n : int):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %missing : bool = aten::__is__(%x, %none)
  %m : int = aten::add(%n, %zero)
  return (%missing, %m)
",
    after: "graph(%x : Tensor, %n : int):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %6 : bool = prim::Constant[value=0]()
  return (%6, %n)
",
    options: &[OptionInfo {
        name: "like-pytorch",
        kind: OptionKind::Bool,
        default: "false",
        doc: "Assume that integers can be represented as floats, as PyTorch does.",
    }],
    build: |options| {
        AnyPass::graph(PeepholeNonTensor {
            like_pytorch: options.bool("like-pytorch"),
        })
    },
};

/// The pass `peephole-non-tensor`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct PeepholeNonTensor {
    /// Assumes that floats represent all integers exactly, as PyTorch does.
    pub like_pytorch: bool,
}

const STATISTIC: &str = "nodes rewritten";

impl GraphPass<TorchScript> for PeepholeNonTensor {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        for node in graph.all_nodes() {
            if !graph.is_alive(node) {
                continue;
            }
            replace_nones(graph, node, cx);
            if graph.kind(node) == symbols::PRIM_IF {
                simplify_branch(graph, node, cx);
            }
            if let Some(replacement) = self.rewrite(graph, node) {
                if !cx.rewrite(STATISTIC) {
                    break;
                }
                replace(graph, node, replacement);
            } else if let Some((value, sum)) = added_up(graph, node)
                && cx.rewrite(STATISTIC)
            {
                let constant = Builder::before(graph, node).constant(sum);
                graph.set_operand(node, 0, value);
                graph.set_operand(node, 1, constant);
            }
        }
        Ok(())
    }
}

/// Replaces outputs of `node` that can only be None by the constant None.
fn replace_nones(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) {
    if graph.kind(node) == symbols::PRIM_CONSTANT {
        return;
    }
    for output in graph.node_outputs(node).to_vec() {
        if graph.ty(output) == types::NONE && graph.has_uses(output) && cx.rewrite(STATISTIC) {
            let none = Builder::before(graph, node).constant(Constant::None);
            graph.replace_all_uses_with(output, none);
        }
    }
}

/// Simplifies the outputs of a branch that equal its condition, or are never None.
fn simplify_branch(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) {
    let (&[then, other], Some(condition)) = (graph.node_blocks(node), graph.operand(node, 0)) else {
        return;
    };
    for (i, output) in graph.node_outputs(node).to_vec().into_iter().enumerate() {
        let (Some(a), Some(b)) = (graph.results(then).nth(i), graph.results(other).nth(i)) else {
            continue;
        };
        let constant = |v| graph.constant(v).and_then(|c| c.as_bool());
        let says_condition = constant(a) == Some(true) && constant(b) == Some(false);
        if says_condition && graph.has_uses(output) && cx.rewrite(STATISTIC) {
            graph.replace_all_uses_with(output, condition);
        }
        let ctx = graph.ctx().clone();
        let optional = |v| matches!(ctx.type_kind(graph.ty(v)), TypeKind::Optional(_));
        if !optional(output) || optional(a) || optional(b) {
            continue;
        }
        if let Some(joined) = unify(&ctx, graph.ty(a), graph.ty(b))
            && joined != graph.ty(output)
            && is_subtype(&ctx, joined, graph.ty(output))
            && cx.rewrite(STATISTIC)
        {
            graph.set_type(output, joined);
        }
    }
}

impl PeepholeNonTensor {
    fn rewrite(&self, graph: &Graph, node: NodeId) -> Option<Replacement> {
        let ctx = graph.ctx();
        let operand = |i: usize| graph.operand(node, i);
        match graph.kind(node) {
            symbols::PRIM_UNCHECKED_CAST => {
                let (from, to) = (operand(0)?, graph.output(node)?);
                is_subtype(ctx, graph.ty(from), graph.ty(to)).then_some(Replacement::Value(from))
            }
            symbols::PRIM_IF => opposite(graph, node),
            _ => match graph.kind_name(node) {
                "aten::__is__" => Some(Replacement::Constant(is_none(graph, operand(0)?, operand(1)?)?.into())),
                "aten::__isnot__" => Some(Replacement::Constant(
                    (!is_none(graph, operand(0)?, operand(1)?)?).into(),
                )),
                "aten::_unwrap_optional" | "prim::unchecked_unwrap_optional" => {
                    let from = operand(0)?;
                    let optional = matches!(
                        ctx.type_kind(graph.ty(from)),
                        TypeKind::Optional(_) | TypeKind::None | TypeKind::Any | TypeKind::Union(_)
                    );
                    (!optional).then_some(Replacement::Value(from))
                }
                "aten::__not__" => negation(graph, operand(0)?),
                "aten::Bool"
                | "aten::Int"
                | "aten::Float"
                | "aten::ceil"
                | "aten::floor"
                | "aten::ScalarImplicit"
                | "aten::IntImplicit"
                | "aten::FloatImplicit" => conversion(graph, node).or_else(|| self.there_and_back(graph, node)),
                name @ ("aten::eq" | "aten::ne") => {
                    let (a, b) = (operand(0)?, operand(1)?);
                    (a == b && is_reflexive(ctx, graph.ty(a)))
                        .then(|| Replacement::Constant((name == "aten::eq").into()))
                }
                "aten::div" if self.like_pytorch => {
                    let (value, n) = integers(graph, node)?;
                    (n == 1 && graph.output(node).is_some_and(|v| graph.ty(v) == types::FLOAT))
                        .then(|| Replacement::Operator("aten::Float", vec![value]))
                }
                "aten::mul" | "aten::floordiv" | "aten::add" | "aten::sub" => neutral(graph, node),
                _ => None,
            },
        }
    }
}

/// Returns the value of `a is b`, if `a` or `b` is None and the types determine the result.
fn is_none(graph: &Graph, a: ValueId, b: ValueId) -> Option<bool> {
    let (a, b) = (graph.ty(a), graph.ty(b));
    let other = match (a == types::NONE, b == types::NONE) {
        (true, true) => return Some(true),
        (true, false) => b,
        (false, true) => a,
        (false, false) => return None,
    };
    (!admits_none(graph.ctx(), other)).then_some(false)
}

fn admits_none(ctx: &Context, ty: TypeId) -> bool {
    is_subtype(ctx, types::NONE, ty) || matches!(ctx.type_kind(ty), TypeKind::Any | TypeKind::Var(_))
}

/// Returns true for types whose values equal themselves and can always be compared.
fn is_reflexive(ctx: &Context, ty: TypeId) -> bool {
    let plain = |ty: TypeId| {
        matches!(
            ctx.type_kind(ty),
            TypeKind::Int | TypeKind::Bool | TypeKind::Str | TypeKind::None
        )
    };
    match ctx.type_kind(ty) {
        TypeKind::List(e) => plain(e),
        TypeKind::Dict(k, v) => plain(k) && plain(v),
        _ => plain(ty),
    }
}

/// Replaces a branch whose only output is the negation of its condition.
fn opposite(graph: &Graph, node: NodeId) -> Option<Replacement> {
    graph.output(node).filter(|v| graph.has_uses(*v))?;
    let side = |i: usize| -> Option<bool> {
        let block = *graph.node_blocks(node).get(i)?;
        // Other nodes on the side must have no effects: constants have none.
        let harmless = graph.nodes(block).all(|n| graph.kind(n) == symbols::PRIM_CONSTANT);
        let result = graph.results(block).next().filter(|_| harmless)?;
        graph.constant(result)?.as_bool()
    };
    let condition = graph.operand(node, 0)?;
    (!side(0)? && side(1)?).then(|| Replacement::Operator("aten::__not__", vec![condition]))
}

/// Replaces the double negation `not not x`.
fn negation(graph: &Graph, value: ValueId) -> Option<Replacement> {
    let inner = graph.defining_node(value)?;
    let twice = graph.kind_name(inner) == "aten::__not__";
    twice.then_some(Replacement::Value(graph.operand(inner, 0)?))
}

/// Removes a conversion of a number to its own type, or of a tensor back to the number from which it was created.
fn conversion(graph: &Graph, node: NodeId) -> Option<Replacement> {
    if graph.operand_count(node) != 1 {
        return None;
    }
    let (from, to) = (graph.operand(node, 0)?, graph.output(node)?);
    if graph.ty(from) == graph.ty(to) && !graph.ctx().is_tensor(graph.ty(from)) {
        // `ceil` and `floor` of floats are integers, so the operand is not a float.
        return (graph.ty(from) != types::FLOAT || graph.kind_name(node) == "aten::Float")
            .then_some(Replacement::Value(from));
    }
    let made = graph
        .defining_node(from)
        .filter(|n| graph.kind_name(*n) == "prim::NumToTensor")?;
    let number = graph.operand(made, 0)?;
    is_subtype(graph.ctx(), graph.ty(number), graph.ty(to)).then_some(Replacement::Value(number))
}

impl PeepholeNonTensor {
    /// Removes a conversion of an integer to a float and back.
    fn there_and_back(&self, graph: &Graph, node: NodeId) -> Option<Replacement> {
        let made = graph.defining_node(graph.operand(node, 0)?)?;
        let number = graph.operand(made, 0)?;
        let fits = self.like_pytorch
            && graph.kind_name(node) == "aten::Int"
            && graph.kind_name(made) == "aten::Float"
            && graph.ty(number) == types::INT;
        fits.then_some(Replacement::Value(number))
    }
}

/// Returns the operands of arithmetic on two integers, of which the second is a constant. The operands of a commutative operator are swapped if necessary.
fn integers(graph: &Graph, node: NodeId) -> Option<(ValueId, i64)> {
    let (a, b) = (graph.operand(node, 0)?, graph.operand(node, 1)?);
    if graph.operand_count(node) != 2 || graph.ty(a) != types::INT || graph.ty(b) != types::INT {
        return None;
    }
    let commutes = matches!(graph.kind_name(node), "aten::mul" | "aten::add");
    match (int(graph, a), int(graph, b)) {
        (_, Some(n)) => Some((a, n)),
        (Some(n), None) if commutes => Some((b, n)),
        _ => None,
    }
}

/// Replaces arithmetic with a neutral number, such as `x + 0`, by the other operand.
fn neutral(graph: &Graph, node: NodeId) -> Option<Replacement> {
    let (value, n) = integers(graph, node)?;
    let neutral = match graph.kind_name(node) {
        "aten::mul" | "aten::floordiv" => 1,
        _ => 0,
    };
    if n == neutral {
        return Some(Replacement::Value(value));
    }
    let (inner, sum) = added_up(graph, node)?;
    (sum == 0).then_some(Replacement::Value(inner))
}

/// Returns `a` and the number to add, for `(a + m) + n`. `node` adds this number or, if it is a subtraction, subtracts
/// it.
fn added_up(graph: &Graph, node: NodeId) -> Option<(ValueId, i64)> {
    let adds = |n: NodeId| match graph.kind_name(n) {
        "aten::add" => Some(true),
        "aten::sub" => Some(false),
        _ => None,
    };
    let outer = adds(node)?;
    let (sum, n) = integers(graph, node)?;
    let inner_node = graph.defining_node(sum)?;
    let inner = adds(inner_node)?;
    let (value, m) = integers(graph, inner_node)?;
    // A subtraction from a constant does not match: `integers` requires the constant as second operand.
    Some((
        value,
        if outer == inner {
            n.wrapping_add(m)
        } else {
            n.wrapping_sub(m)
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::schema::Catalogue;
    use std::sync::Arc;

    #[test]
    fn none_is_told_by_types() {
        let ctx = Arc::new(Context::new());
        let mut g = Graph::new(ctx.clone());
        let tensor = g.add_input(types::TENSOR);
        let optional = g.add_input(ctx.optional_of(types::TENSOR));
        let any = g.add_input(types::ANY);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let none = b.constant(Constant::None);
        for v in [tensor, optional, any, none] {
            let r = b.op(ctx.symbol("aten::__is__"), &[v, none], types::BOOL);
            b.add_result(root, r);
        }
        PeepholeNonTensor::default()
            .run(&mut g, &mut PassContext::new(&Catalogue::new(ctx)))
            .unwrap();
        g.verify(None).unwrap();
        let answers: Vec<_> = g.outputs().map(|v| g.constant(v).and_then(|c| c.as_bool())).collect();
        assert_eq!(answers, [Some(false), None, None, Some(true)]);
    }

    #[test]
    fn branches_that_say_their_condition_are_it() {
        let ctx = Arc::new(Context::new());
        let mut g = Graph::new(ctx.clone());
        let n = g.add_input(types::INT);
        let root = g.root();
        let mut b = Builder::at_end(&mut g, root);
        let (yes, no) = (b.constant(true), b.constant(false));
        let condition = b.op(ctx.symbol("aten::Bool"), &[n], types::BOOL);
        let branch = b.node(symbols::PRIM_IF, &[condition], &[types::BOOL]);
        for v in [no, yes] {
            let block = b.add_block(branch);
            b.add_result(block, v);
        }
        let opposite = b.output(branch).unwrap();
        let same = b.op(ctx.symbol("aten::__not__"), &[opposite], types::BOOL);
        b.add_result(root, same);
        PeepholeNonTensor::default()
            .run(&mut g, &mut PassContext::new(&Catalogue::new(ctx)))
            .unwrap();
        g.verify(None).unwrap();
        assert_eq!(g.outputs().next(), Some(condition));
    }
}
