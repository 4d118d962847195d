//! The C interface of the compiler: load, freeze, analyse aliases, compile, run.
//!
//! `include/frazil.h` is generated from these declarations; `tests/header.rs` compares it, and writes it with
//! `FRAZIL_BLESS=1`. The page [docs/c-api.md](https://github.com/frazil-compiler/frazil/blob/main/docs/c-api.md) has a program
//! that uses it.
//!
//! # Rules
//!
//! - Handles are opaque. The handle that a function returns through its last argument belongs to the caller, who frees it with the function of its type;
//!   handles do not depend on each other, and may be freed in any order. `NULL` may be freed.
//! - A function that can fail returns an error, which the caller frees, or `NULL`. With an error, no result is written.
//! - Text is UTF-8 and ends with a zero byte. A pointer with a length points to that number of elements; it may be `NULL` if the length is 0.
//! - Sessions, models, aliases, tensors and options may be used by several threads at once; options only while no thread sets them. An engine and a compiled
//!   method run one call at a time: a concurrent call of another thread is an error of kind `FRAZIL_ERROR_KIND_BUSY`.
//! - A `NULL` pointer where none is allowed is an error. The caller guarantees that any other pointer is valid and of the documented type.
//! - A panic, which would be a bug, ends at this boundary as an error of kind `FRAZIL_ERROR_KIND_INTERNAL`.
#![allow(
    clippy::missing_safety_doc,
    reason = "the rules of all functions stand above, and in the header"
)]

mod alias;
mod archive;
mod attributes;
mod callback;
mod compiled;
mod container;
mod engine;
mod error;
mod hooks;
mod memory;
mod model;
mod object;
mod ops;
mod options;
mod signature;
mod state;
mod tensor;
mod trace;
mod value;

pub use alias::*;
pub use archive::*;
pub use attributes::*;
pub use compiled::*;
pub use container::*;
pub use engine::*;
pub use error::*;
pub use hooks::*;
pub use memory::{frazil_string_free, frazil_version};
pub use model::*;
pub use object::*;
pub use ops::*;
pub use options::*;
pub use signature::*;
pub use state::*;
pub use tensor::*;
pub use trace::*;
pub use value::*;
