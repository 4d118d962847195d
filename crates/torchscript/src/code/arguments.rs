//! Arguments of operators: which have to be written.

use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::{Constant, Graph, NodeId, SymbolId, ValueId};

use super::constants::typed;
use super::function::{FunctionPrinter, GraphIndex};
use crate::versions::min_version;

impl FunctionPrinter<'_> {
    /// The operands that have to be written, with their names where they need one.
    ///
    /// Those at the end that equal their defaults are left out. Tensors that results are written to stand behind all others and stay.
    /// Operators that the catalogue does not know get all operands in order.
    pub(super) fn written_arguments(&mut self, graph: GraphIndex, node: NodeId) -> Vec<(Option<SymbolId>, ValueId)> {
        let g = self.graph(graph);
        let operands = self.operands(graph, node);
        let Some(schema) = self.program.catalogue.resolve(g, node).found() else {
            return operands.into_iter().map(|value| (None, value)).collect();
        };
        let ctx = self.program.ctx;
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

/// How many operands, outputs aside, have to be written.
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

/// A tensor that the result is written to: `out` of most operators.
fn is_output(argument: &Argument) -> bool {
    argument.keyword_only && argument.alias.as_ref().is_some_and(|alias| alias.is_write)
}

/// Equality of values as programs see it, but never between kinds: 1 is not 1.0.
fn is_equal(a: &Constant, b: &Constant) -> bool {
    match (a, b) {
        (Constant::Float(a), Constant::Float(b)) => a == b,
        (Constant::List(a), Constant::List(b)) => {
            a.items.len() == b.items.len() && a.items.iter().zip(&b.items).all(|(a, b)| is_equal(a, b))
        }
        _ => a.same(b),
    }
}
