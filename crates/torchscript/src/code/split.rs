//! Splitting of long lines: inlined expressions become statements before the line.

use frazil_ir::{NodeId, ValueId, symbols};

use super::error::CodeError;
use super::function::{FunctionPrinter, GraphIndex, Use};
use super::text::CodeText;

/// Maximum length in characters of a line that is not split.
const LONG: usize = 40;

/// Returns whether an expression of `length` bytes is too long for a line at indentation level `level`.
pub(super) fn is_long(length: usize, level: usize) -> bool {
    length + 2 * level >= LONG
}

impl FunctionPrinter<'_> {
    /// Turns the inlined `value` into a variable, and everything that is evaluated before it within the same statement.
    ///
    /// For example, `f(x.add_(y), long)` becomes `a = x.add_(y)`, `b = long`, `f(a, b)`, because `long` may observe the effect of `add_`.
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

    /// Returns the inlined values from `value` back to the beginning of its statement, in reverse order, without those that have already been split off.
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
