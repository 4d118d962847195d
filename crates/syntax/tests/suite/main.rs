//! Tests of the text form. One binary, since each one links everything that it tests.

mod bounds;
mod corpus;
mod diagnostics;
mod document;
mod dot;
mod graphs;
mod lossless;
mod modules;
mod properties;
mod tensors;
