//! Integration tests of the tensor IR.

mod graphs;
mod passes;
mod text;
mod verifier;
