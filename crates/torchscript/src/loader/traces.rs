//! Recording of the traces that source requests by `torch.jit.trace`.

use std::collections::HashSet;
use std::sync::Arc;

use frazil_ir::schema::Argument;
use frazil_ir::{Function, FunctionId, Module, TypeId, TypeKind, symbols, types};

use crate::error::Result;
use crate::names::Traces;
use crate::options::LoadOptions;

/// Records the traces that the source text requests, in order.
pub(crate) fn run(module: &mut Module, traces: Traces, options: &LoadOptions<'_>) -> Result<()> {
    let Traces { context, requests, .. } = traces;
    if requests.is_empty() {
        return Ok(());
    }
    let ctx = Arc::clone(options.ctx);
    let plain = |ty: TypeId| match ctx.type_kind(ty) {
        TypeKind::Tensor(_) => types::TENSOR,
        TypeKind::Tuple(elements) => {
            let elements = ctx.types(elements).to_vec();
            let each: Vec<TypeId> = elements
                .into_iter()
                .map(|ty| match ctx.is_tensor(ty) {
                    true => types::TENSOR,
                    false => ty,
                })
                .collect();
            ctx.tuple_of(&each)
        }
        _ => ty,
    };
    for request in &requests {
        let traced = match options.trace {
            Some(trace) => trace(module, &context, request),
            None => Err("operators are not known here".to_owned()),
        };
        let graph = traced.map_err(|reason| {
            let mut error = request.error.clone();
            error.diagnostic.message = reason;
            error
        })?;
        let returns = graph
            .outputs()
            .map(|ty| Argument::plain(symbols::EMPTY, plain(graph.ty(ty))));
        let returns = returns.collect();
        let function = module.unit.function_mut(request.function);
        function.schema.returns = returns;
        function.graph = graph;
        let function = function.clone();
        for &name in &request.names {
            let mut other = Function {
                name,
                ..function.clone()
            };
            other.schema.name = name;
            module.unit.add_function(other);
        }
    }
    let traced: HashSet<FunctionId> = requests.iter().map(|request| request.function).collect();
    module
        .unit
        .retain_functions(|id| !context.inlined.contains(&id) || traced.contains(&id));
    Ok(())
}
