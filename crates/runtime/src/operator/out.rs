//! The arguments that an `out` overload writes.

use frazil_ir::schema::{Argument, FunctionSchema};

/// Returns true for an `out` overload: its results are arguments after the `*`, which the operator writes.
pub fn writes_out(schema: &FunctionSchema) -> bool {
    let outs = out_arguments(schema).count();
    outs > 0 && outs == schema.returns.len()
}

/// Returns the indices of the arguments that an `out` overload writes.
pub fn out_arguments(schema: &FunctionSchema) -> impl Iterator<Item = usize> + '_ {
    let written = |a: &Argument| a.keyword_only && a.alias.as_ref().is_some_and(|x| x.is_write);
    schema
        .arguments
        .iter()
        .enumerate()
        .filter(move |(_, a)| written(a))
        .map(|(i, _)| i)
}
