//! Printing.

mod graph;
mod names;
mod number;
pub(crate) mod tensor;
mod value;

pub use graph::{PrintOptions, print_graph, print_graph_with};
