//! Folding of writes to new tensors: `remove-tensor-mutation`.
//!
//! An in-place operator on a tensor without earlier uses becomes its functional variant, and later uses get the new tensor.
//!
//! **Sound when**
//! - the tensor is new: its node has no blocks and no effects, is not a constant, and its operands do not share memory with it; or it is the output of a branch
//!   both sides of which return a new tensor without other uses;
//! - the write is in the same block, and the tensor has no uses in between;
//! - the operator writes to its first operand only, returns it, and has a functional variant with the same arguments that returns a new tensor;
//! - the dtype remains that of the tensor. Numbers cannot promote it (in place that is an error). If another tensor might, or if the functional variant
//!   compares, the result is converted back (`aten::type_as`), unless types show that it is not necessary.
//!
//! PyTorch does not check the last condition, and computes `x.add_(y)` of float32 and float64 in float64.

use crate::AliasDb;
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::effects::{self, Effect};
use crate::support::rewrite::unused_between;
use frazil_ir::schema::{Catalogue, FunctionSchema};
use frazil_ir::{Builder, Graph, NodeId, SymbolId, TypeKind, ValueId, symbols, types};
use std::collections::HashSet;

/// Declaration of the pass `remove-tensor-mutation` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "remove-tensor-mutation",
    summary: "Replaces writes to new tensors, before their first use, by new tensors.",
    before: "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::relu(%x)
  %a : Tensor = aten::add_(%y, %1, %1)
  return (%y)
",
    after: "graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::relu(%x)
  %6 : Tensor = aten::add(%y, %1, %1)
  return (%6)
",
    options: &[],
    build: |_| AnyPass::graph(RemoveTensorMutation),
};

/// The pass `remove-tensor-mutation`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveTensorMutation;

impl GraphPass<TorchScript> for RemoveTensorMutation {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        remove_where(graph, cx, &|_, _| true)
    }
}

/// Comparisons. The functional operators return bools; the in-place operators write the result in the dtype of the tensor.
const COMPARISONS: &[&str] = &[
    "aten::eq",
    "aten::ne",
    "aten::lt",
    "aten::le",
    "aten::gt",
    "aten::ge",
    "aten::greater",
    "aten::greater_equal",
    "aten::less",
    "aten::less_equal",
    "aten::not_equal",
    "aten::logical_and",
    "aten::logical_not",
    "aten::logical_or",
    "aten::logical_xor",
];

/// In-place operators that write something else than their functional variant returns.
const NOT_FUNCTIONAL: &[&str] = &[
    "aten::requires_grad",
    "aten::set",
    "aten::resize_as",
    "aten::resize",
    "aten::rename",
];

/// Removes mutations by the nodes for which `wanted` returns true.
///
/// # Errors
/// None; the return type is that of passes.
pub(crate) fn remove_where(
    graph: &mut Graph,
    cx: &mut PassContext<'_>,
    wanted: &dyn Fn(&Graph, NodeId) -> bool,
) -> Result<(), PassError> {
    support::for_each_subgraph(graph, |g| cx.elsewhere(|cx| remove_where(g, cx, wanted)))?;
    let nodes: Vec<NodeId> = graph.all_nodes();
    if !nodes.iter().any(|n| is_inplace(graph, *n)) {
        return Ok(());
    }
    // Kept valid as tensors are made: a view of one is not new.
    let mut db = (*cx.alias_db(graph)).clone();
    // Tensors that this pass has made, mapped to the tensors that they replace.
    let mut made: HashSet<ValueId> = HashSet::new();
    for node in nodes {
        if !is_inplace(graph, node) || !wanted(graph, node) {
            continue;
        }
        let Some(functional) = functional_form(graph, node, cx.operators().catalogue()) else {
            continue;
        };
        let Some(tensor) = graph.operand(node, 0) else { continue };
        if !is_unseen(graph, node, tensor, &db, &made, cx.operators().catalogue()) {
            continue;
        }
        if !cx.rewrite("tensor mutations removed") {
            break;
        }
        let new = make_functional(graph, node, &functional, tensor);
        db.copy_value(tensor, new);
        made.insert(new);
    }
    Ok(())
}

