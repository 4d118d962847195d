//! What the integration tests share: where things stand, and how results are compared with PyTorch's.

pub mod workspace;
