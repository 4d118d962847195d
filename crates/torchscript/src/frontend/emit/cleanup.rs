//! What PyTorch's compiler does to every graph after emission, so that ours come out alike: tuples that are built only to be taken apart go,
//! dead nodes go, what depends on constants only is evaluated (by whoever knows how, [`LoadOptions::fold`](crate::LoadOptions::fold)), constants are pooled at the head, and outputs of control flow are ordered by their first use.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use frazil_ir::schema::{Catalogue, Resolution};
use frazil_ir::{
    AttributeValue, BlockId, Builder, Constant, Device, Graph, NodeId, TupleConstant, TypeId, Use, ValueId, symbols,
};

use crate::frontend::program::Program;

/// Brings a freshly emitted graph into its final form.
pub(super) fn run(graph: &mut Graph, program: &Program<'_>) {
    fold_devices(graph);
    lower_tuples(graph);
    fold_tuples(graph);
    remove_dead(graph, program.catalogue);
    if let Some(fold) = program.fold {
        fold(graph);
    }
    pool_constants(graph);
    let root = graph.root();
    order_outputs(graph, root);
}

/// A device is written as `torch.device("cpu")` in source and is a constant in the graph.
fn fold_devices(graph: &mut Graph) {
    let Some(kind) = graph.ctx().find_symbol("aten::device") else {
        return;
    };
    for node in graph.all_nodes() {
        if graph.kind(node) != kind || graph.operand_count(node) != 1 {
            continue;
        }
        let text = graph.operand(node, 0).and_then(|text| graph.constant(text));
        let device = text.as_ref().and_then(|text| text.as_str()).and_then(Device::parse);
        if let (Some(device), Some(output)) = (device, graph.output(node)) {
            let constant = Builder::before(graph, node).constant(Constant::Device(device));
            replace(graph, output, constant);
        }
    }
}

/// Replaces the parts of a tuple that is taken apart by the values that it was built from.
fn lower_tuples(graph: &mut Graph) {
    for node in graph.all_nodes() {
        let kind = graph.kind(node);
        let Some(tuple) = graph.operand(node, 0).and_then(|tuple| graph.defining_node(tuple)) else {
            continue;
        };
        if graph.kind(tuple) != symbols::PRIM_TUPLE_CONSTRUCT {
            continue;
        }
        let parts: Vec<ValueId> = graph.operands(tuple).collect();
        if kind == symbols::PRIM_TUPLE_UNPACK {
            let outputs = graph.node_outputs(node).to_vec();
            for (output, part) in outputs.into_iter().zip(parts) {
                replace(graph, output, part);
            }
        } else if kind == symbols::PRIM_TUPLE_INDEX {
            let index = graph
                .operand(node, 1)
                .and_then(|index| graph.constant(index))
                .and_then(|c| c.as_int());
            let index = index.map(|i| if i < 0 { i + parts.len() as i64 } else { i });
            let part = index
                .and_then(|i| usize::try_from(i).ok())
                .and_then(|i| parts.get(i).copied());
            if let (Some(part), Some(output)) = (part, graph.output(node)) {
                replace(graph, output, part);
            }
        }
    }
}

/// Makes constants of tuples of constants; the inner ones come first.
fn fold_tuples(graph: &mut Graph) {
    for node in graph.all_nodes() {
        if graph.kind(node) != symbols::PRIM_TUPLE_CONSTRUCT {
            continue;
        }
        let items: Option<Vec<Constant>> = graph.operands(node).map(|item| graph.constant(item)).collect();
        let items = items.filter(|items| items.iter().all(is_immutable));
        if let (Some(items), Some(output)) = (items, graph.output(node)) {
            let ty = graph.ty(output);
            let tuple = Constant::Tuple(Arc::new(TupleConstant { ty, items }));
            let constant = Builder::before(graph, node).constant_typed(tuple, ty);
            // As in PyTorch it loses the name that it was assigned to.
            graph.replace_all_uses_with(output, constant);
        }
    }
}

fn is_immutable(constant: &Constant) -> bool {
    match constant {
        Constant::None
        | Constant::Bool(_)
        | Constant::Int(_)
        | Constant::Float(_)
        | Constant::Complex(_)
        | Constant::Str(_)
        | Constant::Device(_)
        | Constant::Enum(_) => true,
        Constant::Tuple(tuple) => tuple.items.iter().all(is_immutable),
        _ => false,
    }
}

/// `to` takes the place of `from`, and its name if it has none.
fn replace(graph: &mut Graph, from: ValueId, to: ValueId) {
    if let (None, Some(name)) = (graph.value_name(to), graph.value_name(from)) {
        graph.set_value_name(to, name);
    }
    graph.replace_all_uses_with(from, to);
}

