//! TorchScript archives and the TorchScript language front end.
//!
//! [`archive`] opens a `.pt` file and reads its records; nothing in an archive is ever executed while it is read.

pub mod archive;
