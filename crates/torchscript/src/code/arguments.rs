//! Printing of operators' arguments: which of them can be omitted.

use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::{Constant, Graph, NodeId, SymbolId, ValueId};

use super::constants::typed;
use super::function::{FunctionPrinter, GraphIndex};
use crate::versions::min_version;

impl FunctionPrinter<'_> {
    /// Returns the operands that have to be printed, with their names where a name is required.
    ///
    /// Trailing operands that equal their defaults are left out. Output tensors come after all other operands and are always printed. Operators that are
    /// missing in the catalogue get all operands in order.
    pub(super) fn written_arguments(&mut self, graph: GraphIndex, node: NodeId) -> Vec<(Option<SymbolId>, ValueId)> {
        let g = self.graph(graph);
        let operands = self.operands(graph, node);
        let Some(schema) = self.context.catalogue.resolve(g, node).found() else {
            return operands.into_iter().map(|value| (None, value)).collect();
        };
        let ctx = self.context.ctx;
        if let Some(version) = min_version(ctx.name(schema.name), ctx.name(schema.overload)) {
            self.tables.min_version = self.tables.min_version.max(version);
        }
        let keyword = |index: usize| schema.arguments.get(index).filter(|a| a.keyword_only).map(|a| a.name);
        let outputs = schema.arguments.iter().rev().take_while(|a| is_output(a)).count();
        let needed = needed_arguments(g, &schema, &operands, outputs);
        let first = (0..needed).chain((schema.arguments.len() - outputs).max(needed)..schema.arguments.len());
        // What follows the arguments of the schema belongs to operators that take any number.
        let rest = schema.arguments.len().max(needed)..operands.len();
        first
            .chain(rest)
            .filter_map(|index| Some((keyword(index), *operands.get(index)?)))
            .collect()
    }
}

/// Returns the number of operands that have to be printed, without outputs.
fn needed_arguments(graph: &Graph, schema: &FunctionSchema, operands: &[ValueId], outputs: usize) -> usize {
    if operands.len() > schema.arguments.len() {
        return operands.len();
    }
    let inputs = schema.arguments.len() - outputs;
    let given = schema.arguments[..inputs].iter().zip(operands);
    let count = given.len();
    let has_default = |(argument, value): &(&Argument, &ValueId)| {
        let (Some(default), Some(given)) = (&argument.default, graph.constant(**value)) else {
            return false;
        };
        let given = typed(graph.ctx(), &given, graph.ty(**value));
        is_equal(default, &given)
    };
    count - given.rev().take_while(has_default).count()
}

/// Returns true for an argument that is an output tensor of the operator, such as `out`.
fn is_output(argument: &Argument) -> bool {
    argument.keyword_only && argument.alias.as_ref().is_some_and(|alias| alias.is_write)
}

/// Returns whether two constants are equal and of the same type: 1 is not 1.0.
fn is_equal(a: &Constant, b: &Constant) -> bool {
    match (a, b) {
        (Constant::Float(a), Constant::Float(b)) => a == b,
        (Constant::List(a), Constant::List(b)) => {
            a.items.len() == b.items.len() && a.items.iter().zip(&b.items).all(|(a, b)| is_equal(a, b))
        }
        _ => a.same(b),
    }
}
