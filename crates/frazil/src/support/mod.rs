//! Limits of calls, lazily initialised values, setters for options, and the files that contain tensors.

pub(crate) mod backing;
pub(crate) mod limited;
pub(crate) mod once;
pub(crate) mod setters;
