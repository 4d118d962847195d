//! TorchScript archives and the TorchScript language front end.
//!
//! [`archive`] opens a `.pt` file and reads its records; nothing in an archive is ever executed while it is read. [`load`] makes a
//! [`Module`](frazil_ir::Module) of it: the objects with their shared tensors, and a graph for each method, compiled from the archive's source code.
//! [`compile_source`] compiles source text by itself. [`code`] prints graphs as source.
//!
//! Each module imports only modules before it in this order: `versions`, `archive`, `error`, `source`, `library`, `options`, `names`, `emit`, `program`,
//! `objects`, `python`, `loader`, `code`, `export`.

pub mod archive;
pub mod code;
mod emit;
mod error;
mod export;
mod library;
mod loader;
mod names;
mod objects;
mod options;
mod program;
mod python;
mod source;
mod versions;

pub use error::{LoadError, SourceError};
pub use export::{SaveError, SaveOptions, function_module, save, save_bytes, save_checkpoint};
pub use loader::{
    Checkpoint, Source, compile_source, define_methods, load, load_archive, load_bytes, load_open, load_source,
    load_source_with,
};
pub use options::{LoadOptions, TraceContext, TraceRequest, Tracer};
pub use program::Known;