/// Returns true if the name of the operator follows the convention for in-place operators (`add_`).
pub(crate) fn is_inplace(graph: &Graph, node: NodeId) -> bool {
    let name = graph.kind_name(node);
    name.ends_with('_') && !name.ends_with("__")
}

/// Replaces `node`, which writes to `tensor`, by `functional`, and later uses of the tensor by its result. Returns the new tensor.
pub(crate) fn make_functional(graph: &mut Graph, node: NodeId, functional: &Functional, tensor: ValueId) -> ValueId {
    let new = put(graph, node, functional, tensor);
    let uses: Vec<_> = graph.uses(tensor).collect();
    for u in uses {
        if graph.is_before(node, u.user) {
            graph.set_operand(u.user, u.index, new);
        }
    }
    for output in graph.node_outputs(node).to_vec() {
        graph.replace_all_uses_with(output, new);
    }
    graph.erase(node);
    new
}

/// Returns true if `tensor` has no uses before `node`, which writes to it.
fn is_unseen(
    graph: &Graph,
    node: NodeId,
    tensor: ValueId,
    db: &AliasDb,
    made: &HashSet<ValueId>,
    catalogue: &Catalogue,
) -> bool {
    let Some(creator) = graph.defining_node(tensor) else {
        return false;
    };
    // The same tensor may be another operand of the write.
    if graph.operands(node).skip(1).any(|v| v == tensor) || !unused_between(graph, tensor, creator, node) {
        return false;
    }
    let new = |v: ValueId| made.contains(&v) || is_new(graph, v, db, catalogue);
    if graph.kind(creator) != symbols::PRIM_IF {
        return new(tensor);
    }
    let index = graph.node_outputs(creator).iter().position(|v| *v == tensor);
    graph.node_blocks(creator).iter().all(|block| {
        let result = index.and_then(|i| graph.results(*block).nth(i));
        result.is_some_and(|v| {
            let own = graph.defining_block(v) == Some(*block);
            own && graph.single_use(v).is_some() && new(v)
        })
    })
}

/// Returns true if the node that defines `value` returns a new tensor.
pub(crate) fn is_new(graph: &Graph, value: ValueId, db: &AliasDb, catalogue: &Catalogue) -> bool {
    let Some(node) = graph.defining_node(value) else {
        return false;
    };
    let plain = graph.node_blocks(node).is_empty()
        && graph.kind(node) != symbols::PRIM_CONSTANT
        && graph.attribute(node, symbols::ATTR_SUBGRAPH).is_none()
        && matches!(effects::effect(graph, node, catalogue), Effect::Pure | Effect::Random)
        && effects::schema(graph, node, catalogue).is_some();
    plain
        && graph.kind(node) != symbols::PRIM_GET_ATTR
        && !db.may_alias_wildcard(value)
        && !graph.operands(node).any(|o| db.may_contain_alias(o, value))
        && !graph
            .node_outputs(node)
            .iter()
            .any(|o| *o != value && db.may_contain_alias(*o, value))
}

/// The functional computation that replaces an in-place operator.
pub(crate) enum Functional {
    /// The operator with this name on the same operands, and whether its result must be converted back to the tensor's dtype.
    Same(SymbolId, bool),
    /// `full_like`: every element is the second operand.
    Fill,
    /// `zeros_like`: every element is zero.
    Zero,
    /// A normal distribution, from which every element is drawn.
    Normal,
}

