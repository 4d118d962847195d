//! Resolution of call nodes to the functions that they call.

use frazil_ir::{CompilationUnit, Constant, FunctionId, Graph, NodeId, SymbolId, TypeKind, symbols};

/// The error for a call of a method that the class does not have.
pub(crate) struct NoMethod {
    /// The qualified name of the class.
    pub class: SymbolId,
    /// The name of the method.
    pub method: SymbolId,
}

pub(crate) struct Call {
    pub(crate) callee: FunctionId,
    /// Number of leading operands that are not arguments: 1 for a `prim::CallFunction`, whose first operand is the function.
    pub(crate) skip: usize,
}

/// Returns the callee of `node`, if it is a call and the callee is known.
pub(crate) fn resolve(unit: &CompilationUnit, graph: &Graph, node: NodeId) -> Result<Option<Call>, NoMethod> {
    let Some(first) = graph.operand(node, 0) else {
        return Ok(None);
    };
    let ctx = graph.ctx();
    match graph.kind(node) {
        symbols::PRIM_CALL_FUNCTION => {
            let name = match (graph.constant(first), ctx.type_kind(graph.ty(first))) {
                (Some(Constant::Function(name)), _) | (_, TypeKind::Function(name)) => name,
                _ => return Ok(None),
            };
            Ok(unit.find_function(name).map(|callee| Call { callee, skip: 1 }))
        }
        symbols::PRIM_CALL_METHOD => {
            let TypeKind::Class(class) = ctx.type_kind(graph.ty(first)) else {
                return Ok(None);
            };
            let Some(method) = graph.attribute_symbol(node, symbols::ATTR_NAME) else {
                return Ok(None);
            };
            match unit.method(class, method) {
                Some(callee) => Ok(Some(Call { callee, skip: 0 })),
                // A class that C++ code registers, whose methods are unknown.
                None if unit.class(class).is_none() => Ok(None),
                None => Err(NoMethod { class, method }),
            }
        }
        _ => Ok(None),
    }
}
