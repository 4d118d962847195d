//! The `.ir` text form: parser, printer and diagnostics.
//!
//! - [`parse_graph`] and [`print_graph`] read and write graphs as PyTorch prints them, byte for byte.
//! - [`write_module`] and [`read_module`] write and read whole modules, without loss.
//! - [`print_dot`] draws graphs.
//! - [`parse_any`] reads a graph or a module.
//! - [`render`] shows [diagnostics](frazil_ir::Diagnostic) with the affected lines.
#![deny(unsafe_code)]

mod any;
mod cache;
mod diagnostics;
mod dot;
mod dtypes;
mod identity;
mod module;
mod output;
mod parse;
mod print;
mod private;
mod sealed;

pub use any::{Parsed, TextKind, parse_any, sniff};
pub use cache::{CacheFolder, NOTE_ENDING, record_use};
pub use diagnostics::{ParseError, render};
pub use dot::print_dot;
pub use dtypes::{from_safetensors, to_safetensors};
pub use identity::FileIdentity;
pub use module::{
    Difference, ModulePrintOptions, NoTensors, ReadError, TensorFile, TensorFileError, TensorSource, WriteError,
    equal_modules, parse_module, parse_module_with, print_module_to_string, read_module, read_module_open,
    read_module_with, write_module, write_module_if, write_tensors,
};
pub use output::{OutputFile, TemporaryFolder, write_atomically};
pub use parse::{ParseOptions, ParsedGraph, SpanTable, parse_graph, parse_graph_with};
pub use print::{GraphText, PrintOptions, print_graph, print_graph_with};
pub use private::{PrivateFolder, read_regular};
pub use sealed::{SEAL_BYTES, Secret, read_sealed};
