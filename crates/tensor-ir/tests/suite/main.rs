//! Integration tests of the tensor IR.

mod graphs;
mod text;
mod verifier;
