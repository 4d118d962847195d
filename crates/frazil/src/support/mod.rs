//! Limits of calls, lazily initialised values, setters of options, and the files of tensors.

pub(crate) mod backing;
pub(crate) mod limited;
pub(crate) mod once;
pub(crate) mod setters;
