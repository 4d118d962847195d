//! Peephole rewrites: `peephole`.
//!
//! - `x is None` and `x is not None` are constants when the type of `x` is None's, or admits no None;
//! - `prim::unchecked_cast` and unwrapping an optional go when the operand's type is already what is asked for;
//! - a branch that gives true on one side and false on the other is its condition, or the opposite of it;
//! - `not (not a)` is `a`;
//! - conversions of a number to the type that it has, and of a number to a tensor and back, go;
//! - `aten::dim`, `aten::size`, `prim::dtype`, `prim::device` and `aten::is_floating_point` of a tensor whose type says so are constants
//!   (unless `disable-shape-peepholes` is set);
//! - unpacking or indexing a tuple that was just built gives its elements;
//! - the rank of a convolution's result is that of its weight where it decides only whether an exception is raised (the check of a batch norm
//!   behind a convolution): see below.
//!
//! **Sound** for any use: nothing here makes or merges mutable objects, and what a type says of a tensor is true for as long as nobody writes
//! to it: shapes are believed only of values without writers (in-place operators may resize).
//!
//! **One exception**, which PyTorch makes too: a convolution whose input lacks the batch dimension gives a result of one dimension less, which a
//! check behind it would refuse; with the check gone the program goes on. What ran without an exception gives the same results; PyTorch takes the
//! rank for granted in every use and changes those too.

use crate::manager::{AnyPass, GraphPass, PassContext, PassError};
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::support::constants::insert_constant;
use crate::{AliasDb, support};
use frazil_ir::types::is_subtype;
use frazil_ir::{Constant, Context, Dim, Graph, NodeId, TypeId, TypeKind, ValueId, symbols, types};

/// How the pass is named.
pub static INFO: PassInfo = PassInfo {
    name: "peephole",
    summary: "Rewrites single nodes whose result their types or operands give away.",
    before: "%none : NoneType = prim::Constant()\n%missing : bool = aten::__is__(%bias, %none)",
    after: "%missing : bool = prim::Constant[value=0]()",
    options: &[OptionInfo {
        name: "disable-shape-peepholes",
        kind: OptionKind::Bool,
        default: "false",
        doc: "Do not believe the sizes that tensor types say.",
    }],
    build: |options| {
        AnyPass::graph(Peephole {
            disable_shape_peepholes: options.bool("disable-shape-peepholes"),
        })
    },
};

/// See the [module documentation](self).
#[derive(Clone, Debug, Default)]
pub struct Peephole {
    /// Do not believe the sizes that tensor types say.
    pub disable_shape_peepholes: bool,
}

/// What a node is replaced by.
enum Replacement {
    Value(ValueId),
    Values(Vec<ValueId>),
    Constant(Constant),
    /// The node of that kind on those operands.
    Operator(&'static str, Vec<ValueId>),
}

impl GraphPass for Peephole {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let db = cx.alias_db(graph);
        let mut rewritten = 0;
        for node in graph.all_nodes() {
            if !graph.is_alive(node) {
                continue;
            }
            let Some(replacement) = self.rewrite(graph, node, &db) else {
                continue;
            };
            let outputs = graph.node_outputs(node).to_vec();
            let Some(&output) = outputs.first() else { continue };
            let news = match replacement {
                Replacement::Value(v) => vec![v],
                Replacement::Values(vs) => vs,
                Replacement::Constant(c) => vec![insert_constant(graph, node, c, graph.ty(output))],
                Replacement::Operator(kind, operands) => {
                    let (kind, ty) = (graph.ctx().symbol(kind), graph.ty(output));
                    vec![frazil_ir::Builder::before(graph, node).op(kind, &operands, ty)]
                }
            };
            for (old, new) in outputs.into_iter().zip(news) {
                graph.replace_all_uses_with(old, new);
            }
            graph.erase(node);
            rewritten += 1;
        }
        cx.count("nodes rewritten", rewritten);
        Ok(())
    }
}

