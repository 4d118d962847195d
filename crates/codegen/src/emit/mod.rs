//! From kernels to MLIR.
//!
//! Each kernel becomes a module with one function for each of its phases, `void name(ptr buffers, i64 begin, i64 end)`: it
//! runs the phase's tasks `begin..end` on the buffers whose addresses `buffers` lists. Beside it the module declares the functions of libm that it calls.
//!
//! [`builder`], [`expr`], [`math`] and [`epilogue`] are what the emitters of the families share; [`kernels`] has an emitter a family, and an embedder
//! may add some of their own ([`family`]).

pub mod builder;
pub mod epilogue;
pub mod expr;
pub mod family;
pub mod function;
pub mod kernels;
pub mod math;
pub mod module;
mod window;
