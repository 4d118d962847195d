//! The runtime of compiled functions: runs their steps on one thread, on the caller's threads, or on its own.
//!
//! It depends on `core` and the C library alone, so that one object file of it (`standalone.rs`) can be linked into every
//! compiled library. In process, the compiler uses the same code as an ordinary crate, and [`gate`], which is for calls of
//! the compiler only.

pub mod gate;
mod origin;
mod pool;
mod signals;
mod steps;
mod sys;

pub use origin::Origin;
pub use pool::Pool;
pub use signals::SignalsBlocked;
pub use steps::{BufferKind, BufferRef, KernelFn, Memory, Order, ParallelFor, Runner, Step, TaskFn, address, run};
