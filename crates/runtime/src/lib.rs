//! Tensors, values, operator entries and the reference interpreter.
