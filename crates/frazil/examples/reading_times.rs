//! Measures reading and printing, for `tools/bench_text.py`: for each line `parse`, `print` or `load` on standard input does that once
//! with the file named on the command line, and writes its time.
//!
//! `parse` reads graph text in memory, `print` prints the graph again, `load` reads an archive from disk. The answer is a line of JSON:
//! milliseconds of processor time, nodes of the graph, and the peak memory of the process minus the size of the text, in bytes.

#![allow(clippy::print_stdout, reason = "a program for a script to read")]

use frazil::{Error, Session};
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = PathBuf::from(std::env::args_os().nth(1).ok_or("which file?")?);
    let text = if path.extension().is_some_and(|e| e == "ir") {
        std::fs::read_to_string(&path)?
    } else {
        String::new()
    };
    let before = peak_memory()?;
    for line in std::io::stdin().lines() {
        let (time, nodes) = match line?.as_str() {
            "parse" => parse(&text)?,
            "print" => print(&text)?,
            "load" => load(&path)?,
            other => return Err(format!("{other}: parse, print or load").into()),
        };
        let milliseconds = time * 1e3;
        let memory = peak_memory()?.saturating_sub(before);
        println!(r#"{{"ms": {milliseconds}, "nodes": {nodes}, "memory": {memory}}}"#);
    }
    Ok(())
}

fn parse(text: &str) -> Result<(f64, usize), frazil_syntax::ParseError> {
    let start = seconds();
    let parsed = frazil_syntax::parse_graph(&Arc::default(), text)?;
    Ok((seconds() - start, parsed.graph.node_capacity()))
}

fn print(text: &str) -> Result<(f64, usize), frazil_syntax::ParseError> {
    let parsed = frazil_syntax::parse_graph(&Arc::default(), text)?;
    let start = seconds();
    let printed = frazil_syntax::print_graph(&parsed.graph);
    let time = seconds() - start;
    assert!(printed == text, "the text does not print back");
    Ok((time, parsed.graph.node_capacity()))
}

fn load(path: &Path) -> Result<(f64, usize), Error> {
    let session = Session::new();
    let start = seconds();
    let model = session.load(path)?;
    let time = seconds() - start;
    let nodes = model
        .module()
        .unit
        .functions()
        .map(|(_, f)| f.graph.node_capacity())
        .sum();
    Ok((time, nodes))
}

/// Returns the processor time of the process in seconds, which hardly depends on other load of the machine.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the peak memory of this process in bytes; 0 if the system does not report it.
fn peak_memory() -> std::io::Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status").or_else(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Ok(String::new()),
        _ => Err(e),
    })?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Ok(kilobytes.unwrap_or(0) * 1024)
}
