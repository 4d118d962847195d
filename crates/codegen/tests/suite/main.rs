//! Tests of code generation: kernels, lowering, libraries. One binary, since each one links everything that it tests.

mod common;
mod conv;
mod functions;
mod gemm;
mod indirect;
mod library;
mod loops;
mod lowering;
mod preparation;
mod simplifying;
mod specialise;
mod spills;
mod windows;
