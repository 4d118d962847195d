//! The final form of a graph, as PyTorch's compiler makes it after emission, so that graphs are printed alike:
//!
//! 1. Tuples that are only unpacked are removed, and constant tuples become constants.
//! 2. Dead nodes are removed.
//! 3. Nodes of source that depend on constants alone are evaluated, if the semantics of operators are known
//!    ([`LoadOptions::operators`](crate::LoadOptions::operators)).
//! 4. Constants move to the start of the graph, and equal ones are merged.
//! 5. Outputs of control flow are ordered by their first use.

use std::sync::Arc;

use frazil_ir::{BlockId, Builder, Constant, Device, Graph, TupleConstant, ValueId, symbols};
use frazil_passes::constant_pooling::ConstantPooling;
use frazil_passes::constant_propagation::ConstantPropagation;
use frazil_passes::dce::DeadCodeElimination;
use frazil_passes::support::outputs::{order_of_uses, permute};
use frazil_passes::{GraphPass, Operators, PassContext, TorchScript, lower_simple_tuples};

use crate::names::Names;

/// Brings a freshly emitted graph into its final form.
pub(super) fn run(graph: &mut Graph, names: &dyn Names) {
    let operators = names.operators();
    let schemas: &dyn Operators = names.catalogue();
    let mut cx = PassContext::new(operators.unwrap_or(schemas));
    fold_devices(graph);
    lower_tuples(graph);
    fold_tuples(graph);
    apply(&DeadCodeElimination::default(), graph, &mut cx);
    if operators.is_some() {
        let immutable = ConstantPropagation {
            immutable_only: true,
            ..ConstantPropagation::default()
        };
        apply(&immutable, graph, &mut cx);
    }
    apply(&ConstantPooling, graph, &mut cx);
    let root = graph.root();
    order_outputs(graph, root);
}

/// Runs a pass. It fails only if the budget is exceeded; the loader reports this error at the end of loading.
fn apply(pass: &dyn GraphPass<TorchScript>, graph: &mut Graph, cx: &mut PassContext<'_>) {
    let _ = cx.run(pass, graph);
}

/// Replaces `torch.device("cpu")`, the notation of devices in source, by a constant.
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

/// Replaces the elements of an unpacked tuple by the values from which the tuple was built. Unlike `lower-simple-tuples`, it does not change slices. A
/// replaced element passes its name on to a value without a name.
fn lower_tuples(graph: &mut Graph) {
    for node in graph.all_nodes() {
        if let Some((elements, false)) = lower_simple_tuples::elements(graph, node) {
            let outputs = graph.node_outputs(node).to_vec();
            for (output, element) in outputs.into_iter().zip(elements) {
                replace(graph, output, element);
            }
        }
    }
}

/// Replaces tuples of constants by constants, inner tuples first.
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

/// Replaces `from` by `to`. If `to` has no name, it gets the name of `from`.
fn replace(graph: &mut Graph, from: ValueId, to: ValueId) {
    if let (None, Some(name)) = (graph.value_name(to), graph.value_name(from)) {
        graph.set_value_name(to, name);
    }
    graph.replace_all_uses_with(from, to);
}

/// Orders the outputs of every `prim::If` and `prim::Loop` by their first use. Unused outputs come last.
fn order_outputs(graph: &mut Graph, block: BlockId) {
    // From the end, because an order depends on the nodes that follow; iterative over blocks, which may nest deeply.
    let mut pending = vec![block];
    while let Some(block) = pending.pop() {
        let mut next = graph.last(block);
        while let Some(node) = next {
            next = graph.previous(node);
            if matches!(graph.kind(node), symbols::PRIM_IF | symbols::PRIM_LOOP) {
                let order = order_of_uses(graph, node);
                if !order.is_sorted() {
                    permute(graph, node, &order);
                }
            }
            pending.extend_from_slice(graph.node_blocks(node));
        }
    }
}
