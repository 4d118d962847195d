//! Removal of all tuples: `lower-all-tuples`.
//!
//! Inputs and outputs of the graph, of branches and of loops that are tuples become one value per element, at any depth. Constant tuples are split. Unpacking,
//! indexing and slicing are replaced by the elements themselves.
//!
//! The graph's signature changes: callers pass and receive the elements. As in PyTorch, the pass **fails** if a tuple remains. This may be a tuple that an
//! operator without support for tuples creates or uses (a list of tuples, an attribute), or one whose index is not constant.

use crate::lower_simple_tuples::take_apart;
use crate::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::constants::insert_constant;
use crate::support::rewrite::built_by;
use frazil_ir::{BlockId, Builder, Graph, NodeId, TypeId, TypeKind, ValueId, symbols};

/// Declaration of the pass `lower-all-tuples` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "lower-all-tuples",
    summary: "Replaces tuples by their elements, also in the inputs and outputs of the graph.",
    before: "graph(%t : (Tensor, Tensor)):
  %a : Tensor, %b : Tensor = prim::TupleUnpack(%t)
  %c : Tensor = aten::relu(%b)
  %r : (Tensor, Tensor) = prim::TupleConstruct(%a, %c)
  return (%r)
",
    after: "graph(%1 : Tensor, %2 : Tensor):
  %c : Tensor = aten::relu(%2)
  return (%1, %c)
",
    options: &[],
    build: |_| AnyPass::graph(LowerAllTuples),
};

const STATISTIC: &str = "tuples lowered";

/// The pass `lower-all-tuples`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct LowerAllTuples;

impl GraphPass<TorchScript> for LowerAllTuples {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        // The signature of a fork's body must match its fork, so bodies are not changed.
        let root = graph.root();
        flatten_parameters(graph, root, cx);
        let mut open: Vec<Step> = vec![Step::Nodes(root, graph.first(root))];
        while let Some(step) = open.pop() {
            match step {
                Step::Nodes(_, Some(node)) => {
                    let next = graph.next(node);
                    let Some(block) = graph.parent(node) else { continue };
                    open.push(Step::Nodes(block, next));
                    self.enter(graph, node, cx, &mut open);
                }
                Step::Nodes(block, None) => flatten_results(graph, block, cx),
                Step::Leave(node) => flatten_outputs(graph, node, cx),
            }
        }
        cx.run_part(&crate::dce::DeadCodeElimination::default(), graph)?;
        match left_over(graph) {
            _ if cx.fuel_left() == Some(0) => Ok(()),
            None => Ok(()),
            Some(kind) => Err(PassError::Unsupported(format!(
                "Couldn't lower all tuples: one is left at {kind}"
            ))),
        }
    }
}

enum Step {
    /// Visits the rest of a block from the given node on, then the results of the block.
    Nodes(BlockId, Option<NodeId>),
    /// Handles the given node after its blocks.
    Leave(NodeId),
}

impl LowerAllTuples {
    fn enter(&self, graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>, open: &mut Vec<Step>) {
        match graph.kind(node) {
            symbols::PRIM_CONSTANT => {
                take_constant_apart(graph, node, cx);
            }
            symbols::PRIM_TUPLE_CONSTRUCT => {}
            symbols::PRIM_TUPLE_UNPACK | symbols::PRIM_TUPLE_INDEX | symbols::PRIM_TUPLE_SLICE => {
                take_apart(graph, node, cx);
            }
            kind => {
                if kind == symbols::PRIM_LOOP {
                    flatten_loop_operands(graph, node, cx);
                } else if graph.kind_name(node) == "aten::format" {
                    flatten_operands(graph, node, cx);
                }
                open.push(Step::Leave(node));
                for block in graph.node_blocks(node).iter().rev() {
                    open.push(Step::Nodes(*block, graph.first(*block)));
                }
            }
        }
    }
}

/// Returns the element types of a tuple type; `None` for other types.
fn element_types(graph: &Graph, ty: TypeId) -> Option<Vec<TypeId>> {
    match graph.ctx().type_kind(ty) {
        TypeKind::Tuple(es) | TypeKind::NamedTuple(_, _, es) => Some(graph.ctx().types(es).to_vec()),
        _ => None,
    }
}

/// Returns the elements of `value`, if it is a tuple that a node of the graph constructs.
fn built(graph: &Graph, value: ValueId) -> Option<Vec<ValueId>> {
    element_types(graph, graph.ty(value))?;
    let construct = built_by(graph, value, symbols::PRIM_TUPLE_CONSTRUCT)?;
    Some(graph.operands(construct).collect())
}

/// Returns the permutation of `len` indices that moves the last `count` to position `index`.
fn moved(len: usize, count: usize, index: usize) -> Vec<usize> {
    let stay = len - count;
    (0..index).chain(stay..len).chain(index..stay).collect()
}

/// Replaces tuple parameters of a block by one parameter per element, and rebuilds the tuples at the start of the block.
fn flatten_parameters(graph: &mut Graph, block: BlockId, cx: &mut PassContext<'_>) {
    let mut index = 0;
    while let Some(&parameter) = graph.parameters(block).get(index) {
        match element_types(graph, graph.ty(parameter)) {
            Some(types) if cx.rewrite(STATISTIC) => flatten_parameter(graph, block, index, &types),
            _ => index += 1,
        }
    }
}

