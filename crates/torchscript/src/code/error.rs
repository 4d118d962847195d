//! Errors of printing code.

use frazil_ir::{Graph, NodeId};

/// A graph, function or class that TorchScript cannot express.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// A node that TorchScript cannot express.
    #[error("{place}`{kind}` cannot be written as TorchScript: {why}")]
    Node {
        /// The node's kind.
        kind: String,
        /// The reason.
        why: String,
        /// The node's source location, followed by a colon; empty if it is unknown.
        place: String,
    },
    /// A function whose signature does not fit its graph, or that returns several values.
    #[error("function `{name}` cannot be written as TorchScript: {why}")]
    Function {
        /// The name of the function.
        name: String,
        /// The reason.
        why: String,
    },
    /// A constant that has no literal.
    #[error("a constant cannot be written as TorchScript: {0}")]
    Constant(String),
    /// A name that is not defined in the compilation unit.
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
