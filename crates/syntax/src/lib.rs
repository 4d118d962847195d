//! The `.ir` text form: parser, printer and messages.
//!
//! - [`parse_graph`] and [`print_graph`] read and write graphs as PyTorch prints them, byte for byte.
//! - [`render`] shows [diagnostics](frazil_ir::Diagnostic) with the lines they are about.
#![forbid(unsafe_code)]

mod diagnostics;
mod parse;
mod print;

pub use diagnostics::{ParseError, render};
pub use parse::{ParseOptions, ParsedGraph, SpanTable, parse_graph, parse_graph_with};
pub use print::{PrintOptions, print_graph, print_graph_with};