impl Peephole {
    fn rewrite(&self, graph: &Graph, node: NodeId, db: &AliasDb) -> Option<Replacement> {
        let ctx = graph.ctx();
        let operand = |i: usize| graph.operand(node, i);
        match graph.kind(node) {
            symbols::PRIM_UNCHECKED_CAST => {
                let (from, to) = (operand(0)?, graph.output(node)?);
                is_subtype(ctx, graph.ty(from), graph.ty(to)).then_some(Replacement::Value(from))
            }
            symbols::PRIM_IF => truth(graph, node),
            symbols::PRIM_TUPLE_UNPACK => {
                let tuple = built_tuple(graph, operand(0)?)?;
                let values: Vec<_> = graph.operands(tuple).collect();
                (values.len() == graph.node_outputs(node).len()).then_some(Replacement::Values(values))
            }
            symbols::PRIM_TUPLE_INDEX => {
                let tuple = built_tuple(graph, operand(0)?)?;
                let index = graph.constant(operand(1)?)?.as_int()?;
                let len = graph.operand_count(tuple) as i64;
                let index = if index < 0 { index + len } else { index };
                Some(Replacement::Value(graph.operand(tuple, usize::try_from(index).ok()?)?))
            }
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
                | "aten::ScalarImplicit"
                | "aten::IntImplicit"
                | "aten::FloatImplicit" => conversion(graph, node),
                "aten::dim" | "aten::size" | "prim::dtype" | "prim::device" | "aten::is_floating_point" => {
                    self.property(graph, node, db)
                }
                _ => None,
            },
        }
    }

    /// What the type of a tensor says of it.
    fn property(&self, graph: &Graph, node: NodeId, db: &AliasDb) -> Option<Replacement> {
        let tensor = graph.operand(node, 0)?;
        if graph.kind_name(node) == "aten::dim"
            && let Some(rank) = guarded_rank(graph, tensor, node)
        {
            return Some(Replacement::Constant(rank.into()));
        }
        let TypeKind::Tensor(ty) = graph.ctx().type_kind(graph.ty(tensor)) else {
            return None;
        };
        if self.disable_shape_peepholes || db.has_writers(tensor) {
            return None;
        }
        let sizes = || ty.sizes.map(|s| graph.ctx().dims(s));
        Some(Replacement::Constant(
            match (graph.kind_name(node), graph.operand_count(node)) {
                ("aten::dim", 1) => Constant::Int(sizes()?.len() as i64),
                ("prim::dtype", 1) => Constant::Int(ty.dtype?.code()),
                ("prim::device", 1) => Constant::Device(ty.device?),
                ("aten::is_floating_point", 1) => Constant::Bool(ty.dtype?.is_floating_point()),
                ("aten::size", 2) => {
                    let dims = sizes()?;
                    let index = graph.constant(graph.operand(node, 1)?)?.as_int()?;
                    let index = if index < 0 { index + dims.len() as i64 } else { index };
                    match dims.get(usize::try_from(index).ok()?)? {
                        Dim::Known(n) => Constant::Int(*n),
                        _ => return None,
                    }
                }
                _ => return None,
            },
        ))
    }
}

fn built_tuple(graph: &Graph, value: ValueId) -> Option<NodeId> {
    graph
        .defining_node(value)
        .filter(|n| graph.kind(*n) == symbols::PRIM_TUPLE_CONSTRUCT)
}

/// Whether `a is b`, where one of them is None and the types settle it.
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

/// A branch that only says whether its condition holds.
fn truth(graph: &Graph, node: NodeId) -> Option<Replacement> {
    graph.output(node)?;
    let side = |i: usize| -> Option<bool> {
        let block = *graph.node_blocks(node).get(i)?;
        // What else stands on the side has to be harmless: constants are.
        let harmless = graph.nodes(block).all(|n| graph.kind(n) == symbols::PRIM_CONSTANT);
        let result = graph.results(block).next().filter(|_| harmless)?;
        graph.constant(result)?.as_bool()
    };
    let condition = graph.operand(node, 0)?;
    match (side(0)?, side(1)?) {
        (true, false) => Some(Replacement::Value(condition)),
        (false, true) => Some(Replacement::Operator("aten::__not__", vec![condition])),
        _ => None,
    }
}

/// `not not x`.
fn negation(graph: &Graph, value: ValueId) -> Option<Replacement> {
    let inner = graph.defining_node(value)?;
    let twice = graph.kind_name(inner) == "aten::__not__";
    twice.then_some(Replacement::Value(graph.operand(inner, 0)?))
}

