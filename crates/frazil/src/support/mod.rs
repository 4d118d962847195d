//! Limits of calls, values that are made once, setters of options, and the files of tensors.

pub(crate) mod backing;
pub(crate) mod limited;
pub(crate) mod once;
pub(crate) mod setters;
