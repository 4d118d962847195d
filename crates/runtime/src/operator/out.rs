//! The arguments of `out` overloads.

use frazil_ir::schema::{Argument, FunctionSchema};

/// True when the results are arguments behind the `*` that the operator writes.
pub fn writes_out(schema: &FunctionSchema) -> bool {
    let outs = out_arguments(schema).count();
    outs > 0 && outs == schema.returns.len()
}

/// The indices of the arguments that an `out` overload writes.
pub fn out_arguments(schema: &FunctionSchema) -> impl Iterator<Item = usize> + '_ {
    let written = |a: &Argument| a.keyword_only && a.alias.as_ref().is_some_and(|x| x.is_write);
    schema
        .arguments
        .iter()
        .enumerate()
        .filter(move |(_, a)| written(a))
        .map(|(i, _)| i)
}
