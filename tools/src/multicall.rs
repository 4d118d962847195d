//! A program that contains all tools, and runs the tool by whose name it was started.
//!
//! Almost all of a tool's size is the linked compiler, so one file with three names (hard or symbolic links) takes a third of the space. `make
//! install` and the tests install it in this way. Cargo links one identical file for each name.

use crate::{jit_opt, jit_reduce, jit_run};
use frazil::Session;
use std::ffi::OsStr;
use std::path::Path;

/// Runs the tool whose name is the file name in the process's first argument; for any other name, the tool called `default`. Returns the exit status.
pub fn main(default: &str) -> u8 {
    main_with(default, Session::new)
}

/// Runs a tool as [`main`] does, with `session` in place of [`Session::new`]: its sessions may have additional operators and passes.
pub fn main_with(default: &str, session: impl Fn() -> Session) -> u8 {
    let started_as = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&started_as).file_stem().and_then(OsStr::to_str);
    let is_tool = |name: &&str| ["jit-opt", "jit-run", "jit-reduce"].contains(name);
    match name.filter(is_tool).unwrap_or(default) {
        "jit-run" => jit_run::main_with(session),
        "jit-reduce" => jit_reduce::main_with(session),
        _ => jit_opt::main_with(session),
    }
}
