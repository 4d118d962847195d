//! Tests of archives and the language. One binary, since each one links everything that it tests.

mod archive;
mod bounds;
mod code;
mod common;
mod corpus;
mod language;
mod load;
mod save;
