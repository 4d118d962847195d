//! Long lines: expressions inside an expression become statements before it.

use frazil_ir::{NodeId, ValueId, symbols};

use super::error::CodeError;
use super::function::{FunctionPrinter, GraphIndex, Use};
use super::text::CodeText;

/// Lines are broken before they reach so many characters.
const LONG: usize = 40;

/// Whether an expression of `length` bytes is too long for a line that is indented `level` times.
pub(super) fn is_long(length: usize, level: usize) -> bool {
    length + 2 * level >= LONG
}

impl FunctionPrinter<'_> {
    /// Makes the inlined `value` a variable, and with it everything that is evaluated before it within the same statement:
    /// `f(x.add_(y), long)` becomes `a = x.add_(y)`, `b = long`, `f(a, b)`, because `long` may see what `add_` does.
    pub(super) fn split_long(&mut self, graph: GraphIndex, value: ValueId) -> Result<(), CodeError> {
        for value in self.evaluated_up_to(graph, value).into_iter().rev() {
            let Some(node) = self.graph(graph).defining_node(value) else {
                continue;
            };
            let text = match self.use_of(graph, value)? {
                Use::Expression(text) => text,
                Use::Name(name) => {
                    let mut text = CodeText::default();
                    text.push(self.range, &name);
                    text.into()
                }
            };
            self.definition(graph, node, &text)?;
        }
        Ok(())
    }

    /// The inlined values from `value` back to the beginning of its statement that have not been split off before, the last first.
    fn evaluated_up_to(&mut self, graph: GraphIndex, value: ValueId) -> Vec<ValueId> {
        let state = &mut self.graphs[graph];
        let g = state.graph;
        let mut found = Vec::new();
        // From the user up to the statement: each node with the number of its operands that count.
        let mut next = g.single_use(value).map(|only| (only.user, only.index + 1));
        while let Some((user, count)) = next {
            let done = state.split.insert(user, count);
            for operand in (done.unwrap_or(0)..count).rev().filter_map(|i| g.operand(user, i)) {
                let inlined = |&node: &NodeId| g.kind(node) != symbols::PRIM_CONSTANT && state.is_inlined(node);
                found.extend(g.defining_node(operand).filter(inlined).map(|_| operand));
            }
            // The operand that we come from is being printed and stays.
            let upwards = g.output(user).filter(|_| done.is_none() && state.is_inlined(user));
            next = upwards
                .and_then(|output| g.single_use(output))
                .map(|only| (only.user, only.index));
        }
        found
    }
}
