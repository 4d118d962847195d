//! Module files: a whole module in text, with the bytes of large tensors in a `.safetensors` file beside it. The form is lossless.

mod class;
mod collect;
mod compare;
mod data;
mod element;
mod parse;
mod print;
mod read;
mod tensors;
mod write;

pub use compare::{Difference, equal_modules};
pub use parse::{parse_module, parse_module_with};
pub use print::{ModulePrintOptions, print_module_to_string};
pub use read::{ReadError, read_module, read_module_open, read_module_with};
pub use tensors::{NoTensors, TensorFile, TensorFileError, TensorSource, write_tensors};
pub use write::{WriteError, write_module, write_module_if};

/// Version of the module format that is written, and the newest version that is read.
const VERSION: i64 = 1;
