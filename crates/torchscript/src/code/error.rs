//! Why something cannot be printed.

use frazil_ir::{Graph, NodeId};

/// Why a graph, function or class has no text in TorchScript.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// A node that the language cannot express.
    #[error("{place}`{kind}` cannot be written as TorchScript: {why}")]
    Node {
        /// The node's kind.
        kind: String,
        /// What is in the way.
        why: String,
        /// Where the node comes from, with a colon behind; empty if it is not known.
        place: String,
    },
    /// A function whose signature does not fit its graph, or that returns several values.
    #[error("function `{name}` cannot be written as TorchScript: {why}")]
    Function {
        /// Its name.
        name: String,
        /// What is in the way.
        why: String,
    },
    /// A constant that has no literal.
    #[error("a constant cannot be written as TorchScript: {0}")]
    Constant(String),
    /// A name that the compilation unit does not define.
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
