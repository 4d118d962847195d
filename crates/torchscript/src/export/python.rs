//! Check for calls of Python functions (`@torch.jit.ignore`), which archives cannot contain.

use std::collections::HashSet;

use frazil_ir::{Constant, FunctionId, Graph, Module, NodeId, SymbolId, TypeKind, symbols};

use super::SaveError;
use crate::emit::python_function;

/// Returns an error if the methods of the module's objects, directly or indirectly, call a Python function.
pub(super) fn check(module: &Module) -> Result<(), SaveError> {
    let classes: HashSet<SymbolId> = module.objects().map(|(_, object)| object.class).collect();
    let methods = classes.iter().filter_map(|&name| module.unit.class(name));
    let mut pending: Vec<FunctionId> = methods.flat_map(|class| class.methods.values().copied()).collect();
    let mut seen: HashSet<FunctionId> = pending.iter().copied().collect();
    let is_python = |id| stands_for(module, id);
    // Such a function may be a method of its class.
    pending.retain(|&id| is_python(id).is_none());
    while let Some(id) = pending.pop() {
        let graphs = module.unit.function(id).graph.self_and_subgraphs();
        for (graph, node) in graphs
            .into_iter()
            .flat_map(|g| g.all_nodes().into_iter().map(move |n| (g, n)))
        {
            let called = callee(module, graph, node);
            if let Some(name) = called.and_then(is_python).or_else(|| python_function(graph, node)) {
                return Err(SaveError::Python {
                    name: module.ctx().name(name).to_owned(),
                    place: graph
                        .source_range(node)
                        .map(|range| range.display(module.ctx()).to_string()),
                });
            }
            pending.extend(called.filter(|&id| seen.insert(id)));
        }
    }
    Ok(())
}

/// Returns the name of function `id` if it is itself a Python function. A function into which a Python function was
/// inlined does not count.
fn stands_for(module: &Module, id: FunctionId) -> Option<SymbolId> {
    let (ctx, function) = (module.ctx(), module.unit.function(id));
    let graph = &function.graph;
    let marked = graph
        .all_nodes()
        .into_iter()
        .find_map(|node| python_function(graph, node))?;
    (ctx.name(function.name).rsplit('.').next() == Some(ctx.name(marked))).then_some(marked)
}

/// Returns the function that the call node `node` calls, if it is known without running the program.
fn callee(module: &Module, graph: &Graph, node: NodeId) -> Option<FunctionId> {
    let first = graph.operand(node, 0)?;
    match graph.kind(node) {
        symbols::PRIM_CALL_METHOD => match graph.ctx().type_kind(graph.ty(first)) {
            TypeKind::Class(class) => {
                let name = graph.attribute_symbol(node, symbols::ATTR_NAME)?;
                module.unit.method(class, name)
            }
            _ => None,
        },
        symbols::PRIM_CALL_FUNCTION => match graph.constant(first)? {
            Constant::Function(name) => module.unit.find_function(name),
            _ => None,
        },
        _ => None,
    }
}
