//! Tensors, values, operator entries and the reference interpreter.

pub mod expr;
pub mod structured;
