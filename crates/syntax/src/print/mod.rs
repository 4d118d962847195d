//! Printing of graphs, modules, values and tensors as text.

pub(crate) mod graph;
pub(crate) mod tensor;
pub(crate) mod value;

pub use graph::{GraphText, PrintOptions, print_graph, print_graph_with};