fn flatten_parameter(graph: &mut Graph, block: BlockId, index: usize, types: &[TypeId]) {
    let old = graph.parameters(block)[index];
    let items: Vec<ValueId> = types.iter().map(|ty| graph.add_parameter(block, *ty)).collect();
    let tuple = graph.create_node(symbols::PRIM_TUPLE_CONSTRUCT);
    graph.add_operands(tuple, &items);
    let new = graph.add_output(tuple, graph.ty(old));
    graph.prepend(block, tuple);
    graph.replace_all_uses_with(old, new);
    let order = moved(graph.parameters(block).len(), types.len(), index);
    graph.permute_parameters(block, &order);
    graph.remove_parameter(block, index + types.len());
}

/// Replaces tuple operands of a loop by one operand per element, together with the parameters of the body.
fn flatten_loop_operands(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) {
    let Some(&body) = graph.node_blocks(node).first() else {
        return;
    };
    let mut index = 2;
    while let Some(operand) = graph.operand(node, index) {
        let Some(items) = built(graph, operand) else {
            index += 1;
            continue;
        };
        if !cx.rewrite(STATISTIC) {
            return;
        }
        let types: Vec<TypeId> = items.iter().map(|v| graph.ty(*v)).collect();
        let types = element_types(graph, graph.ty(operand)).unwrap_or(types);
        flatten_parameter(graph, body, index - 1, &types);
        replace_operand(graph, node, index, &items);
    }
}

fn flatten_operands(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) {
    let mut index = 0;
    while let Some(operand) = graph.operand(node, index) {
        match built(graph, operand) {
            Some(items) if cx.rewrite(STATISTIC) => replace_operand(graph, node, index, &items),
            _ => index += 1,
        }
    }
}

fn replace_operand(graph: &mut Graph, node: NodeId, index: usize, items: &[ValueId]) {
    let mut operands: Vec<ValueId> = graph.operands(node).collect();
    operands.splice(index..=index, items.iter().copied());
    graph.set_operands(node, &operands);
}

/// Replaces tuple results of a block by one result per element.
fn flatten_results(graph: &mut Graph, block: BlockId, cx: &mut PassContext<'_>) {
    // Outputs of a node are split after all its blocks, so that both sides of a branch have the same structure.
    if let Some(owner) = graph.owner(block)
        && !matches!(graph.kind(owner), symbols::PRIM_IF | symbols::PRIM_LOOP)
    {
        return;
    }
    if graph.owner(block).is_none() {
        let return_node = graph.return_node(block);
        flatten_operands(graph, return_node, cx);
    }
}

/// Splits outputs of a branch or loop that are tuples, together with the results of its blocks.
fn flatten_outputs(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) {
    let shift = match graph.kind(node) {
        symbols::PRIM_IF => 0,
        symbols::PRIM_LOOP => 1,
        _ => return,
    };
    let blocks = graph.node_blocks(node).to_vec();
    // Tuples among the parameters of loops have been split: now their results are, then their outputs.
    let mut index = 0;
    while let Some(&output) = graph.node_outputs(node).get(index) {
        let Some(types) = element_types(graph, graph.ty(output)) else {
            index += 1;
            continue;
        };
        let items: Option<Vec<Vec<ValueId>>> = blocks
            .iter()
            .map(|b| {
                let items = graph.results(*b).nth(index + shift).and_then(|v| built(graph, v))?;
                (items.len() == types.len()).then_some(items)
            })
            .collect();
        let Some(items) = items.filter(|_| cx.rewrite(STATISTIC)) else {
            index += 1;
            continue;
        };
        for (block, items) in blocks.iter().zip(items) {
            let return_node = graph.return_node(*block);
            replace_operand(graph, return_node, index + shift, &items);
        }
        let news: Vec<ValueId> = types.iter().map(|ty| graph.add_output(node, *ty)).collect();
        let tuple = graph.create_node(symbols::PRIM_TUPLE_CONSTRUCT);
        graph.add_operands(tuple, &news);
        let whole = graph.add_output(tuple, graph.ty(output));
        graph.insert_after(tuple, node);
        graph.replace_all_uses_with(output, whole);
        let order = moved(graph.node_outputs(node).len(), types.len(), index);
        graph.permute_outputs(node, &order);
        graph.remove_output(node, index + types.len());
    }
}

fn take_constant_apart(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) {
    let Some(output) = graph.output(node) else { return };
    let (Some(types), Some(value)) = (element_types(graph, graph.ty(output)), graph.constant_of(node)) else {
        return;
    };
    let Some(items) = value.items().filter(|items| items.len() == types.len()) else {
        return;
    };
    if !cx.rewrite(STATISTIC) {
        return;
    }
    let items = items.to_vec();
    let values: Vec<ValueId> = items
        .into_iter()
        .zip(types)
        .map(|(c, ty)| insert_constant(graph, node, c, ty))
        .collect();
    let ty = graph.ty(output);
    let tuple = Builder::before(graph, node).op(symbols::PRIM_TUPLE_CONSTRUCT, &values, ty);
    graph.replace_all_uses_with(output, tuple);
    graph.erase(node);
    // Nested tuples.
    for value in values {
        if let Some(n) = graph.defining_node(value) {
            take_constant_apart(graph, n, cx);
        }
    }
}

/// Returns the kind of a node that still has a tuple as operand or output, if there is one.
fn left_over(graph: &Graph) -> Option<String> {
    let is_tuple = |v: &ValueId| element_types(graph, graph.ty(*v)).is_some();
    let nodes = graph.all_nodes();
    let found = nodes.into_iter().find(|n| graph.node_outputs(*n).iter().any(is_tuple));
    found.map(|n| graph.kind_name(n).to_owned())
}
