//! Parsing: one pass over the bytes of a text, without a token list.

pub(crate) mod cursor;
mod graph;
mod inner;
mod node;
mod scope;
mod suggest;
mod tensor_text;
pub(crate) mod types;
pub(crate) mod value;

pub(crate) use graph::GraphParser;
pub use graph::{ParseOptions, ParsedGraph, SpanTable, parse_graph, parse_graph_with};
