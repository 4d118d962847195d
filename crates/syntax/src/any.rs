//! Reading of a text that is a graph or a module.

use crate::diagnostics::ParseError;
use crate::module::{TensorSource, parse_module_with};
use crate::parse::cursor::Cursor;
use crate::parse::{ParseOptions, ParsedGraph, parse_graph_with};
use frazil_ir::{Context, Module};
use std::sync::Arc;

/// Whether a text is a graph or a module; see [`sniff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// A graph: `graph(...)`.
    Graph,
    /// A module: `frazil module 1`.
    Module,
}

/// The result of [`parse_any`]: a graph or a module.
#[derive(Clone, Debug)]
pub enum Parsed {
    /// A graph.
    Graph(Box<ParsedGraph>),
    /// A module.
    Module(Box<Module>),
}

/// Detects the kind of a text from its first words. Returns `None` if the text is neither a graph nor a module, for example if it is Python source.
///
/// ```
/// # use frazil_syntax::{TextKind, sniff};
/// assert_eq!(sniff("# RUN: jit-opt %s\ngraph(%x : Tensor):\n"), Some(TextKind::Graph));
/// assert_eq!(sniff("frazil module 1\n"), Some(TextKind::Module));
/// assert_eq!(sniff("import torch\n"), None);
/// ```
pub fn sniff(text: &str) -> Option<TextKind> {
    let mut cur = Cursor::new(text);
    cur.skip_space();
    match cur.word() {
        "graph" => {
            cur.skip_blanks();
            (cur.peek() == b'(').then_some(TextKind::Graph)
        }
        "frazil" => cur.eat_word("module").then_some(TextKind::Module),
        _ => None,
    }
}

/// Reads a graph or a module. `tensors` returns the bytes of a module that are not in the text.
///
/// # Errors
/// All errors in the text, with their locations.
pub fn parse_any(
    ctx: &Arc<Context>,
    text: &str,
    options: ParseOptions<'_>,
    tensors: &dyn TensorSource,
) -> Result<Parsed, ParseError> {
    match sniff(text) {
        Some(TextKind::Module) => parse_module_with(ctx, text, tensors, options).map(|m| Parsed::Module(Box::new(m))),
        // For other texts, the graph parser reports the error.
        Some(TextKind::Graph) | None => parse_graph_with(ctx, text, options).map(|g| Parsed::Graph(Box::new(g))),
    }
}
