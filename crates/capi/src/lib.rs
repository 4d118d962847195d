//! The C interface of the compiler: load, freeze, ask about aliases, compile, run.
//!
//! `include/frazil.h` is made of these declarations; `tests/header.rs` compares, and writes it with `FRAZIL_BLESS=1`. The page
//! [docs/c-api.md](https://github.com/frazil-compiler/frazil/blob/main/docs/c-api.md) has a program that uses it.
//!
//! # Rules
//!
//! - Handles are opaque. What a function gives through its last argument belongs to the caller, who frees it with the function of its type;
//!   nothing is freed by what it was made of, and everything may be freed in any order. `NULL` may be freed.
//! - What can fail gives an error, which the caller frees, or `NULL`. With an error, no result is written.
//! - Text is UTF-8 and ends with a zero byte. A pointer with a length points to so many elements; it may be `NULL` when that is 0.
//! - Sessions, models, aliases, tensors and options may be used by several threads at once; options only as long as nobody sets them. An engine
//!   and a compiled method run one call at a time: a call of another thread meanwhile is an error of kind `FRAZIL_ERROR_KIND_BUSY`.
//! - A pointer that is `NULL` where that is not allowed is an error. Any other pointer must be what it is said to be: that is the caller's part.
//! - A panic, which would be a bug, ends at this border as an error of kind `FRAZIL_ERROR_KIND_INTERNAL`.
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
