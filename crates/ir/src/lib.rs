//! The Frazil IR: graphs, types, constants, modules, schemas, verifier.

pub mod dtype;

pub use dtype::{DType, Device, DeviceKind};
