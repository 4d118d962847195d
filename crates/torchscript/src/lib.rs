//! TorchScript archives and the TorchScript language front end.