/// Operators with an effect besides their results.
const EFFECTS: &[&str] = &[
    "prim::Print",
    "prim::RaiseException",
    "prim::SetAttr",
    "aten::warn",
    "aten::save",
    "aten::manual_seed",
    "prim::AddStatValue",
    "prim::TimePoint",
    "prim::CallFunction",
    "prim::CallMethod",
    "prim::fork",
    "prim::awaitable",
    "prim::awaitable_wait",
    "aten::wait",
    "prim::rpc_async",
    "prim::PythonOp",
    "aten::set_",
    "aten::_set_item",
    "aten::seed",
    "prim::CreateObject",
    "prim::BailOut",
    "prim::Enter",
    "prim::Exit",
];

/// Erases what neither has an effect nor is used, and outputs of control flow that nobody uses.
fn remove_dead(graph: &mut Graph, catalogue: &Catalogue) {
    loop {
        let mut changed = false;
        for node in graph.all_nodes().into_iter().rev() {
            if !graph.is_alive(node) {
                continue;
            }
            changed |= match graph.kind(node) {
                symbols::PRIM_IF => remove_dead_if_outputs(graph, node),
                symbols::PRIM_LOOP => remove_dead_loop_outputs(graph, node),
                _ => false,
            };
            let used = graph.node_outputs(node).iter().any(|&output| graph.has_uses(output));
            if !used && !has_effect(graph, catalogue, node) {
                changed |= graph.erase(node);
            }
        }
        if !changed {
            return;
        }
    }
}

fn has_effect(graph: &Graph, catalogue: &Catalogue, node: NodeId) -> bool {
    let blocks = graph.node_blocks(node);
    if !blocks.is_empty() {
        // A loop may also run forever, which counts as no effect.
        return blocks
            .iter()
            .any(|&block| graph.nodes(block).any(|inner| has_effect(graph, catalogue, inner)));
    }
    let kind = graph.kind_name(node);
    if EFFECTS.contains(&kind) {
        return true;
    }
    match kind {
        "prim::Constant"
        | "prim::TupleConstruct"
        | "prim::TupleUnpack"
        | "prim::TupleIndex"
        | "prim::TupleSlice"
        | "prim::ListConstruct"
        | "prim::ListUnpack"
        | "prim::DictConstruct"
        | "prim::GetAttr"
        | "prim::Uninitialized"
        | "prim::unchecked_cast"
        | "prim::isinstance" => false,
        _ => match catalogue.resolve(graph, node) {
            // Random operators draw from a generator, but PyTorch drops them, too. What gives nothing is called for what it does, such
            // as `aten::set_grad_enabled`.
            Resolution::Found(schema) => schema.is_mutable() || (schema.returns.is_empty() && !schema.is_varret),
            Resolution::NoOverload | Resolution::Unknown => true,
        },
    }
}

fn remove_dead_if_outputs(graph: &mut Graph, node: NodeId) -> bool {
    let mut changed = false;
    for index in (0..graph.node_outputs(node).len()).rev() {
        if graph.remove_output(node, index) {
            for block in graph.node_blocks(node).to_vec() {
                graph.remove_result(block, index);
            }
            changed = true;
        }
    }
    changed
}

/// A carried value goes when neither the loop's body nor anybody after the loop reads it.
fn remove_dead_loop_outputs(graph: &mut Graph, node: NodeId) -> bool {
    let Some(&block) = graph.node_blocks(node).first() else {
        return false;
    };
    let mut changed = false;
    for index in (0..graph.node_outputs(node).len()).rev() {
        let (Some(&output), Some(&parameter)) = (
            graph.node_outputs(node).get(index),
            graph.parameters(block).get(index + 1),
        ) else {
            continue;
        };
        // A parameter that is only passed on is not read.
        let passed_on = graph
            .uses(parameter)
            .all(|u| u.user == graph.return_node(block) && u.index == index + 1);
        if graph.has_uses(output) || !passed_on {
            continue;
        }
        graph.remove_result(block, index + 1);
        if graph.remove_parameter(block, index + 1) && graph.remove_output(node, index) {
            graph.remove_operand(node, index + 2);
            changed = true;
        }
    }
    changed
}

