//! From kernels to MLIR.
//!
//! Each kernel becomes a module with one function for each of its phases, `void name(ptr buffers, i64 begin, i64 end)`: it
//! runs the phase's tasks `begin..end` on the buffers whose addresses `buffers` lists. Beside it the module declares the functions of libm that it calls.
//!
//! [`builder`], [`expr`], [`math`] and [`epilogue`] are shared by the emitters of the families. [`kernels`] contains one emitter per family; an embedder may
//! add emitters ([`family`]).

pub mod builder;
pub mod epilogue;
pub mod expr;
pub mod family;
pub mod function;
pub mod kernels;
pub mod math;
pub mod module;
mod window;
