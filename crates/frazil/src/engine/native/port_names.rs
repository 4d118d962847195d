//! Names for inputs and outputs of compiled methods, taken from the graph.

use frazil_ir::{Graph, TypeKind, ValueId, symbols};
use frazil_planner::plan::{Plan, Port};
use frazil_planner::specialise::ResultSpec;
use frazil_runtime::Value;
use std::collections::HashSet;

/// Names the inputs of `plan` after the arguments of `graph`, and its outputs after the returned values: variables, fields of NamedTuples, keys of
/// dictionaries. Values without a name keep `input0`, `output1`.
pub(crate) fn name_ports(plan: &mut Plan, graph: &Graph, results: &[ResultSpec]) {
    let is_object = |value: ValueId| matches!(graph.ctx().type_kind(graph.ty(value)), TypeKind::Class(_));
    let arguments: Vec<ValueId> = graph.inputs().iter().copied().filter(|&v| !is_object(v)).collect();
    if arguments.len() == plan.inputs.len() {
        let names = arguments.iter().map(|&value| word(graph, value));
        rename(&mut plan.inputs, names.collect());
    }
    let mut names = vec![None; plan.results().len()];
    for (result, value) in results.iter().zip(graph.outputs()) {
        collect(graph, result, Some(value), word(graph, value), &mut names);
    }
    rename(&mut plan.outputs, names);
}

/// Returns the name of a value without the number at its end.
fn word(graph: &Graph, value: ValueId) -> Option<String> {
    let word = graph.ctx().name(graph.value_name(value)?.word());
    (!word.is_empty()).then(|| word.to_owned())
}

/// Collects the names of the tensors in a result. `value` is the result's value in the graph, `name` the result's name.
fn collect(
    graph: &Graph,
    result: &ResultSpec,
    value: Option<ValueId>,
    name: Option<String>,
    names: &mut [Option<String>],
) {
    match result {
        ResultSpec::Tensor(number) => {
            if let Some(slot @ None) = names.get_mut(*number as usize) {
                *slot = name;
            }
        }
        ResultSpec::Tuple(_, items) | ResultSpec::List(_, items) => {
            let operands = value.map_or_else(Vec::new, |value| elements(graph, value));
            let fields = value.map_or_else(Vec::new, |value| fields(graph, value));
            for (i, item) in items.iter().enumerate() {
                let element = operands.get(i).copied().filter(|_| operands.len() == items.len());
                let own = element.and_then(|element| word(graph, element));
                collect(graph, item, element, fields.get(i).cloned().or(own), names);
            }
        }
        ResultSpec::Dict(_, _, entries) => {
            for (key, item) in entries {
                let name = match &key.0 {
                    Value::Str(text) => Some(text.to_string()),
                    _ => None,
                };
                collect(graph, item, None, name, names);
            }
        }
        _ => {}
    }
}

/// Returns the elements of a tuple or list that a node of the graph constructs.
fn elements(graph: &Graph, value: ValueId) -> Vec<ValueId> {
    match graph.defining_node(value) {
        Some(node) if [symbols::PRIM_TUPLE_CONSTRUCT, symbols::PRIM_LIST_CONSTRUCT].contains(&graph.kind(node)) => {
            graph.operands(node).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the field names of a value that is a NamedTuple.
fn fields(graph: &Graph, value: ValueId) -> Vec<String> {
    let ctx = graph.ctx();
    match ctx.type_kind(graph.ty(value)) {
        TypeKind::NamedTuple(_, fields, _) => ctx.symbols(fields).iter().map(|f| ctx.name(*f).to_owned()).collect(),
        _ => Vec::new(),
    }
}

/// Renames the ports to `names`, except for names that another port already has.
fn rename(ports: &mut [Port], names: Vec<Option<String>>) {
    let mut taken: HashSet<String> = HashSet::new();
    for (port, name) in ports.iter_mut().zip(names) {
        if let Some(name) = name.filter(|name| !taken.contains(name)) {
            port.name = name;
        }
        taken.insert(port.name.clone());
    }
}