/// A conversion of a number to what it is, or back from the tensor that was made of it.
fn conversion(graph: &Graph, node: NodeId) -> Option<Replacement> {
    let (from, to) = (graph.operand(node, 0)?, graph.output(node)?);
    if graph.ty(from) == graph.ty(to) {
        return Some(Replacement::Value(from));
    }
    let made = graph
        .defining_node(from)
        .filter(|n| graph.kind_name(*n) == "prim::NumToTensor")?;
    let number = graph.operand(made, 0)?;
    is_subtype(graph.ctx(), graph.ty(number), graph.ty(to)).then_some(Replacement::Value(number))
}

/// The rank of the result of the convolution that `value` is, when `dim` (a `aten::dim` of it) only guards exceptions.
fn guarded_rank(graph: &Graph, value: ValueId, dim: NodeId) -> Option<i64> {
    let convolution = graph.defining_node(value)?;
    let rank = match graph.kind(convolution) {
        symbols::ATEN_CONV1D => 3,
        symbols::ATEN_CONV2D => 4,
        symbols::ATEN_CONV3D => 5,
        _ => return None,
    };
    only_guards(graph, graph.output(dim)?, 0).then_some(rank)
}

/// How long a chain of comparisons may be to be followed.
const MAX_GUARD_DEPTH: usize = 8;

/// True when `value` decides nothing but whether an exception is raised, or appears in its message.
fn only_guards(graph: &Graph, value: ValueId, depth: usize) -> bool {
    depth < MAX_GUARD_DEPTH
        && graph.uses(value).all(|u| {
            if graph.enclosing_blocks(u.user).any(|b| raises(graph, b)) {
                return true;
            }
            match graph.kind(u.user) {
                symbols::PRIM_IF => {
                    let blocks = graph.node_blocks(u.user);
                    let harmless =
                        |b: &frazil_ir::BlockId| raises(graph, *b) || graph.nodes(*b).all(|n| is_comparison(graph, n));
                    blocks.iter().all(harmless)
                        && graph
                            .node_outputs(u.user)
                            .iter()
                            .all(|v| only_guards(graph, *v, depth + 1))
                }
                symbols::PRIM_RETURN => {
                    let branch = graph.parent(u.user).and_then(|b| graph.owner(b));
                    branch.filter(|n| graph.kind(*n) == symbols::PRIM_IF).is_some_and(|n| {
                        graph
                            .node_outputs(n)
                            .get(u.index)
                            .is_some_and(|v| only_guards(graph, *v, depth + 1))
                    })
                }
                _ => {
                    is_comparison(graph, u.user)
                        && graph
                            .node_outputs(u.user)
                            .iter()
                            .all(|v| only_guards(graph, *v, depth + 1))
                }
            }
        })
}

fn is_comparison(graph: &Graph, node: NodeId) -> bool {
    let comparison = matches!(
        graph.kind_name(node),
        "aten::eq" | "aten::ne" | "aten::lt" | "aten::le" | "aten::gt" | "aten::ge" | "aten::__not__" | "aten::dim"
    );
    comparison || graph.kind(node) == symbols::PRIM_CONSTANT
}

/// True when whoever runs `block` raises.
fn raises(graph: &Graph, block: frazil_ir::BlockId) -> bool {
    graph
        .nodes(block)
        .any(|n| graph.kind(n) == symbols::PRIM_RAISE_EXCEPTION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::Builder;
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
        Peephole::default()
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
        let c = b.op(ctx.symbol("aten::eq"), &[n, n], types::BOOL);
        let branch = b.node(symbols::PRIM_IF, &[c], &[types::BOOL]);
        for v in [no, yes] {
            let block = b.add_block(branch);
            b.add_result(block, v);
        }
        let out = b.output(branch).unwrap();
        b.add_result(root, out);
        let catalogue = Catalogue::new(ctx);
        for _ in 0..2 {
            Peephole::default()
                .run(&mut g, &mut PassContext::new(&catalogue))
                .unwrap();
        }
        g.verify(None).unwrap();
        let last = g.outputs().next().and_then(|v| g.defining_node(v)).unwrap();
        assert_eq!(g.kind_name(last), "aten::__not__");
    }
}
