//! TorchScript source as text and syntax: parsed files, the syntactic properties of definitions, and stacks for recursive work.

mod circles;
pub(crate) mod comments;
pub(crate) mod decorators;
mod depth;
mod expression;
mod file;
pub(crate) mod parameters;
mod rules;
mod stack;

pub(crate) use circles::{Container, shared};
pub(crate) use depth::{MAX_DEPTH, too_deep};
pub(crate) use expression::{complex_sum, dotted, number, string_value};
pub(crate) use file::{DefPath, SourceFile, imports};
pub(crate) use rules::{Rules, SOURCE_QUALIFIER};
pub(crate) use stack::{Stack, with_stack};
