//! Limits of calls, lazily initialised values, locks, setters for options, and the files that contain tensors.

pub(crate) mod backing;
pub(crate) mod limited;
pub(crate) mod lock;
pub(crate) mod once;
pub(crate) mod setters;
