//! Tests of tensor operators against the plain evaluation of their programs. They need no LLVM.

mod calls;
mod eager_kernels;
mod programs;
mod random;
mod sizes;
