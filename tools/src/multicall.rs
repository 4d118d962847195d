//! One program that is every tool: which one it is depends on the name that it was started by.
//!
//! Almost all of a tool's size is the compiler that is linked in, so one file with three names (hard or symbolic links) takes a third of the space.
//! `make install` and the tests install it so. Cargo links one file for each name, all alike.

use crate::{jit_opt, jit_reduce, jit_run};
use std::ffi::OsStr;
use std::path::Path;

/// Runs the tool that the process was started as, by the first argument's file name; under any other name, the tool called `default`.
/// Returns the exit status.
pub fn main(default: &str) -> u8 {
    let started_as = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&started_as).file_stem().and_then(OsStr::to_str);
    let tool = name.and_then(tool_named).or_else(|| tool_named(default));
    tool.unwrap_or(jit_opt::main)()
}

fn tool_named(name: &str) -> Option<fn() -> u8> {
    match name {
        "jit-opt" => Some(jit_opt::main),
        "jit-run" => Some(jit_run::main),
        "jit-reduce" => Some(jit_reduce::main),
        _ => None,
    }
}
