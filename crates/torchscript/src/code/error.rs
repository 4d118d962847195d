//! Errors of printing code.

use frazil_ir::{Graph, NodeId};

/// The reason why a graph, function or class cannot be printed as TorchScript code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// A node has no representation in TorchScript code.
    #[error("{place}`{kind}` cannot be written as TorchScript: {why}")]
    Node {
        /// The kind of the node.
        kind: String,
        /// The reason why the node cannot be printed.
        why: String,
        /// The source location of the node, followed by a colon; empty if it is unknown.
        place: String,
    },
    /// The signature of a function does not fit its graph, or the function returns several values.
    #[error("function `{name}` cannot be written as TorchScript: {why}")]
    Function {
        /// The name of the function.
        name: String,
        /// The reason why the function cannot be printed.
        why: String,
    },
    /// A constant has no literal.
    #[error("a constant cannot be written as TorchScript: {0}")]
    Constant(String),
    /// A name is not defined in the compilation unit.
    #[error("nothing is called `{0}`")]
    Unknown(String),
}

impl CodeError {
    pub(super) fn node(graph: &Graph, node: NodeId, why: impl Into<String>) -> CodeError {
        let place = graph.source_range(node);
        CodeError::Node {
            kind: graph.kind_name(node).to_owned(),
            why: why.into(),
            place: place.map_or_else(String::new, |range| format!("{}: ", range.display(graph.ctx()))),
        }
    }
}
