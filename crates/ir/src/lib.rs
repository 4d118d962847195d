//! The Frazil IR: graphs, types, constants, modules, schemas, verifier.
