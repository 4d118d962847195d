//! Tensor programs: the semantics of an operator for given sizes, as data.

pub mod expr;
pub mod gather;
pub mod structured;
pub mod sym;
