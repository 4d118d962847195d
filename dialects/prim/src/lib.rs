//! The prim dialect: control flow, constants, containers, attributes, calls.