/// Returns the functional computation for an in-place operator: an operator with the same arguments that returns the written values.
pub(crate) fn functional_form(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> Option<Functional> {
    let schema = effects::schema(graph, node, catalogue)?;
    if !writes_first_only(&schema) || graph.node_outputs(node).len() != 1 {
        return None;
    }
    let ctx = graph.ctx();
    match graph.kind_name(node) {
        "aten::fill_" if !ctx.is_tensor(graph.ty(graph.operand(node, 1)?)) => return Some(Functional::Fill),
        "aten::zero_" => return Some(Functional::Zero),
        "aten::normal_" => return Some(Functional::Normal),
        _ => {}
    }
    let name = graph.kind_name(node).strip_suffix('_')?;
    if NOT_FUNCTIONAL.contains(&name) {
        return None;
    }
    let symbol = ctx.find_symbol(name)?;
    let operand_types: Vec<_> = graph.operands(node).map(|v| graph.ty(v)).collect();
    let functional = catalogue.resolve_types(symbol, &operand_types).found()?;
    let gives_tensor = functional.returns.len() == 1
        && !functional.is_mutable()
        && functional.returns[0].alias.is_none()
        && ctx.is_tensor(functional.returns[0].ty);
    (gives_tensor && functional.arguments.len() == schema.arguments.len())
        .then(|| Functional::Same(symbol, COMPARISONS.contains(&name) || may_promote(graph, node)))
}

fn writes_first_only(schema: &FunctionSchema) -> bool {
    schema.arguments.iter().enumerate().all(|(i, a)| {
        let written = a.alias.as_ref().is_some_and(|info| info.is_write);
        let inside = a.element_alias.as_ref().is_some_and(|info| info.is_write);
        written == (i == 0) && !inside
    })
}

/// Returns true if another operand may be a tensor whose dtype promotes the result beyond the dtype of the first operand.
fn may_promote(graph: &Graph, node: NodeId) -> bool {
    let dtype = |v: ValueId| match graph.ctx().type_kind(graph.ty(v)) {
        TypeKind::Tensor(ty) => ty.dtype,
        _ => None,
    };
    let Some(first) = graph.operand(node, 0) else {
        return true;
    };
    let name = graph.kind_name(node);
    // The result dtype of these is always that of the first operand.
    if matches!(
        name,
        "aten::copy_" | "aten::masked_fill_" | "aten::index_fill_" | "aten::fill_"
    ) {
        return false;
    }
    graph.operands(node).skip(1).any(|v| {
        let tensors = match graph.ctx().type_kind(graph.ty(v)) {
            TypeKind::Tensor(_) => true,
            TypeKind::Optional(e) | TypeKind::List(e) => graph.ctx().is_tensor(e),
            _ => false,
        };
        tensors && (dtype(v).is_none() || dtype(v) != dtype(first))
    })
}

/// Inserts the functional computation before `node`, and returns its new tensor.
fn put(graph: &mut Graph, node: NodeId, functional: &Functional, tensor: ValueId) -> ValueId {
    let ctx = graph.ctx().clone();
    let ty = graph.output(node).map_or(types::TENSOR, |v| graph.ty(v));
    let operands: Vec<ValueId> = graph.operands(node).collect();
    let mut b = Builder::before(graph, node);
    match functional {
        Functional::Same(kind, convert) => {
            let new = b.op(*kind, &operands, ty);
            if *convert {
                return b.op(ctx.symbol("aten::type_as"), &[new, tensor], ty);
            }
            new
        }
        Functional::Zero => {
            let none = b.constant(frazil_ir::Constant::None);
            b.op(
                ctx.symbol("aten::zeros_like"),
                &[tensor, none, none, none, none, none],
                ty,
            )
        }
        Functional::Fill => {
            let dtype = b.op(symbols::PRIM_DTYPE, &[tensor], types::INT);
            let none = b.constant(frazil_ir::Constant::None);
            let all = [tensor, operands[1], dtype, none, none, none, none];
            b.op(ctx.symbol("aten::full_like"), &all, ty)
        }
        Functional::Normal => {
            let ints = ctx.list_of(types::INT);
            let size = b.op(ctx.symbol("aten::size"), &[tensor], ints);
            let dtype = b.op(symbols::PRIM_DTYPE, &[tensor], types::INT);
            let layout = b.op(ctx.symbol("prim::layout"), &[tensor], types::INT);
            let device = b.op(symbols::PRIM_DEVICE, &[tensor], types::DEVICE);
            let pinned = b.constant(frazil_ir::Constant::None);
            let all = [
                operands[1],
                operands[2],
                size,
                operands[3],
                dtype,
                layout,
                device,
                pinned,
            ];
            b.op(ctx.symbol("aten::normal"), &all, ty)
        }
    }
}