/// Moves every constant to the head of the graph, each before those that were there, and merges equal ones.
fn pool_constants(graph: &mut Graph) {
    let mut pooled: HashMap<(TypeId, u64), Vec<NodeId>> = HashMap::new();
    let root = graph.root();
    for node in graph.all_nodes() {
        if graph.kind(node) != symbols::PRIM_CONSTANT {
            continue;
        }
        let Some(output) = graph.output(node) else { continue };
        let alike = pooled.entry((graph.ty(output), digest(graph, node))).or_default();
        let equal = alike.iter().copied().find(|&other| same_constant(graph, node, other));
        match equal.and_then(|equal| graph.output(equal)) {
            Some(known) => {
                graph.replace_all_uses_with(output, known);
                graph.erase(node);
            }
            None => {
                if let Some(first) = graph.first(root).filter(|&first| first != node) {
                    graph.move_before(node, first);
                }
                alike.push(node);
            }
        }
    }
}

/// A number that equal constants share, and most others do not.
fn digest(graph: &Graph, node: NodeId) -> u64 {
    match graph.attribute(node, symbols::ATTR_VALUE) {
        Some(AttributeValue::Constant(Constant::Int(int))) => int.cast_unsigned(),
        Some(AttributeValue::Constant(Constant::Float(float))) => float.to_bits(),
        Some(AttributeValue::Constant(Constant::Str(text))) => {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            hasher.finish()
        }
        _ => 0,
    }
}

fn same_constant(graph: &Graph, a: NodeId, b: NodeId) -> bool {
    let same_type = match (graph.output(a), graph.output(b)) {
        (Some(a), Some(b)) => graph.ty(a) == graph.ty(b),
        _ => false,
    };
    // Members of enumerations have an identity, which `is` asks for.
    let is_member = |node| matches!(graph.constant_of(node), Some(Constant::Enum(_)));
    if is_member(a) || is_member(b) {
        return false;
    }
    let (a, b) = (graph.attributes(a), graph.attributes(b));
    same_type && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name == b.name && a.value.same(&b.value))
}

/// Orders the outputs of every `prim::If` and `prim::Loop` by where they are first used, unused ones last.
fn order_outputs(graph: &mut Graph, block: BlockId) {
    // From the end, because an order depends on the nodes that follow; iterative over blocks, which may nest deeply.
    let mut pending = vec![block];
    while let Some(block) = pending.pop() {
        let mut next = graph.last(block);
        while let Some(node) = next {
            next = graph.previous(node);
            let kind = graph.kind(node);
            if kind == symbols::PRIM_IF || kind == symbols::PRIM_LOOP {
                let order = order_of_uses(graph, node);
                permute(graph, node, &order, kind == symbols::PRIM_LOOP);
            }
            pending.extend_from_slice(graph.node_blocks(node));
        }
    }
}

fn order_of_uses(graph: &Graph, node: NodeId) -> Vec<usize> {
    let firsts: Vec<Option<Use>> = graph
        .node_outputs(node)
        .iter()
        .map(|&output| graph.uses(output).min_by(|a, b| compare(graph, a, b)))
        .collect();
    let mut order: Vec<usize> = (0..firsts.len()).collect();
    order.sort_by(|&i, &j| match (&firsts[i], &firsts[j]) {
        (Some(a), Some(b)) => compare(graph, a, b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
    order
}

fn compare(graph: &Graph, a: &Use, b: &Use) -> Ordering {
    if a.user == b.user {
        return a.index.cmp(&b.index);
    }
    graph.compare(a.user, b.user).unwrap_or(Ordering::Equal)
}

/// Puts the outputs of a control-flow node, and all that belongs to them, into `order`.
fn permute(graph: &mut Graph, node: NodeId, order: &[usize], is_loop: bool) {
    if order.iter().enumerate().all(|(to, &from)| to == from) {
        return;
    }
    graph.permute_outputs(node, order);
    for block in graph.node_blocks(node).to_vec() {
        let results: Vec<ValueId> = graph.results(block).collect();
        let skip = usize::from(is_loop);
        let head = results.iter().copied().take(skip);
        let permuted = head.chain(order.iter().filter_map(|&from| results.get(from + skip).copied()));
        let permuted: Vec<ValueId> = permuted.collect();
        graph.set_results(block, &permuted);
        if is_loop {
            let shifted: Vec<usize> = std::iter::once(0).chain(order.iter().map(|&from| from + 1)).collect();
            graph.permute_parameters(block, &shifted);
        }
    }
    if is_loop {
        let operands: Vec<ValueId> = graph.operands(node).collect();
        let head = operands.iter().copied().take(2);
        let permuted: Vec<ValueId> = head
            .chain(order.iter().filter_map(|&from| operands.get(from + 2).copied()))
            .collect();
        graph.set_operands(node, &permuted);
    }
}
